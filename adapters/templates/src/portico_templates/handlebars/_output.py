"""How the parts that a rendering writes become one text, which remembers where its values are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from portico import Prompt
from portico.errors import LimitExceeded

_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;", "`": "&#x60;", "=": "&#x3D;"}
_TABLE = str.maketrans(_ESCAPED)
_NEEDS_ESCAPE = re.compile("[&<>\"'`=]")
MARKUP = "<message"


def escape_html(text: str) -> str:
    """Replace the seven characters that handlebars.js replaces."""
    return text.translate(_TABLE) if _NEEDS_ESCAPE.search(text) else text


class Own(str):
    """A text that the template itself wrote, or that is trusted; every other string in the output is a value."""

    __slots__ = ()


class OfBlock(Prompt):
    """What a helper receives of its block; where it returns that, the template's text stays the template's."""

    __slots__ = ()


class Indented(list[Any]):
    """Parts of the output, each line of which is indented."""

    def __init__(self, indent: str) -> None:
        super().__init__()
        self.indent = indent


def joined(parts: list[Any], limit: int, name: str, *, markup: bool = False) -> str:
    """Return the text of parts, as a prompt that remembers its values where there is markup in what is no value.

    ``markup`` is for templates that may write markup themselves; in others it comes from trusted values only.
    Raises ``LimitExceeded`` above ``limit`` characters.
    """
    try:
        size = sum(map(len, parts))
        text = "".join(parts) if size <= limit else ""
    except TypeError:  # There are parts within.
        parts = _flat(parts, limit, name)
        size = sum(map(len, parts))
        text = "".join(parts)
    if size > limit:
        raise _too_long(limit, name)
    if not (markup or MARKUP in text):
        return text
    pieces = _pieces(parts)
    if markup or any(MARKUP in text for text, is_value in pieces if not is_value):
        return Prompt(pieces)
    return text


def _pieces(parts: Iterable[str]) -> list[tuple[str, bool]]:
    """Return the pieces of a prompt, neighbours that the template wrote as one.

    A value stays its own piece, since an empty one parts what is around it too.
    """
    pieces: list[tuple[str, bool]] = []
    texts: list[str] = []
    for part in parts:
        if type(part) is Own:
            texts.append(part)
            continue
        if texts:
            pieces.append(("".join(texts), False))
            texts = []
        pieces.append((part, True))
    if texts:
        pieces.append(("".join(texts), False))
    return pieces


def _flat(parts: list[Any], limit: int, name: str) -> list[str]:
    """Return texts in order, with those that are within other parts, indented where they are."""
    found: list[str] = []
    size = 0
    # Each entry: what is left of a list, the list, and where in `found` it began.
    stack: list[tuple[Any, Any, int]] = [(iter(parts), parts, 0)]
    while stack:
        rest, owner, begin = stack[-1]
        for part in rest:
            if isinstance(part, list):
                stack.append((iter(part), part, len(found)))
                break
            size += len(part)
            if size > limit:
                raise _too_long(limit, name)
            found.append(part)
        else:
            stack.pop()
            if isinstance(owner, Indented):
                before = sum(map(len, found[begin:]))
                found[begin:] = _indent(found[begin:], owner.indent)
                size += sum(map(len, found[begin:])) - before
    return found


def _indent(parts: Iterable[str], indent: str) -> list[str]:
    """Put the indent before each line; after a line end that is the last character there is none."""
    result: list[str] = []
    begins_line = True
    for part in parts:
        if begins_line and part:
            result.append(Own(indent))
        if part:
            begins_line = part.endswith("\n")
        body = part.removesuffix("\n")
        text = body.replace("\n", "\n" + indent) + part[len(body) :]
        result.append(Own(text) if type(part) is Own else text)
    return result


def _too_long(limit: int, name: str) -> LimitExceeded:
    return LimitExceeded(f"{name}: the rendered prompt has more than {limit:,} characters.")
