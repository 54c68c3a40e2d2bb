"""Whether what a JSON Schema refers to is in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

__all__ = ["lost_references"]

_DATA = frozenset({"const", "default", "enum", "examples"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "dependentSchemas"})
"""Keywords that have a schema for each name; a name may be one that is a keyword elsewhere."""
_INDEX = re.compile("0|[1-9][0-9]*")
_BARE_TILDE = re.compile("~(?![01])")


def lost_references(schema: Mapping[str, Any]) -> list[str]:
    """Return each ``$ref`` that leads to no schema within this one.

    A reference is a JSON pointer in the form of a URI fragment (RFC 6901, section 6), or the name of an ``$anchor``.

    >>> schema = {"$defs": {"a/b": {}, "é": {"items": [True]}}, "enum": [{"$ref": "data"}]}
    >>> lost_references({**schema, "anyOf": [{"$ref": "#/$defs/a~1b"}, {"$ref": "#/%24defs/%C3%A9/items/0"}]})
    []
    >>> lost_references({**schema, "anyOf": [{"$ref": "#/$defs/a/b"}, {"$ref": "#/$defs/é/items/00"}]})
    ['#/$defs/a/b', '#/$defs/é/items/00']
    """
    parts = list(_schemas(schema))
    anchors = {anchor for part in parts for anchor in (part.get("$anchor"), part.get("$dynamicAnchor")) if anchor}
    references = [reference for part in parts if isinstance(reference := part.get("$ref"), str)]
    return [reference for reference in references if not _is_found(reference, schema, anchors)]


def _schemas(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and those in it; what only looks like one is data."""
    if isinstance(schema, list):
        for part in schema:
            yield from _schemas(part)
    elif isinstance(schema, Mapping):
        yield schema
        for key, part in schema.items():
            if key in _NAMED and isinstance(part, Mapping):
                for inner in part.values():
                    yield from _schemas(inner)
            elif key not in _DATA:
                yield from _schemas(part)


def _is_found(reference: str, root: Mapping[str, Any], anchors: set[Any]) -> bool:
    address, _, fragment = reference.partition("#")
    if address:
        return False  # Nobody fetches another document for a model.
    try:
        pointer = unquote_to_bytes(fragment).decode()
    except UnicodeError:
        return False
    if pointer and not pointer.startswith("/"):
        return pointer in anchors
    found: Any = root
    for token in pointer.split("/")[1:]:
        if _BARE_TILDE.search(token):
            return False
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and name in found:
            found = found[name]
        elif isinstance(found, Sequence) and not isinstance(found, str) and _INDEX.fullmatch(name):
            if int(name) >= len(found):
                return False
            found = found[int(name)]
        else:
            return False
    return isinstance(found, Mapping | bool)
