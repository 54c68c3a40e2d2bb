"""The documents of one description, and what a reference between them leads to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from portico_openapi._parsing import Parsed
from portico_openapi._wrong import Twice, Wrong, shown

_MOST_HOPS = 50
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


class Target(NamedTuple):
    """What a reference leads to: the value, the document it stands in, and its name there."""

    value: Any
    uri: str
    pointer: str


class Documents:
    """The root document and all that it refers to, read already: following a reference opens nothing.

    >>> root = Parsed({"a": {"b/c": [1, 2]}})
    >>> Documents("file:///d.json", {"file:///d.json": root}, {}).resolve("#/a/b~1c/1", "file:///d.json").value
    2
    """

    def __init__(self, root: str, parsed: Mapping[str, Parsed], failures: Mapping[str, str]) -> None:
        self.root_uri = root
        self.root: dict[str, Any] = parsed[root].value
        self._parsed = parsed
        self._failures = failures
        self._identified = {id: (uri, value) for uri, one in parsed.items() for id, value in one.identified.items()}
        self._known: dict[tuple[str, str], Target] = {}
        self._hops = _MOST_HOPS

    def resolve(self, reference: Any, base: str) -> Target:
        """Return what ``reference`` in the document ``base`` leads to. Raises `Wrong` when that is nothing."""
        if type(reference) is not str:
            problem = str(reference) if type(reference) is Twice else "a reference is text"
            raise Wrong(problem, ("$ref",))
        known = self._known.get((base, reference))
        if known is None:
            self._hops = _MOST_HOPS
            known = self._known[base, reference] = self._resolved(reference, base)
        return known

    def follow(self, value: Any, base: str, *, texts: bool = True) -> Target:
        """Follow the reference that may stand for an object, and those behind it, to the object itself.

        In OpenAPI 3.1 ``summary`` and ``description`` beside a reference take the place of the object's own.
        """
        target = Target(value, base, "")
        beside: dict[str, Any] = {}
        for _ in range(_MOST_HOPS):
            if type(target.value) is not dict or "$ref" not in target.value:
                break
            if texts:
                own = {key: target.value[key] for key in ("summary", "description") if key in target.value}
                beside = {**own, **beside}
            target = self.resolve(target.value["$ref"], target.uri)
        else:
            raise Wrong(f"its references lead to each other, or through more than {_MOST_HOPS} others", ("$ref",))
        if beside and type(target.value) is dict:
            return target._replace(value={**target.value, **beside})
        return target

    def _resolved(self, reference: str, base: str) -> Target:
        try:
            uri, fragment = urldefrag(urljoin(base, reference) if reference[:1] != "#" else base + reference)
            fragment = unquote(fragment, errors="strict")
        except ValueError:
            raise Wrong(f"{shown(reference)!r} is no reference", ("$ref",)) from None
        if uri in self._identified and uri not in self._parsed:
            uri, value = self._identified[uri]
            if fragment:
                raise Wrong(f"{shown(reference)!r} leads into a schema with an `$id`; that is not followed", ("$ref",))
            return Target(value, uri, f"$id {reference}")
        if uri not in self._parsed:
            raise Wrong(f"{shown(reference)!r}: {self._failures.get(uri, 'the document was not read')}", ("$ref",))
        parsed = self._parsed[uri]
        if fragment and fragment[0] != "/":
            if fragment not in parsed.anchors:
                raise Wrong(f"{shown(reference)!r} leads nowhere: there is no such anchor", ("$ref",))
            return Target(parsed.anchors[fragment], uri, f"#{fragment}")
        return self._at(Target(parsed.value, uri, ""), fragment, reference)

    def _at(self, start: Target, pointer: str, reference: str) -> Target:
        """Walk a JSON Pointer (RFC 6901); what stands behind a reference on the way counts too."""
        value = start.value
        tokens = pointer.split("/")[1:]
        for number, token in enumerate(tokens):
            key = token.replace("~1", "/").replace("~0", "~")
            if type(value) is dict and key in value:
                value = value[key]
            elif type(value) is list and _INDEX.fullmatch(key) and int(key) < len(value):
                value = value[int(key)]
            elif type(value) is dict and type(value.get("$ref")) is str and self._hops:
                self._hops -= 1
                behind = self._resolved(value["$ref"], start.uri)
                return self._at(behind, "".join(f"/{part}" for part in tokens[number:]), reference)
            else:
                raise Wrong(f"{shown(reference)!r} leads nowhere: there is no {shown(key)!r}", ("$ref",))
        return Target(value, start.uri, start.pointer + pointer)
