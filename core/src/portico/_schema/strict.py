"""Strict mode: the part of JSON Schema that services such as OpenAI hold a model to, and the way back from it.

The root is an object, every property is required, no object has other keys, and a handful of keywords are known. The
rules are those of OpenAI's guide "Structured model outputs", section "Supported schemas" (read in 2026), and three that
its service tells by an error: every schema has a type, nothing stands beside ``$ref``, and a pattern has no lookaround.

What a model writes under the strict form is decoded to a value of the original. The strict form may allow less than the
original: an object that declares properties has no others, and an optional property is left out by null. It allows more
only where ``loosened`` says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from portico._schema.strict_parts import (
    Array,
    Choice,
    Entries,
    Fixed,
    Map,
    Nullable,
    Object,
    Part,
    Reference,
    Scalar,
    closed,
    under,
)
from portico._schema.values import ANNOTATIONS, frozen, is_kind, is_number, kind_of, resolve
from portico._types.compiled import Mismatch
from portico.errors import SchemaUnsupported

_FORMATS = frozenset(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"])
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_HELD: Mapping[str, tuple[str, ...]] = {
    "null": (),
    "boolean": (),
    "string": ("pattern", "format"),
    "number": _NUMBERS,
    "integer": _NUMBERS,
    "array": ("items", "prefixItems", "minItems", "maxItems", "additionalItems"),
    "object": ("properties", "required", "additionalProperties"),
}
"""The keywords that are kept or rewritten, by the type that they speak of."""
_KIND_OF_KEYWORD = {
    word: "number" if kind == "integer" else kind for kind, words in _HELD.items() for word in words
} | {
    "minLength": "string",
    "maxLength": "string",
    "uniqueItems": "array",
    "contains": "array",
    "patternProperties": "object",
    "propertyNames": "object",
    "minProperties": "object",
    "maxProperties": "object",
}
_TYPES = ("null", "boolean", "number", "string", "array", "object")
# OpenAI answers "regex lookaround is not supported"; such engines have no references back either.
_UNSUPPORTED_PATTERN = re.compile(r"\(\?<?[=!]|\\[1-9]|\\k<|\(\?P=")
_LEVELS = 200
_PARTS = 20_000


@dataclass(frozen=True, slots=True)
class StrictForm:
    """A schema that strict mode takes, and the way back from its values.

    >>> form = StrictForm.of({
    ...     "type": "object",
    ...     "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    ...     "required": ["name"],
    ... })
    >>> form.decode({"name": "Ada", "age": None})
    {'name': 'Ada'}

    ``loosened`` has a sentence for each keyword that the strict form does not hold, with its place: validate what was
    decoded. ``decode`` raises `Mismatch` for what it cannot turn; a missing key stays missing, so that a reply can be
    decoded while it comes. ``identity`` says that decoding changes nothing.
    """

    schema: Mapping[str, Any]
    loosened: tuple[str, ...]
    decode: Callable[[Any], Any]
    identity: bool

    @staticmethod
    def of(schema: Mapping[str, Any] | bool, *, loosen: bool = True) -> StrictForm:
        """Rewrite a JSON Schema (2020-12) for strict mode. Done once for a type; a large one takes some milliseconds.

        Raises ``SchemaUnsupported`` with place and rule where there is no strict form: send the schema as it is then,
        and validate the reply. Without ``loosen`` it raises that for each keyword that would have to be loosened, too.
        """
        writer = _Writer(schema)
        try:
            root = writer.part(schema, "#", frozenset())
            writer.settle()
        except (AttributeError, TypeError, ValueError, KeyError) as error:
            raise SchemaUnsupported(f"The schema has no strict form: it is malformed: {error}.") from error
        except RecursionError:
            raise SchemaUnsupported("The schema has no strict form: it is nested too deeply.") from None
        if writer.loosened and not loosen:
            raise SchemaUnsupported(f"The schema has no exact strict form. {'. '.join(writer.loosened)}.")
        target = root.target if isinstance(root, Reference) else root
        bare = isinstance(target, Object | Fixed)
        written = {**target.write(), **root.notes} if bare else closed({"value": root.write()})
        definitions = writer.written_definitions(written)
        whole = StrictForm.limit({**written, "$defs": definitions} if definitions else written)

        def decode(value: Any) -> Any:
            try:
                if bare:
                    return target.decode(value)
                if not isinstance(value, dict) or value.keys() != {"value"}:
                    Mismatch.refuse('an object with the one key "value"', value)
                return under("value", root.decode, value["value"])
            except RecursionError:
                return Mismatch.refuse("a value that is nested less deeply", value)

        return StrictForm(whole, tuple(dict.fromkeys(writer.loosened)), decode, bare and not target.changes)

    @staticmethod
    def limit(schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the schema with its deepest parts moved to definitions; raise ``SchemaUnsupported`` for one too large.

        The limits are those of OpenAI's guide (2026), counted as the validator in OpenAI's Java client counts them,
        which is the more careful reading: the root is at depth 0, a definition at 1, and everything inside a schema is
        one deeper, alternatives too. References are not followed.
        """
        definitions: dict[str, Any] = {}
        placed = _placed({word: part for word, part in schema.items() if word != "$defs"}, 0, definitions, schema)
        for name, definition in schema.get("$defs", {}).items():
            definitions[name] = _placed(definition, 1, definitions, schema)
        if definitions:
            placed["$defs"] = {**{name: definitions[name] for name in schema.get("$defs", {})}, **definitions}
        _refuse_excess(placed)
        return placed


class _Writer:
    """Makes the parts of one schema."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.loosened: list[str] = []
        self.table: dict[str, Part] = {}
        self.names: dict[str, str] = {}
        """The name of each definition, by the reference to it."""
        self.made: list[Part] = []
        self.level = 0

    def settle(self) -> None:
        """Note which parts change their values: the inner ones make the outer ones do so, through circles too."""
        changed = True
        while changed:
            changed = False
            for part in self.made:
                own = isinstance(part, Fixed | Map) or (isinstance(part, Object) and bool(part.optional))
                if not part.changes and (own or any(inner.changes for inner in part.parts())):
                    part.changes = changed = True

    def written_definitions(self, written: Any) -> dict[str, Any]:
        """Write the definitions that are referred to, those of definitions too."""
        found: dict[str, Any] = {}
        waiting = [*_references(written)]
        while waiting:
            name = waiting.pop(0)
            if name not in found:
                found[name] = self.table[name].write()
                waiting += _references(found[name])
        return found

    def loosen(self, place: str, word: str, why: str = "strict mode has no such keyword") -> None:
        self.loosened.append(f"{place}/{word} is not held: {why}")

    def part(self, schema: Any, place: str, trail: frozenset[str]) -> Part:
        """Make the part of a schema; ``trail`` has the references that led here without going into the value."""
        self.level += 1
        try:
            if self.level > _LEVELS:
                _unsupported(place, f"the schema is deeper than {_LEVELS} levels")
            if len(self.made) > _PARTS:
                _unsupported(place, f"the schema has more than {_PARTS:,} parts")
            if schema is False:
                _unsupported(place, "nothing is valid")
            part = self.of_words({} if schema is True else schema, place, trail)
            if isinstance(schema, Mapping):
                notes = {word: schema[word] for word in ("title", "description") if isinstance(schema.get(word), str)}
                part.notes = {**part.notes, **notes} if not isinstance(part, Reference) else {}
            self.made.append(part)
            return part
        finally:
            self.level -= 1

    def of_words(self, schema: Any, place: str, trail: frozenset[str]) -> Part:
        if not isinstance(schema, Mapping):
            _unsupported(place, f"a schema is an object, true or false, not {type(schema).__name__}")
        told = {word: part for word, part in schema.items() if word not in ANNOTATIONS and not word.startswith("x-")}
        for word in ("allOf", "anyOf", "oneOf"):
            if word in told and (not isinstance(told[word], list | tuple) or not told[word]):
                _unsupported(place, f"{word} is not an array of schemas")
        if "$ref" in told:
            if len(told) == 1 and not {"title", "description"} & schema.keys():
                return self.reference(told["$ref"], place, trail)
            target, trail = self.target(told.pop("$ref"), place, trail)
            return self.part(_merged([told, target], place), place, trail)
        if "allOf" in told:
            options = told.pop("allOf")
            inner = [self.unfolded(option, place, trail) for option in options]
            return self.part(_merged([told, *inner], place), place, trail)
        for word in ("anyOf", "oneOf"):
            if word in told:
                return self.choice(word, told, place, trail)
        if "const" in told or "enum" in told:
            return self.listed(told, place)
        kinds = told.get("type", _told_kinds(told))
        kinds = [kinds] if isinstance(kinds, str) else list(kinds)
        if not kinds or any(kind not in _HELD for kind in kinds):
            _unsupported(place, f"{kinds!r} are no types of JSON Schema")
        if len(kinds) == len(_TYPES):
            return self.anything()
        if len(kinds) > 1:
            parts = [self.of_kind(kind, told, place) for kind in kinds if kind != "null"]
            self.made += parts
            null = Scalar("null", {})
            return (
                Nullable([parts[0], null])
                if "null" in kinds and len(parts) == 1
                else Choice([*parts, null] if "null" in kinds else parts)
            )
        return self.of_kind(kinds[0], told, place)

    def unfolded(self, schema: Any, place: str, trail: frozenset[str]) -> Any:
        """Return a schema with the one that it refers to in its place, to be merged with others."""
        while isinstance(schema, Mapping) and "$ref" in schema:
            rest = {word: part for word, part in schema.items() if word != "$ref"}
            target, trail = self.target(schema["$ref"], place, trail)
            schema = _merged([rest, target], place)
        if isinstance(schema, Mapping) and "allOf" in schema:
            rest = {word: part for word, part in schema.items() if word != "allOf"}
            return _merged([rest, *(self.unfolded(option, place, trail) for option in schema["allOf"])], place)
        return schema

    def target(self, reference: Any, place: str, trail: frozenset[str]) -> tuple[Any, frozenset[str]]:
        target = resolve(reference, self.root)
        if target is None:
            _unsupported(place, f"the reference {reference!r} leads out of the schema")
        if reference in trail:
            _unsupported(place, "the schema leads to itself")
        return target, trail | {reference}

    def reference(self, reference: Any, place: str, trail: frozenset[str]) -> Part:
        target, trail = self.target(reference, place, trail)
        if reference not in self.names:
            last = re.sub(r"[^A-Za-z0-9_.-]", "_", str(reference).rpartition("/")[2]) if reference != "#" else "root"
            name = self.names[reference] = _free(last or "part", self.names.values())
            self.table[name] = self.part(target, str(reference), trail)
        return Reference(self.names[reference], self.table)

    def choice(self, word: str, told: dict[str, Any], place: str, trail: frozenset[str]) -> Part:
        options = told.pop(word)
        options = [option for option in options if option is not False]
        if not options:
            _unsupported(place, "nothing is valid")
        if told:
            options = [_merged([told, self.unfolded(option, place, trail)], place) for option in options]
        parts = [self.part(option, f"{place}/{word}/{index}", trail) for index, option in enumerate(options)]
        if word == "oneOf" and not all(
            _apart(one, other) for index, one in enumerate(parts) for other in parts[:index]
        ):
            self.loosen(place, "oneOf", "it becomes anyOf, and a value may fit several of its alternatives")
        return Choice(parts)

    def listed(self, told: Mapping[str, Any], place: str) -> Part:
        """Make the part of listed values, one for each kind of them."""
        values = [told["const"]] if "const" in told else told["enum"]
        kinds = told.get("type", _TYPES)
        kinds = [kinds] if isinstance(kinds, str) else kinds
        values = [value for value in values if any(is_kind(value, kind) for kind in kinds)]
        if any(isinstance(value, list | dict) for value in values):
            _unsupported(place, "strict mode lists strings, numbers, true, false and null only")
        parts: list[Part] = []
        for kind in _TYPES:
            own = [value for value in values if kind_of(value) == kind]
            if kind == "null" and own:
                parts.append(Scalar("null", {}))
            elif own:
                whole = kind == "number" and all(type(value) is int for value in own)
                parts.append(
                    Scalar("integer" if whole else kind, {"const": own[0]} if "const" in told else {"enum": own})
                )
        if not parts:
            _unsupported(place, "nothing is valid")
        self.made += parts
        null = [part for part in parts if "null" in part.kinds]
        others = [part for part in parts if "null" not in part.kinds]
        if len(parts) == 1:
            return parts[0]
        return Nullable([*others, *null]) if null and len(others) == 1 else Choice([*others, *null])

    def of_kind(self, kind: str, told: Mapping[str, Any], place: str) -> Part:
        for word in told:
            about = _KIND_OF_KEYWORD.get(word)
            if word != "type" and word not in _HELD[kind] and about in (None, "number" if kind == "integer" else kind):
                self.loosen(place, word)
        if kind == "object":
            return self.object(told, place)
        if kind == "array":
            return self.array(told, place)
        words: dict[str, Any] = {}
        for word in _HELD[kind]:
            if word not in told:
                continue
            if word in _NUMBERS and not is_number(told[word]):
                _unsupported(f"{place}/{word}", "a number is expected")
            if word == "pattern" and _UNSUPPORTED_PATTERN.search(told[word]):
                self.loosen(place, word, "strict mode has no lookaround and no references back")
            elif word != "format" or told[word] in _FORMATS:
                words[word] = told[word]
        return Scalar(kind, words)

    def object(self, told: Mapping[str, Any], place: str) -> Part:
        properties, required = told.get("properties", {}), told.get("required", ())
        rest = told.get("additionalProperties", True)
        if not properties and not required and rest is not False:
            return Map(self.part(rest, f"{place}/additionalProperties", frozenset()))
        members = {
            name: self.part(inner, f"{place}/properties/{_escaped(name)}", frozenset())
            for name, inner in properties.items()
            if inner is not False or name in required
        }
        for name in required:
            if name not in members:
                members[name] = self.part(rest, f"{place}/required", frozenset())
        return Object(members, required)

    def array(self, told: Mapping[str, Any], place: str) -> Part:
        places, rest = told.get("prefixItems", ()), told.get("items", True)
        if isinstance(rest, list):  # as it was written before draft 2020-12
            places, rest = rest, told.get("additionalItems", True)
        bounds = {word: told[word] for word in ("minItems", "maxItems") if word in told}
        for word, count in bounds.items():
            if type(count) is not int or count < 0:
                _unsupported(f"{place}/{word}", "a number of elements is expected")
        least, most = bounds.get("minItems", 0), bounds.get("maxItems")
        if not places:
            return Array(self.part(rest, f"{place}/items", frozenset()), {**bounds} if least else _without(bounds))
        size = len(places)
        if least != size or not (most == size or rest is False):
            _unsupported(f"{place}/prefixItems", "strict mode takes an array of places of one length only")
        if all(inner == places[0] for inner in places):
            return Array(self.part(places[0], f"{place}/prefixItems/0", frozenset()), dict.fromkeys(bounds, size))
        return Fixed(
            [self.part(inner, f"{place}/prefixItems/{index}", frozenset()) for index, inner in enumerate(places)]
        )

    def anything(self) -> Part:
        """Make the part of any JSON at all: objects are told from arrays by their entries."""
        if "any" not in self.names:
            name = self.names["any"] = _free("json", self.names.values())
            inner = Reference(name, self.table)
            entries = Entries(inner)
            parts = [*(Scalar(kind, {}) for kind in ("null", "boolean", "number", "string")), Array(inner, {}), entries]
            self.table[name] = Choice(parts)
            self.made += [inner, *parts, self.table[name]]
        return Reference(self.names["any"], self.table)


def _merged(schemas: Sequence[Any], place: str) -> dict[str, Any]:
    """Return one schema of what several ask together; raise ``SchemaUnsupported`` where that is not plain."""
    merged: dict[str, Any] = {}
    for schema in schemas:
        if schema is False:
            _unsupported(place, "nothing is valid")
        for word, argument in ({} if schema is True else schema).items():
            if word not in merged or merged[word] == argument:
                merged[word] = argument
            elif word == "properties":
                both = {**merged[word], **argument}
                for name in merged[word].keys() & argument.keys():
                    if merged[word][name] != argument[name]:
                        both[name] = {"allOf": [merged[word][name], argument[name]]}
                merged[word] = both
            elif word == "required":
                merged[word] = [*dict.fromkeys((*merged[word], *argument))]
            elif word == "type":
                merged[word] = _both_types(merged[word], argument, place)
            elif word in ("minimum", "exclusiveMinimum", "minItems", "minLength", "minProperties"):
                merged[word] = max(merged[word], argument)
            elif word in ("maximum", "exclusiveMaximum", "maxItems", "maxLength", "maxProperties"):
                merged[word] = min(merged[word], argument)
            elif word == "enum":
                merged[word] = [value for value in merged[word] if frozen(value) in [*map(frozen, argument)]]
            elif word not in ANNOTATIONS:
                _unsupported(place, f"{word} is asked for twice, and differently")
    for schema in schemas:
        closed = schema.get("additionalProperties", True) is not True if isinstance(schema, Mapping) else False
        if closed and merged.get("properties", {}).keys() - schema.get("properties", {}).keys():
            _unsupported(place, "what is merged closes an object that has more properties")
    return merged


def _both_types(one: Any, other: Any, place: str) -> Any:
    ones, others = ([kinds] if isinstance(kinds, str) else list(kinds) for kinds in (one, other))
    found = [kind for kind in ones if kind in others or (kind == "integer" and "number" in others)]
    found += [kind for kind in others if kind == "integer" and "number" in ones and kind not in found]
    if not found:
        _unsupported(place, "nothing is valid")
    return found[0] if len(found) == 1 else found


def _told_kinds(told: Mapping[str, Any]) -> Sequence[str]:
    """Return the types that a schema without any speaks of; all of them where it says nothing."""
    found = {_KIND_OF_KEYWORD[word] for word in told if word in _KIND_OF_KEYWORD}
    return [kind for kind in _TYPES if kind in found] or _TYPES


def _apart(one: Part, other: Part, depth: int = 4) -> bool:
    """Tell whether it is plain that no value is of both parts: by kind, listed values, or a property of objects."""
    one, other = (part.target if isinstance(part, Reference) else part for part in (one, other))
    if depth == 0:
        return False
    for choice, single in ((one, other), (other, one)):
        if isinstance(choice, Choice):
            return all(_apart(option, single, depth - 1) for option in choice.options)
    if any(isinstance(part, Map | Fixed) for part in (one, other)):
        return type(one) is not type(other) and not isinstance(one, Object) and not isinstance(other, Object)
    if not one.kinds & other.kinds:
        return True
    if isinstance(one, Scalar) and isinstance(other, Scalar):
        return one.values is not None and other.values is not None and not one.values & other.values
    if not isinstance(one, Object) or not isinstance(other, Object):
        return False
    names = (one.members.keys() - one.optional) | (other.members.keys() - other.optional)
    return any(
        name in one.members and name in other.members and _apart(one.members[name], other.members[name], depth - 1)
        for name in names
    )


def _without(bounds: Mapping[str, int]) -> dict[str, int]:
    return {word: count for word, count in bounds.items() if word != "minItems"}


def _references(schema: Any) -> list[str]:
    """List the names of the definitions that a strict schema refers to."""
    if isinstance(schema, list):
        return [name for part in schema for name in _references(part)]
    if not isinstance(schema, dict):
        return []
    own = [schema["$ref"].removeprefix("#/$defs/")] if "$ref" in schema else []
    return [
        *own,
        *(name for word in ("anyOf", "items") for name in _references(schema.get(word))),
        *(name for part in schema.get("properties", {}).values() for name in _references(part)),
    ]


def _free(name: str, taken: Iterable[str]) -> str:
    """Return the name, or the first of ``name_2``, ``name_3`` and so on that is not taken."""
    used, count, candidate = set(taken), 1, name
    while candidate in used:
        count += 1
        candidate = f"{name}_{count}"
    return candidate


def _escaped(name: str) -> str:
    return str(name).replace("~", "~0").replace("/", "~1")


def _unsupported(place: str, why: str) -> NoReturn:
    raise SchemaUnsupported(f"The schema has no strict form: at {place}, {why}.")


_DEPTH = 10
_PROPERTIES = 5_000
_ENUM_VALUES = 1_000
_CHARACTERS = 120_000
_LONG_ENUM = 250
_LONG_ENUM_CHARACTERS = 15_000


def _placed(schema: dict[str, Any], depth: int, definitions: dict[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    if depth == _DEPTH and any(True for _ in _inner(schema)):
        name = _free("part", {*root.get("$defs", {}), *definitions})
        definitions[name] = {}
        definitions[name] = _placed(schema, 1, definitions, root)
        return {"$ref": f"#/$defs/{name}"}
    placed = dict(schema)
    if "properties" in schema:
        placed["properties"] = {
            name: _placed(part, depth + 1, definitions, root) for name, part in schema["properties"].items()
        }
    if "items" in schema:
        placed["items"] = _placed(schema["items"], depth + 1, definitions, root)
    if "anyOf" in schema:
        placed["anyOf"] = [_placed(part, depth + 1, definitions, root) for part in schema["anyOf"]]
    return placed


def _inner(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the schemas directly inside a strict one."""
    items = [schema["items"]] if "items" in schema else []
    return [*schema.get("$defs", {}).values(), *schema.get("properties", {}).values(), *schema.get("anyOf", ()), *items]


def _refuse_excess(root: Mapping[str, Any]) -> None:
    properties = values = 0
    characters = sum(map(len, root.get("$defs", {})))
    stack: list[Mapping[str, Any]] = [root]
    while stack:
        schema = stack.pop()
        stack.extend(_inner(schema))
        names, enum = schema.get("properties", {}), schema.get("enum", ())
        properties += len(names)
        values += len(enum)
        length = sum(len(str(value)) for value in [*enum, *([schema["const"]] if "const" in schema else [])])
        characters += length + sum(map(len, names))
        if len(enum) > _LONG_ENUM:
            _refuse(f"an enumeration of {len(enum)} values", length, _LONG_ENUM_CHARACTERS, "characters")
    _refuse("the strict form", properties, _PROPERTIES, "properties")
    _refuse("the strict form", values, _ENUM_VALUES, "values in enumerations")
    _refuse("the strict form", characters, _CHARACTERS, "characters in names and listed values")


def _refuse(what: str, count: int, limit: int, of: str) -> None:
    if count > limit:
        raise SchemaUnsupported(
            f"The schema has no strict form: {what} has {count:,} {of}, and strict mode takes {limit:,}. "
            "Ask for less at a time, or turn strict mode off."
        )
