"""Files into a folder: all of them, or none."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from portico.errors import StoreError
from portico_cli.failures import Misused

__all__ = ["make_folder"]


def make_folder(folder: Path, files: Mapping[PurePosixPath, str]) -> None:
    """Write the files into a folder that is made for them, or is empty.

    They are written elsewhere and put in place when all are there, so that nothing half-made ever stands in it. What
    was made is taken away again when it cannot be done, or is interrupted. Raises `Misused` where the folder holds
    something or is none, ``StoreError`` where it cannot be written.
    """
    name = f".portico-new-{secrets.token_hex(4)}"
    unfinished = folder.parent / name
    parents: list[Path] = []
    try:
        there = os.path.lexists(folder)
        if there:
            _refuse_filled(folder)
            # What is beside a folder that is there may be another file system, or somebody else's.
            unfinished = folder / name
        _make_folders(unfinished, parents)
        for path, text in files.items():
            place = unfinished / path
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
        if there:
            _move_up(unfinished)
        else:
            unfinished.rename(folder)
    except BaseException as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        for parent in reversed(parents):
            with suppress(OSError):  # somebody put something there meanwhile
                parent.rmdir()
        if isinstance(error, OSError):
            said = f"{folder} cannot be written: {_why(folder, error)}. Give another folder with --into."
            raise StoreError(said) from error
        raise


def _why(folder: Path, error: OSError) -> str:
    """Say what stands where a folder should be, or else what the operating system says."""
    for place in folder.parents if isinstance(error, FileExistsError | NotADirectoryError) else ():
        if os.path.lexists(place) and not place.is_dir():
            return f"{place} is there, and is no folder"
    return error.strerror or str(error)


def _refuse_filled(folder: Path, *, but: str = "") -> None:
    if not folder.is_dir():
        raise Misused(f"{folder} is there already, and is no folder. Give another one with --into.")
    with os.scandir(folder) as entries:
        first = next((entry for entry in entries if entry.name != but), None)
    if first is not None:
        raise Misused(f"{folder} is there already, and not empty: it holds {first.name}. Give another one with --into.")


def _make_folders(folder: Path, made: list[Path]) -> None:
    if not folder.is_dir():
        if folder.parent != folder:  # a drive that is not there has no parent
            _make_folders(folder.parent, made)
        # What ends in ".." is there as soon as what stands before that is.
        if not folder.is_dir():
            folder.mkdir()
            made.append(folder)


def _move_up(unfinished: Path) -> None:
    """Move what a folder holds into the one that it is in, which is empty otherwise; all of it, or nothing."""
    folder = unfinished.parent
    _refuse_filled(folder, but=unfinished.name)
    paths = list(unfinished.iterdir())
    try:
        for path in paths:
            path.rename(folder / path.name)
        unfinished.rmdir()
    except BaseException:
        for path in paths:
            with suppress(OSError):  # it was not moved yet
                (folder / path.name).rename(path)
        raise
