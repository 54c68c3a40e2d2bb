"""The JSON form of messages and their parts, as threads and the journal have it."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeAlias

from portico._chat.messages import (
    Audio,
    File,
    Image,
    Message,
    Part,
    Reasoning,
    Source,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from portico.errors import ThreadFormatError

_USAGE = tuple(Usage.__dataclass_fields__)
_DEEPEST_VALUE = 200

Read: TypeAlias = Callable[[object, str], Any]
"""Makes a value of a JSON value; the place is for errors, ``ThreadFormatError``."""


def to_json(value: Any, place: str, others: tuple[type[Any], ...] = ()) -> dict[str, Any]:
    """Return a part, a message, usage, or a value of ``others`` as an object, without members that have their default.

    Raises ``ThreadFormatError``.
    """
    kind = next((kind for kind, (made, _, _) in _PARTS.items() if isinstance(value, made)), None)
    required = ("turns", "messages") if kind is None else _PARTS[kind][1]
    if kind is None and not isinstance(value, (Message, Usage, *others)):
        raise ThreadFormatError(f"{place}: a {type(value).__name__} is no part of a message.")
    written: dict[str, Any] = {} if kind is None else {"type": kind}
    for each in fields(value):
        name, member = each.name, getattr(value, each.name)
        default = each.default is not MISSING and member == each.default
        if not each.compare or (name not in required and (default or (member is None and kind == "file"))):
            continue
        inside = f"{place}.{name}"
        if kind is None and isinstance(member, tuple):
            written[name] = [
                one if isinstance(one, str) else to_json(one, f"{inside}[{index}]", others)
                for index, one in enumerate(member)
            ]
        elif isinstance(member, Usage):
            written[name] = to_json(member, inside)
        elif isinstance(member, bytes):
            written["bytes" if isinstance(value, Reasoning) else name] = _base64(member)
        else:
            written[name] = _json(member, inside)
    return written


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def record(make: Callable[..., Any], required: Mapping[str, Read], optional: Mapping[str, Read]) -> Read:
    """Return what reads an object: it makes a value of the members."""
    members = {**required, **optional}

    def read(document: object, place: str) -> Any:
        if not isinstance(document, dict):
            raise form_error(place, "an object", document)
        missing = [name for name in required if name not in document]
        if missing:
            raise ThreadFormatError(f"{place}: missing: {', '.join(missing)}.")
        unknown = [name for name in document if name not in members]
        if unknown:
            raise ThreadFormatError(f"{place}: unknown key {str(unknown[0])[:60]!r}; known are {', '.join(members)}.")
        values = {name: members[name](value, f"{place}.{name}") for name, value in document.items()}
        try:
            return make(**values)
        except ValueError as error:
            raise ThreadFormatError(f"{place}: {error}.") from error

    return read


def several(read: Read) -> Read:
    """Return what reads an array."""

    def all_of(document: object, place: str) -> tuple[Any, ...]:
        if not isinstance(document, list):
            raise form_error(place, "an array", document)
        return tuple(read(each, f"{place}[{index}]") for index, each in enumerate(document))

    return all_of


def part_from_json(document: object, place: str) -> Part:
    """Read a part of a message."""
    kind = document.get("type") if isinstance(document, dict) else None
    made, required, optional = _PARTS[one_of(tuple(_PARTS))(kind, f"{place}.type")]
    make = _MADE_OTHERWISE.get(made, made)
    assert isinstance(document, dict)  # noqa: S101 - it has a type
    members = {name: value for name, value in document.items() if name != "type"}
    part: Part = record(make, required, optional)(members, place)
    return part


def _reasoning(**members: Any) -> Reasoning:
    if ("data" in members) == ("bytes" in members):
        raise ValueError('exactly one of "data" and "bytes" is needed')
    return Reasoning(members.get("bytes", members.get("data")), members.get("summary"), members.get("service", ""))


def _file(**members: Any) -> File:
    return File(members.get("data"), members["name"], members["media_type"], members.get("url"))


_MADE_OTHERWISE: dict[type[Any], Callable[..., Part]] = {Reasoning: _reasoning, File: _file}


def one_of(words: Sequence[str]) -> Read:
    """Return what reads one of these words."""

    def read(document: object, place: str) -> Any:
        if not isinstance(document, str) or document not in words:
            raise form_error(place, f"one of {', '.join(words)}", document)
        return document

    return read


def _reader(kind: type, words: str) -> Read:
    def read(document: object, place: str) -> Any:
        if type(document) is not kind:
            raise form_error(place, words, document)
        return document

    return read


text_from = _reader(str, "a string")
number_from = _reader(int, "a whole number")
_boolean = _reader(bool, "true or false")


def count_from(document: object, place: str) -> int:
    """Read a whole number of at least 0."""
    number: int = number_from(document, place)
    if number < 0:
        raise form_error(place, "a number of at least 0", document)
    return number


def _amount(document: object, place: str) -> float:
    if type(document) not in (int, float) or not 0 <= document < math.inf:  # type: ignore[operator]
        raise form_error(place, "a number of at least 0", document)
    return document  # type: ignore[return-value]


def _bytes(document: object, place: str) -> bytes:
    text = text_from(document, place)
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        data = b""
    # There is one way to write bytes, so that a thread is written again as it was.
    if _base64(data) != text:
        raise form_error(place, "bytes in Base64", text)
    return data


def _json(value: Any, place: str, depth: int = 0) -> Any:
    """Return a copy of a JSON value; raises ``ThreadFormatError`` for any other."""
    if depth > _DEEPEST_VALUE:
        raise ThreadFormatError(f"{place}: values nest deeper than {_DEEPEST_VALUE} levels.")
    kind = type(value)
    if kind in (str, int, bool, type(None)) or (kind is float and math.isfinite(value)):
        return value
    if kind is list:
        return [_json(each, f"{place}[{index}]", depth + 1) for index, each in enumerate(value)]
    if kind is dict and all(type(key) is str for key in value):
        return {key: _json(each, f"{place}.{key}", depth + 1) for key, each in value.items()}
    raise ThreadFormatError(f"{place}: JSON has no form for this {kind.__name__}.")


def form_error(place: str, expected: str, got: object) -> ThreadFormatError:
    """Return the error for a value of another form."""
    # A list may be nested too deeply for repr().
    shown = repr(got[:60]) if isinstance(got, str) else repr(got) if isinstance(got, int) else f"a {type(got).__name__}"
    return ThreadFormatError(f"{place}: expected {expected}, got {shown}.")


_PARTS: dict[str, tuple[type[Any], dict[str, Read], dict[str, Read]]] = {
    "text": (Text, {"text": text_from}, {}),
    "image": (Image, {"media_type": text_from}, {"data": _bytes, "url": text_from}),
    "file": (File, {"name": text_from, "media_type": text_from}, {"data": _bytes, "url": text_from}),
    "audio": (Audio, {"media_type": text_from}, {"data": _bytes, "url": text_from}),
    "source": (Source, {"number": number_from, "text": text_from}, {"name": text_from, "link": text_from}),
    "tool_call": (ToolCall, {"id": text_from, "name": text_from, "arguments": text_from}, {}),
    "tool_result": (ToolResult, {"id": text_from, "name": text_from, "content": text_from}, {"error": _boolean}),
    "reasoning": (Reasoning, {}, {"data": _json, "bytes": _bytes, "summary": text_from, "service": text_from}),
}
"""The parts of a message: their class, and how to read the fields that are required and those that are not."""
usage_from_json = record(Usage, {}, {**dict.fromkeys(_USAGE, count_from), "cost": _amount})
