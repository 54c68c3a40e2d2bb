"""Partials from a folder of `*.hbs` files."""

from __future__ import annotations

from pathlib import Path

from portico.errors import ConfigurationError, LimitExceeded

_MOST_FILES = 1_000
_MOST_BYTES = 4_000_000


def read_partials(folder: Path) -> dict[str, str]:
    """Read all `*.hbs` and `*.handlebars` files of a folder and of those in it.

    A partial's name is its file's without the ending, ``chat/greeting`` for one in a folder ``chat``. Raises
    ``ConfigurationError`` for a folder or file that cannot be read and for two files of one name, ``LimitExceeded``
    above 1,000 files or 4,000,000 bytes in one.
    """
    if not folder.is_dir():
        raise ConfigurationError(f"There is no folder of partials {folder}.")
    found: dict[str, str] = {}
    files = sorted(file for ending in ("hbs", "handlebars") for file in folder.rglob(f"*.{ending}") if file.is_file())
    if len(files) > _MOST_FILES:
        raise LimitExceeded(f"{folder} has {len(files):,} partials; at most {_MOST_FILES:,} are read.")
    for file in files:
        name = file.relative_to(folder).with_suffix("").as_posix()
        if name in found:
            raise ConfigurationError(f"{folder} has two partials named {name!r}.")
        try:
            if file.stat().st_size > _MOST_BYTES:
                raise LimitExceeded(f"{file} has more than {_MOST_BYTES:,} bytes.")
            found[name] = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"The partial {file} cannot be read: {error}") from error
    return found
