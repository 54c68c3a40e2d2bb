"""Which operations are meant by the words of the settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from portico.errors import ConfigurationError, nearest
from portico_openapi._operations import METHODS, Operation


def selected(
    entries: Sequence[str], operations: Sequence[Operation], setting: str, *, further: Iterable[str] = ()
) -> set[str]:
    """Return the names of the functions that any of the entries means.

    An entry is an operation id, a function's name or a tag, ``*`` standing for anything; or a path, a method before
    it or not, where ``*`` stays inside one segment and ``**`` does not. ``further`` are labels, as ``GET /pets``, of
    operations that are lost: to name one is no mistake. Raises ``ConfigurationError`` for an entry that means
    nothing, with the nearest that would.
    """
    chosen: set[str] = set()
    lost = tuple(further)
    for entry in entries:
        found = {operation.name for operation in operations if _means(entry, operation)}
        if not found and not any(names_path([entry], label) for label in lost):
            raise ConfigurationError(
                f"{setting}: no operation of the document is {entry!r}. {_hint(entry, operations)}"
            )
        chosen |= found
    return chosen


def names_path(entries: Iterable[str], label: str) -> bool:
    """Return whether an entry means what has only a path, or a method and a path, as ``GET /pets``."""
    method, _, path = label.rpartition(" ")
    return any(_is_path(entry, method, path) for entry in entries)


def _means(entry: str, operation: Operation) -> bool:
    if _is_path(entry, operation.method, operation.path):
        return True
    return any(
        word == entry or fnmatchcase(word, entry)
        for word in (operation.name, operation.id, *operation.tags)
        if word is not None
    )


def _is_path(entry: str, method: str, path: str) -> bool:
    wanted, space, pattern = entry.partition(" ")
    if not space:
        wanted, pattern = "*", entry
    if pattern[:1] not in ("/", "*") or (pattern[:1] == "*" and not space):
        return False
    if wanted != "*" and (wanted.casefold() not in METHODS or wanted.casefold() != method.casefold()):
        return False
    return re.fullmatch(_expression(pattern), path) is not None


def _expression(pattern: str) -> str:
    parts = re.split(r"(\*\*?)", pattern)
    return "".join({"*": "[^/]*", "**": ".*"}.get(part) or re.escape(part) for part in parts)


def _hint(entry: str, operations: Sequence[Operation]) -> str:
    words: dict[str, None] = {}
    for operation in operations:
        label = f"{operation.method.upper()} {operation.path}"
        words |= dict.fromkeys(filter(None, (operation.id, operation.name, *operation.tags, label, operation.path)))
    near = nearest(entry, list(words))
    if near:
        return f"Nearest: {', '.join(near)}."
    shown = [operation.id or operation.name for operation in operations[:10]]
    more = f" and {len(operations) - 10} more" if len(operations) > 10 else ""
    return f"It has: {', '.join(shown)}{more}." if shown else "It has none."
