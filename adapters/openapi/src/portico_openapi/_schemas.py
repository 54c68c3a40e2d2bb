"""Schemas of a document, OpenAPI 3.0 and 3.1 alike, to JSON Schema 2020-12 that stands for itself."""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from portico_openapi._documents import Documents, Target
from portico_openapi._schema_writing import Writing
from portico_openapi._wrong import Wrong, shown

Direction: TypeAlias = Literal["request", "response"]

_LONGEST_NAME = 64
_MOST_JOINED = 1_000_000


@dataclass(slots=True)
class _Definition:
    """A schema that references lead to, written once for all that need it."""

    name: str
    target: Target
    schema: Any = None
    problem: Wrong | None = None
    leads_to: dict[str, None] = field(default_factory=dict)
    """The definitions that it names, in order."""
    at_once: set[str] = field(default_factory=set)
    """Those of them that speak of the same value, not of a part of it."""


class Schemas:
    """Writes schemas of the documents anew. What requests need and what responses need are two families.

    A property that is ``readOnly`` is in no request, one that is ``writeOnly`` in no response.
    """

    def __init__(self, documents: Documents, *, old: bool) -> None:
        self.documents = documents
        self.old = old
        self._families: dict[Direction, _Family] = {
            "request": _Family(documents, "readOnly", old=old),
            "response": _Family(documents, "writeOnly", old=old),
        }

    def compile(self, schema: Any, base: str, direction: Direction) -> dict[str, Any]:
        """Return the schema with the definitions that it needs in ``$defs``, and no others.

        Raises `Wrong` with the place, seen from the schema given.
        """
        return self._families[direction].compile(schema, base)

    def standing_alone(self, part: Any, direction: Direction) -> dict[str, Any]:
        """Return a part of a compiled schema with those definitions that it needs itself."""
        return self._families[direction].standing_alone(part)


class _Family:
    def __init__(self, documents: Documents, hidden: str, *, old: bool) -> None:
        self._documents = documents
        self._hidden = hidden
        self._old = old
        self._definitions: dict[tuple[str, str], _Definition] = {}
        self._by_name: dict[str, _Definition] = {}
        self._waiting: deque[_Definition] = deque()
        self._clear: set[str] = set()
        self._allowance = [_MOST_JOINED]
        self._closures: dict[tuple[str, ...], Mapping[str, Any]] = {}

    def compile(self, schema: Any, base: str) -> dict[str, Any]:
        writing = self._writing()
        written = writing.write(schema, base, 0, at_once=True)
        self._finish()
        leads_to = dict(writing.leads_to)
        # What cannot be used is told before anything is made of it.
        self._closure(tuple(leads_to))
        if written is True:
            return {}
        if written is False:
            return {"not": {}}
        # A name says less than what it stands for: the first level is written out.
        while "$ref" in written:
            definition = self._by_name[written["$ref"].removeprefix("#/$defs/")]
            beside = {key: part for key, part in written.items() if key != "$ref"}
            if not isinstance(definition.schema, dict):
                return beside if definition.schema is True else {"not": {}}
            if set(definition.schema) & set(beside) - {"title", "description", "examples", "default", "deprecated"}:
                break
            written = {**definition.schema, **beside}
            del leads_to[definition.name]
            leads_to |= definition.leads_to
        definitions = self._closure(tuple(leads_to))
        return {**written, "$defs": definitions} if definitions else written

    def standing_alone(self, part: Any) -> dict[str, Any]:
        if not isinstance(part, dict):
            return {} if part else {"not": {}}
        names: dict[str, None] = {}
        stack: list[Any] = [part]
        while stack:
            inner = stack.pop()
            if isinstance(inner, dict):
                reference = inner.get("$ref")
                if isinstance(reference, str) and reference.removeprefix("#/$defs/") in self._by_name:
                    names[reference.removeprefix("#/$defs/")] = None
                stack += inner.values()
            elif isinstance(inner, list):
                stack += inner
        definitions = self._closure(tuple(names))
        return {**part, "$defs": definitions} if definitions else part

    def name(self, target: Target) -> str:
        """Return the name of the definition that a reference leads to; it is written later."""
        key = (target.uri, target.pointer)
        found = self._definitions.get(key)
        if found is None:
            name = stem = _stem(target)
            number = 1
            while name in self._by_name:
                number += 1
                name = f"{stem}_{number}"
            found = self._definitions[key] = self._by_name[name] = _Definition(name, target)
            self._waiting.append(found)
        return found.name

    def _writing(self) -> Writing:
        return Writing(self._documents, self.name, self._hidden, self._allowance, old=self._old)

    def _finish(self) -> None:
        fresh = []
        while self._waiting:
            definition = self._waiting.popleft()
            fresh.append(definition)
            writing = self._writing()
            try:
                definition.schema = writing.write(definition.target.value, definition.target.uri, 0, at_once=True)
            except Wrong as error:
                definition.problem = error
            definition.leads_to = writing.leads_to
            definition.at_once = writing.at_once
        for definition in fresh:
            self._refuse_circles(definition.name)

    def _refuse_circles(self, start: str) -> None:
        """Mark the definitions that lead back to themselves without going deeper into the value."""
        trail: list[str] = [start]
        on_trail = {start}
        stack = [iter(() if start in self._clear else sorted(self._by_name[start].at_once))]
        while stack:
            following = next(stack[-1], None)
            if following is None:
                stack.pop()
                done = trail.pop()
                on_trail.discard(done)
                self._clear.add(done)
            elif following in on_trail:
                for name in trail[trail.index(following) :]:
                    self._by_name[name].problem = Wrong("its references lead back to itself")
            elif following not in self._clear:
                trail.append(following)
                on_trail.add(following)
                stack.append(iter(sorted(self._by_name[following].at_once)))

    def _closure(self, names: tuple[str, ...]) -> Mapping[str, Any]:
        """Return all that these definitions need, themselves included. Raises `Wrong` when one cannot be used."""
        known = self._closures.get(names)
        if known is not None:
            return known
        found: dict[str, Any] = {}
        stack = list(reversed(names))
        while stack:
            definition = self._by_name[stack.pop()]
            if definition.name in found:
                continue
            if definition.problem is not None:
                raise Wrong(f"{shown(definition.target.pointer.lstrip('/') or 'a document')}: {definition.problem}")
            found[definition.name] = definition.schema
            stack.extend(reversed(definition.leads_to))
        self._closures[names] = found
        return found


def _stem(target: Target) -> str:
    """Return a name for a definition: the last word of its pointer, or its document's."""
    word = target.pointer.rpartition("/")[2] or target.uri.rpartition("/")[2].partition(".")[0]
    folded = unicodedata.normalize("NFKD", word.replace("~1", "_").replace("~0", "_"))
    return "_".join(re.findall(r"[0-9A-Za-z_]+", folded[:500]))[:_LONGEST_NAME] or "schema"
