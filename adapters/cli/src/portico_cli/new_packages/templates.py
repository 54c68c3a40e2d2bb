"""The templates: whole packages called acme, in which making a package replaces the name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from portico.errors import StoreError
from portico_cli.new_packages.author import Author
from portico_cli.new_packages.kinds import Kind
from portico_cli.new_packages.names import PackageName

__all__ = ["filled", "template_folder"]

_HERE = Path(__file__)
_ACME = re.compile("portico_acme|ACME|Acme|acme")
_AUTHORS = re.compile(r"^authors = .*\n", re.MULTILINE)
_LEFT_BY_TOOLS = {"__pycache__", "build", "dist"}


def template_folder(kind: Kind) -> Path:
    """Return the folder of a kind's template: in the installed package, or in the checkout that is worked on.

    Raises ``StoreError`` where it is in neither.
    """
    places = [_HERE.parents[1] / "template"]
    if len(_HERE.parents) > 5:
        places.append(_HERE.parents[5] / "docs" / "template")
    for place in places:
        if (place / kind.word / "pyproject.toml").is_file():
            return place / kind.word
    raise StoreError(
        f"The template for {kind.article} {kind.word} is missing from {places[0]}. "
        "Run `pip install --force-reinstall --no-deps portico`."
    )


def filled(name: PackageName, author: Author | None) -> dict[PurePosixPath, str]:
    """Return the files of a new package by their paths: the template's with another name.

    Raises ``StoreError`` where the template cannot be read.
    """
    folder = template_folder(name.kind)
    # "portico-acme" and "portico-acme-planner" become right with the registered name in them.
    word = name.registered.replace("-", "_")
    forms = {"portico_acme": f"portico_{word}", "ACME": word.upper(), "Acme": name.class_prefix}

    def renamed(text: str) -> str:
        return _ACME.sub(lambda match: forms.get(match[0], name.registered), text)

    try:
        files = {
            PurePosixPath(renamed(path.relative_to(folder).as_posix())): renamed(path.read_text("utf-8"))
            for path in _files(folder)
        }
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"The template in {folder} cannot be read: {error}") from error
    project = PurePosixPath("pyproject.toml")
    files[project] = _AUTHORS.sub(lambda _: f"authors = [{author.toml}]\n" if author else "", files[project])
    return files


def _files(folder: Path) -> Iterator[Path]:
    """Yield what belongs to a template; installers and tools leave other things in it."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if not path.name.startswith(".") and path.name not in _LEFT_BY_TOOLS:
                yield from _files(path)
        elif path.suffix != ".pyc":
            yield path
