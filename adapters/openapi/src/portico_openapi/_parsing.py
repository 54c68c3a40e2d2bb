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


def read_yaml(text: str) -> Any:
    """Return the value of the only document in ``text``.

    Raises `Wrong` with the line for anything that is not YAML, for a tag that makes more than JSON values, and
    for a document whose aliases make it larger than 1,000,000 values or that nests deeper than 200 levels.
    """
    try:
        return _Composer(yaml.parse(text, Loader=_Parser)).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        # At its end the parser names the line after the last.
        line = min(mark.line, text.rstrip("\n").count("\n")) + 1 if mark else None
        raise Wrong(f"line {line}: {problem}" if line else problem) from error


class _Composer:
    """Makes JSON values of YAML's events: the composer of the library has no bounds and ends the process."""

    def __init__(self, events: Iterator[Any]) -> None:
        self.events = events
        self.anchors: dict[str, tuple[Any, int]] = {}
        """The values that aliases stand for, with their sizes. A circle has none: its value is not made yet."""

    def document(self) -> Any:
        """Return the value of the only document; None for none."""
        documents: list[Any] = []
        for event in self.events:
            if type(event) is yaml.DocumentStartEvent:
                if documents:
                    raise Wrong(f"{_line(event)}: a second YAML document begins; one is expected")
                documents.append(self.value(next(self.events), 0)[0])
        return documents[0] if documents else None

    def value(self, event: Any, depth: int) -> tuple[Any, int]:
        """Return the value that an event begins, and the number of values in it, aliases counted."""
        if type(event) is yaml.AliasEvent:
            if event.anchor not in self.anchors:
                raise Wrong(f"{_line(event)}: the alias {shown(event.anchor)!r} has no value before it")
            return self.anchors[event.anchor]
        made: tuple[Any, int]
        if type(event) is yaml.ScalarEvent:
            made = _resolved(event), 1
        elif event.tag is not None and event.tag not in _CONTAINERS:
            raise Wrong(f"{_line(event)}: the tag {shown(event.tag)!r} is not one of JSON's kinds")
        elif depth >= DEEPEST:
            raise Wrong(f"{_line(event)}: it nests deeper than {DEEPEST} levels")
        else:
            self.anchors.pop(event.anchor, None)
            made = self.mapping(depth) if type(event) is yaml.MappingStartEvent else self.sequence(depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = made
        return made

    def sequence(self, depth: int) -> tuple[list[Any], int]:
        made: list[Any] = []
        size = 1
        while type(event := next(self.events)) is not yaml.SequenceEndEvent:
            value, more = self.value(event, depth + 1)
            size = _bounded(size + more, event)
            made.append(value)
        return made, size

    def mapping(self, depth: int) -> tuple[dict[str, Any], int]:
        made: dict[str, Any] = {}
        merged: list[Any] = []
        size = 1
        while type(event := next(self.events)) is not yaml.MappingEndEvent:
            is_merge = type(event) is yaml.ScalarEvent and event.value == "<<" and event.implicit[0]
            key = self.key(event)
            value, more = self.value(next(self.events), depth + 1)
            size = _bounded(size + more, event)
            if is_merge:
                parts = value if type(value) is list else [value]
                if any(type(part) is not dict for part in parts):
                    raise Wrong(f"{_line(event)}: '<<' takes an object or a list of objects")
                merged += parts
            else:
                made[key] = value
        for part in merged:
            for key, value in part.items():
                made.setdefault(key, value)
        return made, size

    def key(self, event: Any) -> str:
        """Return a key: its text as it is written, or the text that an alias stands for."""
        if type(event) is yaml.ScalarEvent:
            if event.anchor is not None:
                self.anchors[event.anchor] = event.value, 1
            return str(event.value)
        if type(event) is yaml.AliasEvent:
            value, _ = self.value(event, 0)
            if type(value) is str:
                return value
        raise Wrong(f"{_line(event)}: a key is text, not a list or an object")


def _bounded(size: int, event: Any) -> int:
    if size > MOST_NODES:
        raise Wrong(f"{_line(event)}: it holds more than {MOST_NODES:,} values, aliases counted")
    return size


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
