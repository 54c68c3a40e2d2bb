"""Bytes to JSON values: which format it is, and what is not allowed in it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import yaml

from portico_openapi._wrong import Wrong, shown

MOST_NODES = 1_000_000
"""Values in a document, what aliases repeat counted each time."""

DEEPEST = 200

_Parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_TEXTS = frozenset({"!", f"{_TAG}str", f"{_TAG}timestamp", f"{_TAG}binary"})
_PLAIN = frozenset(f"{_TAG}{name}" for name in ("int", "float", "bool", "null"))
_CONTAINERS = frozenset({"!", f"{_TAG}map", f"{_TAG}seq"})
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NUMBERS_BEGIN = frozenset("+-.0123456789")
_LONGEST_NUMBER = 400
_NO_KEY = object()
_MERGE = object()


def read_yaml(text: str) -> Any:
    """Return the value of the only document in ``text``.

    Raises `Wrong` with the line for anything that is not YAML, for a tag that makes more than JSON values, and
    for a document whose aliases make it larger than 1,000,000 values or that nests deeper than 200 levels.
    """
    try:
        return _Composer().compose(yaml.parse(text, Loader=_Parser))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        # At its end the parser names the line after the last.
        line = min(mark.line, text.rstrip("\n").count("\n")) + 1 if mark else None
        raise Wrong(f"line {line}: {problem}" if line else problem) from error


class _Frame:
    """A list or an object that is not closed yet."""

    __slots__ = ("anchor", "key", "merged", "size", "value")

    def __init__(self, value: Any, anchor: str | None) -> None:
        self.value = value
        self.anchor = anchor
        self.key: Any = _NO_KEY
        self.merged: list[Any] = []
        self.size = 1


class _Composer:
    def __init__(self) -> None:
        self.stack: list[_Frame] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.documents: list[Any] = []

    def compose(self, events: Iterator[Any]) -> Any:
        for event in events:
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self.scalar(event)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self.start(event, {} if kind is yaml.MappingStartEvent else [])
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self.end(event)
            elif kind is yaml.AliasEvent:
                self.alias(event)
            elif kind is yaml.DocumentStartEvent and self.documents:
                raise Wrong(f"{_line(event)}: a second YAML document begins; one is expected")
        return self.documents[0] if self.documents else None

    def scalar(self, event: Any) -> None:
        frame = self.stack[-1] if self.stack else None
        if frame is not None and frame.key is _NO_KEY and type(frame.value) is dict:
            if event.anchor is not None:
                self.anchors[event.anchor] = (event.value, 1)
            plain_merge = event.value == "<<" and event.implicit[0] and event.tag is None
            frame.key = _MERGE if plain_merge else event.value
            return
        value = _resolved(event)
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, 1)
        self.add(value, 1, event)

    def start(self, event: Any, value: Any) -> None:
        if event.tag is not None and event.tag not in _CONTAINERS:
            raise Wrong(f"{_line(event)}: the tag {shown(event.tag)!r} is not one of JSON's kinds")
        if len(self.stack) >= DEEPEST:
            raise Wrong(f"{_line(event)}: it nests deeper than {DEEPEST} levels")
        frame = self.stack[-1] if self.stack else None
        if frame is not None and frame.key is _NO_KEY and type(frame.value) is dict:
            raise Wrong(f"{_line(event)}: a key is text, not a list or an object")
        if event.anchor is not None:
            # Until it is closed, an alias to it would make a circle.
            self.anchors.pop(event.anchor, None)
        self.stack.append(_Frame(value, event.anchor))

    def end(self, event: Any) -> None:
        frame = self.stack.pop()
        for merged in frame.merged:
            for key, value in merged.items():
                frame.value.setdefault(key, value)
        if frame.anchor is not None:
            self.anchors[frame.anchor] = (frame.value, frame.size)
        self.add(frame.value, frame.size, event)

    def alias(self, event: Any) -> None:
        if event.anchor not in self.anchors:
            raise Wrong(f"{_line(event)}: the alias {shown(event.anchor)!r} has no value before it")
        value, size = self.anchors[event.anchor]
        frame = self.stack[-1]
        if frame.key is _NO_KEY and type(frame.value) is dict:
            if type(value) is not str:
                raise Wrong(f"{_line(event)}: a key is text, not an alias of something else")
            frame.key = value
            return
        self.add(value, size, event)

    def add(self, value: Any, size: int, event: Any) -> None:
        if not self.stack:
            self.documents.append(value)
            return
        frame = self.stack[-1]
        frame.size += size
        if frame.size > MOST_NODES:
            raise Wrong(f"{_line(event)}: it holds more than {MOST_NODES:,} values, aliases counted")
        if type(frame.value) is list:
            frame.value.append(value)
            return
        key, frame.key = frame.key, _NO_KEY
        if key is _MERGE:
            parts = value if type(value) is list else [value]
            if any(type(part) is not dict for part in parts):
                raise Wrong(f"{_line(event)}: '<<' takes an object or a list of objects")
            frame.merged += parts
        else:
            frame.value[key] = value


def _resolved(event: Any) -> Any:
    """Return the value of a scalar."""
    word: str = event.value
    tag = event.tag
    if tag is None:
        if not event.implicit[0]:
            return word
    elif tag in _TEXTS:
        return word
    elif tag not in _PLAIN:
        raise Wrong(f"{_line(event)}: the tag {shown(tag)!r} is not one of JSON's kinds")
    if word in _WORDS:
        return _WORDS[word]
    if word[0] in _NUMBERS_BEGIN and len(word) <= _LONGEST_NUMBER:
        if _INTEGER.fullmatch(word):
            return int(word, 8 if word[:2] == "0o" else 16) if word[:2] in ("0o", "0x") else int(word)
        if _NUMBER.fullmatch(word) and math.isfinite(number := float(word)):
            return number
    return word


def _line(event: Any) -> str:
    return f"line {event.start_mark.line + 1}"


def parse(content: bytes, uri: str) -> tuple[dict[str, Any], list[str]]:
    """Read JSON or YAML; return the object and its references to other documents, as they are written.

    Raises `Wrong` for what is neither, is no object, or nests deeper than 200 levels. Of a key that stands twice the
    last value counts.
    """
    try:
        text = content.decode(json.detect_encoding(content))
    except UnicodeDecodeError as error:
        raise Wrong(f"it is not text: byte {error.start} is not {error.encoding.upper()}") from None
    text = text.removeprefix("\ufeff")
    beginning = text.lstrip()[:1]
    if not beginning:
        raise Wrong("it is empty")
    if beginning == "<":
        raise Wrong("it is HTML or XML, not JSON or YAML")
    named_json = uri.partition("?")[0].casefold().endswith(".json")
    if beginning in ("{", "[") or named_json:
        try:
            return _examined(read_json(text))
        except ValueError as error:
            if named_json:
                raise Wrong(f"it is not JSON: {error}") from error
    try:
        return _examined(read_yaml(text))
    except Wrong as error:
        formats = "neither JSON nor YAML" if beginning == "{" else "not YAML"
        raise Wrong(f"it is {formats}: {error}") from error


def read_json(text: str) -> Any:
    """Return the value of a JSON text. Raises ``ValueError``, also for one that nests too deeply."""
    try:
        return json.loads(text, parse_float=_number, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it nests too deeply") from None


def _number(text: str) -> float | str:
    """Read a number; one that no float can hold stays what it is, text."""
    number = float(text)
    return number if math.isfinite(number) else text


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")


def _examined(value: Any) -> tuple[dict[str, Any], list[str]]:
    """Walk once through everything: its depth and its references. Shared parts are seen once."""
    if type(value) is not dict:
        raise Wrong("it holds one value where an object is expected")
    outward: dict[str, None] = {}
    level: list[Any] = [value]
    seen: set[int] = set()
    for _ in range(DEEPEST + 1):
        following: list[Any] = []
        for part in level:
            reference = part.get("$ref") if type(part) is dict else None
            if type(reference) is str and reference[:1] != "#":
                outward[reference] = None
            for child in part.values() if type(part) is dict else part:
                if type(child) in (dict, list) and id(child) not in seen:
                    seen.add(id(child))
                    following.append(child)
        if not following:
            return value, list(outward)
        level = following
    raise Wrong(f"it nests deeper than {DEEPEST} levels")
