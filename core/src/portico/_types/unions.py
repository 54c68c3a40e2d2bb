"""Unions of types, and which member reads a JSON value."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from itertools import combinations
from typing import Any

from portico._schema.compare import pieces
from portico._schema.values import ANNOTATIONS
from portico._types.classes import QUALIFIERS
from portico._types.compiled import Compiled, Fault, Mismatch, common_draft, draft_of, may_become
from portico.errors import SchemaUnsupported

OUTCOMES: ContextVar[dict[tuple[int, int], Any] | None] = ContextVar("portico_union_outcomes", default=None)
"""What came of trying each union on each part of the value that is being structured.

Without it, members that fit alike would be tried again on every level of a deep value, each time twice as often.
"""

_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}
_LATER = [
    *(("string", name) for name in ("decimal", "date", "date-time", "time", "uuid", None)),
    ("any", None),
    ("number", None),
    ("null", None),
]
"""Types and formats, each after those whose values it takes, too. Any leaves a number as it is, a float does not."""
_PLAIN_TYPES = (str, int, float)


class UnionOf:
    """A union of types, compiled in two steps: first its members, then, when all they refer to is known, `settle`.

    A JSON value is read by the first member that takes it. Members that take fewer values come first: a literal
    before a date, a date before a string, an integer before a number. Of classes, the one comes first of which the
    object has the most keys and lacks the fewest. What still fits several is read as the first in the hint: under
    ``date | str``, the string "2024-01-01" comes back as a date.

    Raises ``SchemaUnsupported`` where two members have the same schema, so that one of them would never be read.
    """

    def __init__(
        self,
        hints: Sequence[object],
        members: Sequence[Compiled],
        definitions: Mapping[str, Any],
        otherwise: Callable[[Any], Any],
    ) -> None:
        hints = [_bare(hint) for hint in hints]
        for (hint, member), (other_hint, other) in combinations(zip(hints, members, strict=True), 2):
            if hint != other_hint and _words(member.schema) == _words(other.schema):
                raise SchemaUnsupported(
                    f"A union cannot hold {_name(hint)} and {_name(other_hint)}: their JSON is the same. "
                    "Use one of them alone, or give each a class with its own Literal field."
                )
        kinds = [_python_type(hint) for hint in hints]
        self.writers = {
            kind: member.unstructure
            for kind, member in zip(kinds, members, strict=True)
            if kind is not None and kinds.count(kind) == 1
        }
        self.members = sorted(members, key=lambda member: _turn(member.schema))
        self.schemas = [member.schema for member in self.members]
        self.definitions = definitions
        self.otherwise = otherwise
        self.by_type: dict[type, list[Callable[[Any], Any]]] = {}
        schema = {"anyOf": [member.schema for member in members]}
        self.compiled = Compiled(schema, self.structure, self.unstructure, self.draft)

    def settle(self) -> None:
        """Find the members for each type of JSON value."""
        root = {"$defs": self.definitions}
        exact = any(not _words(schema) or schema.get("type") == "number" for schema in self.schemas)
        for member in self.members:
            for kind in dict.fromkeys(piece.kind for piece in pieces(((member.schema, root),))):
                for taken in _PYTHON_TYPES[kind]:
                    # Beside a float or Any, an integer is one that is written so: 1.0 stays 1.0.
                    if taken is not float or not exact or member.schema.get("type") != "integer":
                        self.by_type.setdefault(taken, []).append(member.structure)

    def structure(self, value: Any) -> Any:
        """Read a value by the first member that takes it."""
        kind = type(value)
        fitting = self.by_type.get(kind, ())
        if kind is dict or kind is list:
            return fitting[0](value) if len(fitting) == 1 else self._try_once(value)
        for structure in fitting:
            try:
                return structure(value)
            except Mismatch:
                continue
        return self._try_members(value)

    def _try_once(self, value: Any) -> Any:
        outcomes = OUTCOMES.get()
        if outcomes is None:
            return self._try_members(value)
        key = (id(value), id(self))
        if key not in outcomes:
            try:
                outcomes[key] = self._try_members(value)
            except Mismatch as error:
                outcomes[key] = error
        if isinstance(outcomes[key], Mismatch):
            raise outcomes[key]
        return outcomes[key]

    def _try_members(self, value: Any) -> Any:
        faults: dict[Fault, None] = {}
        for index in Compiled.likely(self.schemas, value, self.definitions):
            try:
                return self.members[index].structure(value)
            except Mismatch as error:
                faults |= dict.fromkeys(error.faults)
        expected = " or ".join(dict.fromkeys(fault.expected for fault in faults if not fault.path))
        if expected and not any(fault.path for fault in faults):
            Mismatch.refuse(expected, value)
        raise Mismatch([fault for fault in faults if fault.path] or list(faults))

    def unstructure(self, value: Any) -> Any:
        """Write a value by the member that it is of."""
        write = self.writers.get(type(value))
        if write is not None:
            return write(value)
        for member in self.members:
            # A member that cannot write the value, in whatever way it fails, is not the one.
            with suppress(Exception):
                written = member.unstructure(value)
                read = member.structure(written)
                if type(read) is type(value) and read == value:
                    return written
        for kind, write in self.writers.items():
            if isinstance(value, kind) and kind not in _PLAIN_TYPES:
                return write(value)
        return self.otherwise(value)

    def draft(self, value: Any) -> Any:
        """Make a draft by the one member that an unfinished value may become."""
        try:
            return self.structure(value)
        except Mismatch:
            possible = [member for member in self.members if may_become(member.schema, value, self.definitions)]
            return common_draft(map(draft_of, possible), value)


def _words(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {word: argument for word, argument in schema.items() if word not in ANNOTATIONS}


def _turn(schema: Mapping[str, Any]) -> int:
    """Return when a member is tried: 0 for the first, more for what takes more values."""
    inner = schema.get("items", schema.get("additionalProperties"))
    if isinstance(inner, Mapping):
        return _turn(inner)
    words = (schema.get("type"), schema.get("format")) if _words(schema) else ("any", None)
    return 1 + _LATER.index(words) if words in _LATER and "enum" not in schema else 0


def _bare(hint: Any) -> Any:
    while True:
        origin = typing.get_origin(hint)
        if origin is typing.Annotated or origin in QUALIFIERS:
            hint = typing.get_args(hint)[0]
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        else:
            return types.NoneType if hint is None else hint


def _python_type(hint: Any) -> type | None:
    """Return the class that values of a hint have; None where that is not one class."""
    kind = typing.get_origin(hint) or hint
    if typing.is_typeddict(kind):
        return dict
    return kind if isinstance(kind, type) and kind not in (Any, object, types.UnionType) else None


def _name(hint: Any) -> str:
    return str(getattr(hint, "__qualname__", hint))
