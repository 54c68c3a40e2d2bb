"""How values become text, and how the parts of a prompt become one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from portico import Prompt
from portico.errors import LimitExceeded
from portico.plugins import TextForm
from portico.ports import TypeCodec
from portico_templates.handlebars._numbers import number_text
from portico_templates.handlebars.values import MISSING, is_array

_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;", "`": "&#x60;", "=": "&#x3D;"}
_TABLE = str.maketrans(_ESCAPED)
_NEEDS_ESCAPE = re.compile("[&<>\"'`=]")
_MOST_PARTS = 1_000_000
_SCALARS = (str, int, float, bool, type(None))
_MARKUP = "<message"


def escape_html(text: str) -> str:
    """Replace the seven characters that handlebars.js replaces."""
    return text.translate(_TABLE) if _NEEDS_ESCAPE.search(text) else text


class Texts:
    """Writes values: as every prompt language does, or as JavaScript does.

    A value with more than 1,000,000 parts or ``limit`` characters is not written: one that shares parts can be small
    in memory and without end on paper.
    """

    def __init__(self, codecs: Iterable[TypeCodec] = (), *, javascript: bool = False, limit: int = 16_000_000) -> None:
        self._form = TextForm(codecs)
        self._javascript = javascript
        self._limit = limit

    def text(self, value: Any) -> str:
        """Return the text; raises ``ValueError`` for a value that has none and ``LimitExceeded``."""
        if isinstance(value, str):
            return str(value)
        if value is None or value is MISSING:
            return ""
        if not isinstance(value, _SCALARS):
            self.measure(value)
        return self._javascript_text(value) if self._javascript else self._form(_without_missing(value))

    def key(self, value: Any) -> str:
        """Return the name that a value is as a key, which JavaScript decides: ``true``, ``null``, ``1``."""
        if isinstance(value, str):
            return str(value)
        if value is None or value is MISSING:
            return "null" if value is None else "undefined"
        self.measure(value)
        return self._javascript_text(value)

    def json(self, value: Any) -> str:
        """Return the value as JSON, text in quotes as well."""
        if value is MISSING or value is None:
            return "null"
        if isinstance(value, str | bool | int | float):
            return json.dumps(value, ensure_ascii=False)
        return self.text(value) if not self._javascript else self._written(value)

    def measure(self, value: Any) -> int:
        """Count the parts of a value; raises ``LimitExceeded`` before it has counted too far."""
        count = characters = 0
        waiting = [value]
        while waiting:
            one = waiting.pop()
            count += 1
            if isinstance(one, str):
                characters += len(one)
            elif isinstance(one, Mapping):
                waiting += one.values()
            elif is_array(one):
                waiting += one
            if count > _MOST_PARTS or characters > self._limit:
                raise LimitExceeded(
                    f"A value with more than {_MOST_PARTS:,} parts or {self._limit:,} characters is not written; "
                    f"one that contains itself has no end."
                )
        return count

    def _written(self, value: Any) -> str:
        self.measure(value)
        return self._form(_without_missing(value))

    def _javascript_text(self, value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float):
            return number_text(value)
        try:
            if is_array(value):
                return ",".join([self._javascript_text(one) if one is not None else "" for one in value])
        except RecursionError as error:
            raise ValueError("The value is nested too deeply, or contains itself.") from error
        if isinstance(value, str):
            return str(value)
        if value is MISSING:
            return ""
        return "[object Object]" if isinstance(value, Mapping) else self._form(value)


def _without_missing(value: Any) -> Any:
    """Write None where a list that a template made has nothing."""
    if type(value) is list and any(one is MISSING for one in value):
        return [None if one is MISSING else one for one in value]
    return value


class Own(str):
    """A text that the template itself wrote, or that is trusted; every other string in the output is a value."""

    __slots__ = ()


class OfBlock(Prompt):
    """What a helper is given of its block; where it gives that back, the template's text stays the template's."""

    __slots__ = ()


class Indented(list[Any]):
    """Parts of the output, each line of which is indented."""

    def __init__(self, indent: str) -> None:
        super().__init__()
        self.indent = indent


def joined(parts: list[Any], limit: int, name: str, *, markup: bool = False) -> str:
    """Return the text of parts, as a prompt that remembers its values where there is markup in what is no value.

    ``markup`` is for templates that may have their own some; others get it from trusted values only.
    """
    try:
        size = sum(map(len, parts))
        if size > limit:
            raise _too_long(limit, name)
        text = "".join(parts)
    except TypeError:  # There are parts within.
        parts = _flat(parts, limit, name)
        text = "".join(parts)
    if not (markup or _MARKUP in text):
        return text
    pieces = pieces_of(parts)
    if markup or any(_MARKUP in text for text, is_value in pieces if not is_value):
        return Prompt(pieces)
    return text


def pieces_of(parts: Iterable[str]) -> list[tuple[str, bool]]:
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
    # Each entry: what is left of a list, and where in `found` it began, for those that are to be indented.
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
        if not part:
            result.append(part)
            continue
        if begins_line:
            result.append(Own(indent))
        begins_line = part.endswith("\n")
        body = part[:-1] if begins_line else part
        text = body.replace("\n", "\n" + indent) + ("\n" if begins_line else "")
        result.append(Own(text) if type(part) is Own else text)
    return result


def _too_long(limit: int, name: str) -> LimitExceeded:
    return LimitExceeded(f"{name}: the rendered prompt has more than {limit:,} characters.")
