"""Walking a folder: which files are there to read, and which are not and why.

The walk is lazy and in a fixed order: by name, folder by folder, the inside of a folder where its name comes. It
holds the names of the folders that it is in and nothing else, so a tree of any size costs the memory of its
largest folders. Every entry costs what ``os.scandir`` gives with the folder; one ``stat`` and one ``access`` are
made for a file that may be read, and none for the others.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Found:
    """A regular file to read.

    ``relative`` is its path below the root with ``/`` between the names, ``size`` is in bytes, ``modified_ns`` in
    nanoseconds since 1970. A name that is not UTF-8 holds surrogate escapes, as everywhere in Python.
    """

    path: Path
    relative: str
    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or folder that is not read, and why; nothing inside a skipped folder is listed.

    The reasons are ``hidden`` (the name starts with a dot), ``excluded`` (by a pattern), ``link``, ``special`` (a
    pipe, a socket, a device), ``too large`` and ``unreadable`` (by its permissions, or its path is too long).
    """

    relative: str
    reason: str


def walk(
    root: Path, *, include: tuple[str, ...] = (), exclude: tuple[str, ...] = (), maximum_bytes: int
) -> Iterator[Found | Skipped]:
    """Yield what lies in ``root``: each file to read, and each file or folder that is skipped.

    ``root`` may be a file, which is then yielded whatever its name, or a link to either. No link below it is
    followed: what it points to inside the root is found in its own place, and the rest is not ours to read.

    A pattern without ``/`` is compared with the name of every file and folder, any other with the path below the
    root. ``*`` and ``?`` stop at ``/``, ``**`` does not, ``[ab]`` and ``[!ab]`` are as in a shell. A folder that
    matches stands for all that is in it. ``exclude`` wins over ``include``; an empty ``include`` takes every file.

    What vanishes on the way is left out. Raises ``OSError`` at once when there is no ``root`` or it cannot be listed:
    that must not look like a folder from which everything was deleted.
    """
    state = root.stat()
    if stat.S_ISDIR(state.st_mode):
        rules = _Rules(_pattern(include), _pattern(exclude), maximum_bytes)
        return _walk_folder(_sorted_entries(str(root)), rules)
    if stat.S_ISREG(state.st_mode):
        return iter((_judge_file(str(root), root.name, state, maximum_bytes),))
    return iter((Skipped(root.name, "special"),))


@dataclass(frozen=True, slots=True)
class _Rules:
    include: re.Pattern[str] | None
    exclude: re.Pattern[str] | None
    maximum_bytes: int


def _walk_folder(top: list[os.DirEntry[str]], rules: _Rules) -> Iterator[Found | Skipped]:
    pending = [("", iter(top))]
    while pending:
        prefix, level = pending[-1]
        for entry in level:
            relative = prefix + entry.name
            found = _judge(entry, relative, rules)
            if found is None:
                continue
            if not isinstance(found, list):
                yield found
                continue
            pending.append((f"{relative}/", iter(found)))
            break
        else:
            pending.pop()


def _sorted_entries(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _judge(entry: os.DirEntry[str], relative: str, rules: _Rules) -> Found | Skipped | list[os.DirEntry[str]] | None:
    """Say what an entry is: the entries inside for a folder to go into, None when it has vanished."""
    if entry.name.startswith("."):
        return Skipped(relative, "hidden")
    try:
        if entry.is_symlink():
            return Skipped(relative, "link")
        is_folder = entry.is_dir(follow_symlinks=False)
        path = f"{relative}/" if is_folder else relative
        if rules.exclude is not None and rules.exclude.fullmatch(path):
            return Skipped(relative, "excluded")
        if is_folder:
            return _sorted_entries(entry.path)
        if not entry.is_file(follow_symlinks=False):
            return Skipped(relative, "special")
        if rules.include is not None and not rules.include.fullmatch(path):
            return Skipped(relative, "excluded")
        return _judge_file(entry.path, relative, entry.stat(follow_symlinks=False), rules.maximum_bytes)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return Skipped(relative, "unreadable")


def _judge_file(path: str, relative: str, state: os.stat_result, maximum_bytes: int) -> Found | Skipped:
    if state.st_size > maximum_bytes:
        return Skipped(relative, "too large")
    if not os.access(path, os.R_OK):
        return Skipped(relative, "unreadable")
    return Found(Path(path), relative, state.st_size, state.st_mtime_ns)


def _pattern(globs: tuple[str, ...]) -> re.Pattern[str] | None:
    """Compile globs into one expression for paths below the root, in which a folder ends with ``/``."""
    alternatives = []
    for glob in globs:
        body = glob.removeprefix("./")
        only_folders = body.endswith(("/", "/**"))
        body = body.removesuffix("**") if only_folders else body
        body = body.rstrip("/") if only_folders else body
        anchored = "/" in body
        inside = "/.*" if only_folders else "(?:/.*)?"
        if body.strip("/"):
            alternatives.append(("" if anchored else "(?:.*/)?") + _translate(body.lstrip("/")) + inside)
    return re.compile("|".join(alternatives), re.DOTALL) if alternatives else None


_RANGE_OR_ONE = re.compile(r"(.)-(.)|(.)", re.DOTALL)
_GLOB = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\]")


def _translate(glob: str) -> str:
    parts = []
    position = 0
    for match in _GLOB.finditer(glob):
        parts.append(re.escape(glob[position : match.start()]))
        position = match.end()
        token = match.group()
        if token.startswith("["):
            negated = token[1] == "!"
            inside = _RANGE_OR_ONE.sub(_escaped, token[1 + negated : -1])
            characters = f"[{'^/' if negated else ''}{inside}]"
            parts.append(characters if _compiles(characters) else re.escape(token))
        else:
            parts.append({"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}[token])
    parts.append(re.escape(glob[position:]))
    return "".join(parts)


def _escaped(found: re.Match[str]) -> str:
    """Escape a character of a set, or both ends of a range: so no sign between them means anything to `re`."""
    first, last, one = found.groups()
    return re.escape(one) if one else f"{re.escape(first)}-{re.escape(last)}"


def _compiles(expression: str) -> bool:
    try:
        re.compile(expression)
    except re.error:
        return False
    return True
