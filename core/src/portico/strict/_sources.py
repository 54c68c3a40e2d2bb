"""The parts of a JSON Schema by their JSON pointers, and what several of them ask of one value."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

from portico.errors import SchemaUnsupported

__all__ = ["Gathered", "Key", "Sources", "unsupported"]

Key: TypeAlias = tuple[frozenset[str], frozenset[str]]

_LEVELS = 200
_PARTS = 100_000
_CONSTRAINING = """
    type enum const minimum maximum exclusiveMinimum exclusiveMaximum multipleOf pattern format minLength maxLength
    items prefixItems minItems maxItems uniqueItems contains unevaluatedItems properties required additionalProperties
    patternProperties propertyNames minProperties maxProperties dependentRequired dependentSchemas dependencies
    unevaluatedProperties
"""
_CONSTRAINTS = frozenset(_CONSTRAINING.split())
"""What restricts the kind of a value, or values of one kind."""
_UNCONSTRAINING = """
    title description default examples example deprecated readOnly writeOnly discriminator externalDocs
    contentEncoding contentMediaType contentSchema $comment $schema $id $anchor $dynamicAnchor $vocabulary $defs
    definitions $ref allOf anyOf oneOf then else minContains maxContains additionalItems
"""
_SILENT = frozenset(_UNCONSTRAINING.split())
"""Annotations, what is read by name, and what means nothing without the keyword that it belongs to."""


def unsupported(pointer: str, rule: str) -> NoReturn:
    """Raise the error of a schema that has no strict form."""
    raise SchemaUnsupported(f"The schema has no strict form: at {pointer}, {rule}.")


@dataclass(slots=True)
class Gathered:
    """What several schemas ask of one value: the same as all of ``allOf``, taken apart.

    ``bases`` are the pointers of the schemas with constraints of their own, ``groups`` the alternatives (by the
    pointer of their keyword), ``references`` the definitions that a value must fit as well.
    """

    bases: dict[str, None] = field(default_factory=dict)
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    references: dict[str, None] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    impossible: bool = False

    @property
    def key(self) -> Key:
        """Name what is asked: equal keys are the same question."""
        return frozenset(self.bases), frozenset(self.groups)


class Sources:
    """A schema and its parts by JSON pointer (RFC 6901), as a fragment: ``#/properties/a``.

    Raises ``SchemaUnsupported`` for a part that is malformed, and for a schema of more than 200 levels or
    100,000 parts.
    """

    def __init__(self, root: Any) -> None:
        _refuse_excess(root)
        self._schemas: dict[str, Any] = {"#": root}
        self._leads: dict[str, list[str]] = {}
        self._compound: dict[str, dict[str, tuple[str, ...]]] = {}
        self.loosened: dict[str, None] = {}
        """What the strict form does not hold, each a sentence; a dictionary for its order."""
        self.repeated = 0
        """How often a part was gathered again: what merging costs, since each part is otherwise gathered once."""

    def loosen(self, place: str, reason: str) -> None:
        """Note that a keyword is not held."""
        self.loosened[f"{place} is not held: {reason}"] = None

    def at(self, pointer: str) -> Any:
        """Return the schema at a place: true, false or a mapping."""
        schema = self._schemas[pointer]
        if not isinstance(schema, bool | Mapping):
            unsupported(pointer, f"a JSON Schema is an object, true or false, not {type(schema).__name__}")
        return schema

    def _known(self, pointer: str, schema: Any) -> str:
        self._schemas.setdefault(pointer, schema)
        return pointer

    def child(self, pointer: str, keyword: str) -> str:
        """Return the pointer of the one schema under a keyword."""
        return self._known(f"{pointer}/{keyword}", self.at(pointer)[keyword])

    def named(self, pointer: str, keyword: str) -> dict[str, str]:
        """Return the pointers of the schemas by name under a keyword; none where it is missing."""
        members = self.at(pointer).get(keyword, {})
        if not isinstance(members, Mapping) or not all(isinstance(name, str) for name in members):
            unsupported(f"{pointer}/{keyword}", "an object with a schema for each name is expected")
        place = f"{pointer}/{keyword}"
        return {name: self._known(f"{place}/{_escaped(name)}", member) for name, member in members.items()}

    def listed(self, pointer: str, keyword: str) -> tuple[str, ...]:
        """Return the pointers of the schemas in the array under a keyword; none where it is missing."""
        members = self.array(pointer, keyword)
        return tuple(self._known(f"{pointer}/{keyword}/{index}", member) for index, member in enumerate(members))

    def array(self, pointer: str, keyword: str) -> Sequence[Any]:
        """Return the array under a keyword; an empty one where it is missing."""
        members = self.at(pointer).get(keyword, ())
        if not isinstance(members, list | tuple):
            unsupported(f"{pointer}/{keyword}", "an array is expected")
        return members

    def words(self, pointer: str, keyword: str) -> Sequence[str]:
        """Return the array of strings under a keyword; an empty one where it is missing."""
        members = self.array(pointer, keyword)
        if not all(isinstance(member, str) for member in members):
            unsupported(f"{pointer}/{keyword}", "an array of strings is expected")
        return members

    def number(self, pointer: str, keyword: str, *, count: bool = False) -> Any:
        """Return the number under a keyword, None where it is missing; ``count`` asks for an integer of at least 0."""
        value = self.at(pointer).get(keyword)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            unsupported(f"{pointer}/{keyword}", f"a number is expected, not {value!r}")
        if count and (value < 0 or value != int(value)):
            unsupported(f"{pointer}/{keyword}", f"an integer of at least 0 is expected, not {value!r}")
        return int(value) if count else value

    def gather(
        self, pointers: Sequence[str], bases: Sequence[str] = (), groups: Mapping[str, tuple[str, ...]] | None = None
    ) -> Gathered:
        """Collect what all of these schemas ask, and what is left of an earlier collection.

        One lone reference stays one. Beside a constraint it is followed, since the two must be read together.
        """
        found = Gathered(dict.fromkeys(bases), dict(groups or {}))
        for pointer in pointers:
            self._add(found, pointer)
        followed: set[str] = set()
        while found.references and (found.bases or found.groups or followed or len(found.references) > 1):
            references, found.references = found.references, {}
            for target in references:
                followed.add(target)
                self._add(found, target)
        return found

    def _add(self, found: Gathered, pointer: str) -> None:
        if pointer in found.seen:
            return
        found.seen.add(pointer)
        self.repeated += pointer in self._leads
        schema = self.at(pointer)
        if schema is False:
            found.impossible = True
        if isinstance(schema, bool):
            return
        for note in ("title", "description"):
            if isinstance(schema.get(note), str):
                found.notes.setdefault(note, schema[note])
        self._note_what_is_dropped(found, pointer, schema)
        groups = {f"{pointer}/{word}": self.listed(pointer, word) for word in ("anyOf", "oneOf") if word in schema}
        groups |= self._compound_values(pointer)
        found.groups |= groups
        if _CONSTRAINTS & self.at(pointer).keys():
            found.bases[pointer] = None
        leads = self._leads[pointer] = [option for options in groups.values() for option in options]
        for part in self.listed(pointer, "allOf"):
            leads.append(part)
            self._add(found, part)
        if "$ref" in schema:
            target = self._target(pointer, schema["$ref"])
            leads.append(target)
            found.references[target] = None

    def _note_what_is_dropped(self, found: Gathered, pointer: str, schema: Mapping[str, Any]) -> None:
        for word in schema:
            if word in _SILENT or word in _CONSTRAINTS or str(word).startswith("x-"):
                continue
            if word == "not" and schema[word] in (True, {}):
                found.impossible = True
            elif not (word == "not" and schema[word] is False):
                self.loosen(f"{pointer}/{_escaped(str(word))}", "strict mode has no such keyword")

    def _compound_values(self, pointer: str) -> dict[str, tuple[str, ...]]:
        """Turn arrays and objects in an enumeration into schemas: strict mode takes plain values only."""
        if pointer in self._compound:
            return self._compound[pointer]
        schema = self.at(pointer)
        groups: dict[str, tuple[str, ...]] = {}
        for word in ("enum", "const"):
            values = self.array(pointer, "enum") if word == "enum" else [schema["const"]] if word in schema else []
            plain = [value for value in values if not isinstance(value, Mapping | list | tuple)]
            if len(plain) == len(values):
                continue
            place = f"{pointer}/{word}"
            options = [self._known(f"{place}/plain", {"enum": plain})] if plain else []
            for index, value in enumerate(values):
                if isinstance(value, Mapping | list | tuple):
                    options.append(self._known(f"{place}/{index}", _exactly(value)))
            groups[place] = tuple(options)
            schema = {key: value for key, value in schema.items() if key != word}
        self._schemas[pointer] = schema
        self._compound[pointer] = groups
        return groups

    def _target(self, pointer: str, reference: Any) -> str:
        if not isinstance(reference, str):
            unsupported(f"{pointer}/$ref", "a string is expected")
        if reference != "#" and not reference.startswith("#/"):
            unsupported(f"{pointer}/$ref", f"{reference!r} is no reference to a place in this schema")
        if any("$id" in found for outer in _outer(pointer) if isinstance(found := self._schemas.get(outer), Mapping)):
            unsupported(f"{pointer}/$ref", "references inside a part with an $id of its own are not followed")
        target = "#"
        for token in urllib.parse.unquote(reference).split("/")[1:]:
            outer = self._schemas[target]
            name = token.replace("~1", "/").replace("~0", "~")
            if isinstance(outer, Mapping) and name in outer:
                found = outer[name]
            elif isinstance(outer, list) and re.fullmatch(r"0|[1-9]\d{0,8}", name) and int(name) < len(outer):
                found = outer[int(name)]
            else:
                unsupported(f"{pointer}/$ref", f"{reference!r} leads nowhere")
            target = f"{target}/{_escaped(name)}"
            self._known(target, found)
        self.at(target)
        return target

    def refuse_loops(self) -> None:
        """Refuse schemas that lead back to themselves: no value is the deeper for following them."""
        clear: set[str] = set()
        for start in self._leads:
            if start in clear:
                continue
            trail, stack = {start: None}, [iter(self._leads[start])]
            while stack:
                following = next(stack[-1], None)
                if following is None:
                    stack.pop()
                    clear.add(trail.popitem()[0])
                elif following in trail:
                    unsupported(following, "the schema leads to itself")
                elif following not in clear:
                    trail[following] = None
                    stack.append(iter(self._leads.get(following, ())))


def _exactly(value: Any) -> dict[str, Any]:
    """Write the schema of one array or object without ``const``."""
    if isinstance(value, Mapping):
        members = {name: {"const": element} for name, element in value.items()}
        return {"type": "object", "properties": members, "required": list(value), "additionalProperties": False}
    elements = [{"const": element} for element in value]
    return {"type": "array", "prefixItems": elements, "minItems": len(elements), "maxItems": len(elements)}


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _outer(pointer: str) -> list[str]:
    """List the places around a place and itself, without the root."""
    tokens = pointer.split("/")
    return ["/".join(tokens[:count]) for count in range(2, len(tokens) + 1)]


def _refuse_excess(root: Any) -> None:
    """Walk over everything once, without recursion: a schema may even contain itself."""
    parts = 0
    level = [root]
    # A level of a schema is two of JSON where its name stands between, as in `properties`.
    for _ in range(2 * _LEVELS + 1):
        following: list[Any] = []
        for part in level:
            members = part.values() if isinstance(part, Mapping) else part if isinstance(part, list | tuple) else ()
            following.extend(members)
        parts += len(following)
        if parts > _PARTS:
            unsupported("#", f"the schema has more than {_PARTS:,} parts")
        if not following:
            return
        level = following
    unsupported("#", f"the schema is deeper than {_LEVELS} levels")
