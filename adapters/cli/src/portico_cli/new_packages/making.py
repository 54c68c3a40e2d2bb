"""Files into a folder: all of them, or none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from portico.errors import StoreError
from portico_cli.failures import Misused

__all__ = ["make_folder"]


def make_folder(folder: Path, files: Mapping[PurePosixPath, str]) -> None:
    """Write the files into a folder that is made for them, or is empty.

    What was made is taken away again when it cannot be done, or is interrupted. Raises `Misused` where the folder holds
    something or is none, ``StoreError`` where it cannot be written.
    """
    made: list[Path] = []
    try:
        _refuse_filled(folder)
        for path, text in files.items():
            place = folder / path
            _make_parents(place.parent, made)
            with place.open("x", encoding="utf-8", newline="\n") as stream:
                made.append(place)
                stream.write(text)
    except BaseException as error:
        _take_away(made)
        if isinstance(error, OSError):
            raise StoreError(f"{folder} cannot be written: {error.strerror or error}.") from error
        raise


def _refuse_filled(folder: Path) -> None:
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        raise Misused(f"{folder} is there already, and is no folder. Give another one with --into.")
    with os.scandir(folder) as entries:
        first = next(entries, None)
    if first is not None:
        raise Misused(f"{folder} is there already, and not empty: it holds {first.name}. Give another one with --into.")


def _make_parents(folder: Path, made: list[Path]) -> None:
    if not folder.is_dir():
        if folder.parent != folder:  # a drive that is not there has no parent
            _make_parents(folder.parent, made)
        folder.mkdir()
        made.append(folder)


def _take_away(made: list[Path]) -> None:
    for path in reversed(made):
        try:
            path.rmdir() if path.is_dir() else path.unlink()
        except OSError:
            # Somebody put something there meanwhile: it is theirs.
            continue
