"""Classes with fields, as JSON objects or arrays: what the codecs of attrs and msgspec share.

Neither library's own structuring is used: cattrs and ``msgspec.convert`` cannot call back for the types inside
through all codecs, the first takes "5" for 5 unless every type gets a hook, the second stops at the first fault.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from portico.plugins import Compiled, Fault, Mismatch
from portico_basics.type_codecs._faults import got, reason

EMPTY = (list, dict, set, frozenset, tuple, str, int, float, bool)
"""Factories that make the same each time, so that the default can be told."""


@dataclass(frozen=True, slots=True)
class Member:
    """A field: its key in JSON, its attribute, the argument that it is made with, its type, and that compiled.

    ``default`` is empty, or holds the default that its schema shows. ``left_out`` tells the values that are not
    written.
    """

    key: str
    attribute: str
    argument: str
    hint: Any
    compiled: Compiled
    required: bool
    default: tuple[Any, ...] = ()
    left_out: Callable[[Any], bool] | None = None

    def schema(self, documentation: Any) -> Mapping[str, Any]:
        """Return the schema with the field's default and what the class's docstring says of it."""
        keywords = self._shown_default(*self.default) if self.default else {}
        text = documentation.parameters.get(self.attribute)
        if text and not any(isinstance(each, str) for each in getattr(self.hint, "__metadata__", ())):
            keywords["description"] = text
        return {**self.compiled.schema, **keywords} if keywords else self.compiled.schema

    def _shown_default(self, default: Any) -> dict[str, Any]:
        shown = self.compiled.json_default(default)
        if shown or typing.get_origin(self.hint) not in (typing.Union, types.UnionType):
            return shown
        # A union reads nothing before all types are compiled.
        if default is None:
            return {"default": None} if types.NoneType in typing.get_args(self.hint) else {}
        return replace(self.compiled, structure=lambda value: value).json_default(default)


@dataclass(frozen=True, slots=True)
class Record:
    """A class with fields.

    ``make`` takes the fields by argument and may raise anything, of which ``explain`` tells the places.
    ``blank`` makes a value of some of the fields, None in place of required ones that are missing, for
    drafts. ``tag`` is a key with the one value that it has.
    """

    kind: type
    members: Sequence[Member]
    make: Callable[[dict[str, Any]], Any]
    explain: Callable[[dict[str, Any], Exception], list[Fault]]
    blank: Callable[[dict[str, Any]], Any]
    tag: tuple[str, str | int] | None = None


def as_object(record: Record) -> Compiled:
    """Compile a record to a JSON object with these keys and no others."""
    members, tag = {member.key: member for member in record.members}, record.tag
    documentation = Compiled.documentation(record.kind)
    properties = {key: member.schema(documentation) for key, member in members.items()}
    required = [key for key, member in members.items() if member.required]
    if tag is not None:
        # As an enumeration: by that the members of a union are told apart.
        properties = {tag[0]: {"enum": [tag[1]]}, **properties}
        required = [tag[0], *required]
    known = f"one of {', '.join(properties)}" if properties else "no keys"
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    if documentation.summary:
        schema["description"] = documentation.summary

    parts = [(key, member.argument, member.compiled.structure, member.required) for key, member in members.items()]
    writers = [(key, member.attribute, member.compiled.unstructure, member.left_out) for key, member in members.items()]
    head = 0 if tag is None else 1

    def structure(value: Any) -> Any:
        if type(value) is not dict:
            Mismatch.refuse("an object", value)
        values: dict[str, Any] = {}
        faults = [] if tag is None else _tag_faults(tag, value)
        for key, argument, read, needed in parts:
            if key in value:
                try:
                    values[argument] = read(value[key])
                except Mismatch as error:
                    faults.extend(error.under(key))
            elif needed:
                faults.append(Fault((key,), "a value", "nothing"))
        if faults or len(values) + head < len(value):
            faults += [Fault((key,), known, "an unknown key") for key in value if key not in properties]
            raise Mismatch(faults)
        return _made(record, values)

    def draft(value: Any) -> Any:
        try:
            return structure(value)
        except Mismatch:
            if type(value) is not dict or (tag is not None and not _may_become(tag, value)):
                raise
        return _drafted(record, [(member, value[key]) for key, member in members.items() if key in value])

    def unstructure(value: Any) -> Any:
        written: dict[str, Any] = {} if tag is None else {tag[0]: tag[1]}
        for key, attribute, write, left_out in writers:
            content = getattr(value, attribute)
            if left_out is None or not left_out(content):
                written[key] = write(content)
        return written

    whole = all(member.left_out is None for member in record.members)
    return Compiled(schema, structure, unstructure, draft, whole)


def as_array(record: Record) -> Compiled:
    """Compile a record to a JSON array with an element for each field, a tag before them."""
    members, tag = record.members, record.tag
    head = 0 if tag is None else 1
    least = max((index for index, member in enumerate(members, head + 1) if member.required), default=head)
    most = head + len(members)
    documentation = Compiled.documentation(record.kind)
    schema: dict[str, Any] = {
        "type": "array",
        "prefixItems": [*([{"enum": [tag[1]]}] if tag else []), *(member.schema(documentation) for member in members)],
        "minItems": least,
        "maxItems": most,
    }
    if documentation.summary:
        schema["description"] = documentation.summary
    size = str(most) if least == most else f"{least} to {most}"

    def structure(value: Any) -> Any:
        if type(value) is not list or not least <= len(value) <= most:
            Mismatch.refuse(f"an array of {size}", value)
        values: dict[str, Any] = {}
        faults = [Fault((0,), repr(tag[1]), got(value[0]))] if tag and not _same(value[0], tag[1]) else []
        for index, member in enumerate(members[: len(value) - head], head):
            try:
                values[member.argument] = member.compiled.structure(value[index])
            except Mismatch as error:
                faults.extend(error.under(index))
        if faults:
            raise Mismatch(faults)
        return _made(record, values)

    def draft(value: Any) -> Any:
        try:
            return structure(value)
        except Mismatch:
            if type(value) is not list or len(value) > most or (tag and value and not _same(value[0], tag[1])):
                raise
        return _drafted(record, list(zip(members, value[head:], strict=False)))

    def unstructure(value: Any) -> Any:
        contents = [member.compiled.unstructure(getattr(value, member.attribute)) for member in members]
        return contents if tag is None else [tag[1], *contents]

    return Compiled(schema, structure, unstructure, draft)


def _tag_faults(tag: tuple[str, str | int], value: dict[str, Any]) -> list[Fault]:
    key, wanted = tag
    if key not in value:
        return [Fault((key,), repr(wanted), "nothing")]
    return [] if _same(value[key], wanted) else [Fault((key,), repr(wanted), got(value[key]))]


def _same(value: Any, wanted: str | int) -> bool:
    return type(value) is type(wanted) and bool(value == wanted)


def _made(record: Record, values: dict[str, Any]) -> Any:
    try:
        return record.make(values)
    except Exception as error:  # the class refuses the value, in whatever way it does
        raise Mismatch(record.explain(values, error)) from error


def _may_become(tag: tuple[str, str | int], value: dict[str, Any]) -> bool:
    """Tell whether an unfinished object may still be of a tag: a text of which a part has come is."""
    came = value.get(tag[0], tag[1])
    return _same(came, tag[1]) or (isinstance(came, str) and str(tag[1]).startswith(came))


def _drafted(record: Record, came: Sequence[tuple[Member, Any]]) -> Any:
    values: dict[str, Any] = {}
    for member, part in came:
        try:
            values[member.argument] = (member.compiled.draft or member.compiled.structure)(part)
        except Mismatch:
            continue
    try:
        return record.blank(values)
    except Exception as error:
        raise Mismatch([Fault((), f"more of a {record.kind.__name__}", reason(error))]) from error
