"""Bytes to JSON values: which format it is, and what is not allowed in it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any, NoReturn
from urllib.parse import urljoin

from portico_openapi._wrong import Twice, Wrong

DEEPEST = 200
_MOST_REFERENCES = 100_000


@dataclass(slots=True)
class Parsed:
    """A document's value, and what is needed to follow the references in it and into it."""

    value: Any
    outward: dict[str, None] = field(default_factory=dict)
    """References to other documents, as they are written, in order."""
    anchors: dict[str, Any] = field(default_factory=dict)
    """Schemas by ``$anchor``."""
    identified: dict[str, Any] = field(default_factory=dict)
    """Schemas by ``$id``, made absolute."""


def parse(content: bytes, uri: str) -> Parsed:
    """Read JSON or YAML. Raises `Wrong` where it is neither, or nests deeper than 200 levels."""
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
            return _examined(_json(text), uri)
        except ValueError as error:
            if named_json:
                raise Wrong(f"it is not JSON: {error}") from error
    from portico_openapi._yaml import read_yaml

    try:
        return _examined(read_yaml(text), uri)
    except Wrong as error:
        formats = "neither JSON nor YAML" if beginning == "{" else "not YAML"
        raise Wrong(f"it is {formats}: {error}") from error


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object, parse_float=_number, parse_constant=_refuse)
    except RecursionError:
        raise Wrong(f"it nests deeper than {DEEPEST} levels") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                made[key] = Twice(key)
            seen.add(key)
    return made


def _number(text: str) -> float | str:
    """Read a number; one that no float can hold stays what it is, text."""
    number = float(text)
    return number if math.isfinite(number) else text


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")


def _examined(value: Any, uri: str) -> Parsed:
    """Walk once through everything: its depth, its references, its anchors. Shared parts are seen once."""
    if type(value) is not dict:
        raise Wrong("it holds one value where an object is expected")
    parsed = Parsed(value)
    level: list[Any] = [value]
    depth = 0
    seen: set[int] = set()
    while level:
        if depth > DEEPEST:
            raise Wrong(f"it nests deeper than {DEEPEST} levels")
        depth += 1
        following: list[Any] = []
        for part in level:
            if type(part) is dict:
                _note(part, uri, parsed)
                children: Any = part.values()
            else:
                children = part
            for child in children:
                kind = type(child)
                if (kind is dict or kind is list) and id(child) not in seen:
                    seen.add(id(child))
                    following.append(child)
        level = following
    return parsed


def _note(part: dict[str, Any], uri: str, parsed: Parsed) -> None:
    reference = part.get("$ref")
    if type(reference) is str and reference[:1] != "#":
        parsed.outward[reference] = None
        if len(parsed.outward) > _MOST_REFERENCES:
            raise Wrong(f"it has more than {_MOST_REFERENCES:,} references to other documents")
    for keyword in ("$anchor", "$dynamicAnchor"):
        if type(anchor := part.get(keyword)) is str:
            parsed.anchors.setdefault(anchor, part)
    if type(identity := part.get("$id")) is str:
        try:
            parsed.identified.setdefault(urljoin(uri, identity.rstrip("#")), part)
        except ValueError:
            return
