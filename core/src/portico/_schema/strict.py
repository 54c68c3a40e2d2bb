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
from typing import Any, NoReturn, TypeAlias

from portico._schema.values import ANNOTATIONS, frozen, is_kind, is_number, kind_of, resolve
from portico.errors import SchemaUnsupported
from portico.types.compiled import Fault, Mismatch, refuse

__all__ = ["StrictForm", "strict_form", "within_limits"]

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
_NOTHING = {"type": "null"}
_Known: TypeAlias = dict[tuple[int, int], bool]
"""Which parts of a value are of which choices, by their identities."""


@dataclass(frozen=True, slots=True)
class StrictForm:
    """A schema that strict mode takes, and the way back from its values.

    >>> form = strict_form({
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


def strict_form(schema: Mapping[str, Any] | bool, *, loosen: bool = True) -> StrictForm:
    """Rewrite a JSON Schema (2020-12) for strict mode. Done once for a type; a large one takes some milliseconds.

    Raises ``SchemaUnsupported`` with place and rule where there is no strict form: send the schema as it is then, and
    validate the reply. Without ``loosen`` it raises that for each keyword that would have to be loosened, too.
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
    target = root.target if isinstance(root, _Reference) else root
    bare = isinstance(target, _Object | _Fixed)
    written = {**target.write(), **root.notes} if bare else _closed({"value": root.write()})
    definitions = writer.written_definitions(written)
    whole = within_limits({**written, "$defs": definitions} if definitions else written)

    def decode(value: Any) -> Any:
        try:
            if bare:
                return target.decode(value)
            if not isinstance(value, dict) or value.keys() != {"value"}:
                refuse('an object with the one key "value"', value)
            return _under("value", root.decode, value["value"])
        except RecursionError:
            return refuse("a value that is nested less deeply", value)

    return StrictForm(whole, tuple(dict.fromkeys(writer.loosened)), decode, bare and not target.changes)


class _Part:
    """A part of a strict form. ``kinds`` are the kinds of its strict values; the rest speaks of these, too."""

    kinds: frozenset[str] = frozenset()
    notes: Mapping[str, str] = {}
    changes = False
    """Whether decoding changes any value; known when the whole form is."""

    def parts(self) -> Iterable[_Part]:
        return ()

    def write(self) -> dict[str, Any]:
        raise NotImplementedError

    def fits(self, value: Any, known: _Known, *, so_far: bool) -> bool:
        """Tell whether a value is of this part; ``so_far``: whether it may be when more of it has come."""
        raise NotImplementedError

    def decode(self, value: Any) -> Any:
        return value


class _Scalar(_Part):
    def __init__(self, kind: str, words: Mapping[str, Any]) -> None:
        self.kind, self.words = kind, words
        self.kinds = frozenset({"number" if kind == "integer" else kind})
        listed = [words["const"]] if "const" in words else words.get("enum")
        self.values = None if listed is None else frozenset(map(frozen, listed))

    def write(self) -> dict[str, Any]:
        return {"type": self.kind, **self.words, **self.notes}

    def fits(self, value: Any, known: _Known, *, so_far: bool) -> bool:
        if not is_kind(value, self.kind):
            return False
        begun = so_far and isinstance(value, str)
        return begun or self.values is None or frozen(value) in self.values


class _Array(_Part):
    kinds = frozenset({"array"})

    def __init__(self, item: _Part, bounds: Mapping[str, int]) -> None:
        self.item, self.bounds = item, bounds

    def parts(self) -> Iterable[_Part]:
        return (self.item,)

    def write(self) -> dict[str, Any]:
        return {"type": "array", "items": self.item.write(), **self.bounds, **self.notes}

    def fits(self, value: Any, known: _Known, *, so_far: bool) -> bool:
        return isinstance(value, list) and all(self.item.fits(element, known, so_far=so_far) for element in value)

    def decode(self, value: Any) -> Any:
        if not self.changes:
            return value
        if not isinstance(value, list):
            refuse("an array", value)
        return _each(self.item.decode, enumerate(value))


class _Object(_Part):
    """An object with declared properties; null stands for one of the ``optional`` ones that is left out."""

    kinds = frozenset({"object"})

    def __init__(self, members: Mapping[str, _Part], required: Sequence[str]) -> None:
        self.members = members
        self.optional = {
            name for name, part in members.items() if name not in required and "null" not in _kinds_of(part)
        }

    def parts(self) -> Iterable[_Part]:
        return self.members.values()

    def write(self) -> dict[str, Any]:
        properties = {
            name: _nullable(part.write()) if name in self.optional else part.write()
            for name, part in self.members.items()
        }
        return {**_closed(properties), **self.notes}

    def fits(self, value: Any, known: _Known, *, so_far: bool) -> bool:
        if not isinstance(value, dict) or not (value.keys() <= self.members.keys()):
            return False
        return (so_far or value.keys() == self.members.keys()) and all(
            (element is None and name in self.optional) or self.members[name].fits(element, known, so_far=so_far)
            for name, element in value.items()
        )

    def decode(self, value: Any) -> Any:
        if not self.changes:
            return value
        if not isinstance(value, dict):
            refuse("an object", value)
        unknown = [name for name in value if name not in self.members]
        if unknown:
            raise Mismatch([Fault((name,), f"one of {', '.join(self.members)}", "an unknown key") for name in unknown])
        there = [name for name, element in value.items() if element is not None or name not in self.optional]
        values = _each(lambda name: self.members[name].decode(value[name]), zip(there, there, strict=True))
        return dict(zip(there, values, strict=True))


class _Fixed(_Part):
    """An array with a schema for each place: an object with a property for each."""

    kinds = frozenset({"object"})

    def __init__(self, places: Sequence[_Part]) -> None:
        self.places = {f"item_{index + 1}": part for index, part in enumerate(places)}

    def parts(self) -> Iterable[_Part]:
        return self.places.values()

    def write(self) -> dict[str, Any]:
        return {**_closed({name: part.write() for name, part in self.places.items()}), **self.notes}

    def fits(self, value: Any, known: _Known, *, so_far: bool) -> bool:
        if not isinstance(value, dict) or not (value.keys() <= self.places.keys()):
            return False
        return (so_far or value.keys() == self.places.keys()) and all(
            self.places[name].fits(element, known, so_far=so_far) for name, element in value.items()
        )

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            refuse("an object", value)
        unknown = [name for name in value if name not in self.places]
        if unknown:
            raise Mismatch([Fault((unknown[0],), f"one of {', '.join(self.places)}", "an unknown key")])
        there = []
        for name in self.places:
            if name not in value:
                break
            there.append(name)
        return _each(lambda name: self.places[name].decode(value[name]), zip(there, there, strict=True))


class _Map(_Part):
    """An object of any keys: an array of entries."""

    kinds = frozenset({"array"})

    def __init__(self, value: _Part) -> None:
        self.value = value

    def parts(self) -> Iterable[_Part]:
        return (self.value,)

    def write(self) -> dict[str, Any]:
        entry = _closed({"key": {"type": "string"}, "value": self.value.write()})
        return {"type": "array", "items": entry, **self.notes}

    def fits(self, value: Any, known: _Known, *, so_far: bool) -> bool:
        return isinstance(value, list) and all(
            isinstance(entry, dict)
            and (so_far or entry.keys() == {"key", "value"})
            and isinstance(entry.get("key", ""), str)
            and ("value" not in entry or self.value.fits(entry["value"], known, so_far=so_far))
            for entry in value
        )

    def decode(self, value: Any) -> Any:
        """Turn entries into an object; no key may come twice, since one of the two would be lost."""
        if not isinstance(value, list):
            refuse("an array of entries", value)
        decoded: dict[str, Any] = {}
        faults: list[Fault] = []
        for index, entry in enumerate(value):
            if not isinstance(entry, dict) or entry.keys() != {"key", "value"} or not isinstance(entry["key"], str):
                faults.append(Fault((index,), 'an object with "key", a string, and "value"', "something else"))
            elif entry["key"] in decoded:
                faults.append(Fault((index, "key"), "a key of its own", repr(entry["key"])))
            else:
                try:
                    decoded[entry["key"]] = self.value.decode(entry["value"])
                except Mismatch as error:
                    faults += [Fault((index, "value", *each.path), each.expected, each.got) for each in error.faults]
        if faults:
            raise Mismatch(faults)
        return decoded


class _Choice(_Part):
    """A value of any of several parts: decoded by the first that the strict value is of."""

    def __init__(self, options: Sequence[_Part]) -> None:
        self.options = options

    def parts(self) -> Iterable[_Part]:
        return self.options

    def write(self) -> dict[str, Any]:
        written: list[dict[str, Any]] = []
        for option in self.options:
            schema = option.write()
            for one in schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]:
                if one not in written:
                    written.append(one)
        return {**(written[0] if len(written) == 1 else {"anyOf": written}), **self.notes}

    def fits(self, value: Any, known: _Known, *, so_far: bool) -> bool:
        # Each part of a value is tried once, however many ways lead there.
        key = (id(value), id(self))
        if key not in known:
            known[key] = any(option.fits(value, known, so_far=so_far) for option in self.options)
        return known[key]

    def decode(self, value: Any) -> Any:
        if not self.changes:
            return value
        for option in self.options:
            if option.fits(value, {}, so_far=False):
                return option.decode(value)
        begun = [option for option in self.options if option.fits(value, {}, so_far=True)]
        of_kind = begun or [option for option in self.options if kind_of(value) in _kinds_of(option)]
        if len(of_kind) == 1:
            return of_kind[0].decode(value)
        return refuse(f"a value of one of {len(self.options)} alternatives", value)


class _Nullable(_Choice):
    """A value or null, written with two types as the guide does."""

    def write(self) -> dict[str, Any]:
        schema = self.options[0].write()
        if not isinstance(schema.get("type"), str) or "const" in schema:
            return super().write()
        listed = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
        return {**schema, "type": [schema["type"], "null"], **listed, **self.notes}


class _Reference(_Part):
    """Another part, by its name in a table that is filled later."""

    def __init__(self, name: str, table: Mapping[str, _Part]) -> None:
        self.name, self.table = name, table

    @property
    def target(self) -> _Part:
        part = self.table[self.name]
        while isinstance(part, _Reference):
            part = part.table[part.name]
        return part

    def parts(self) -> Iterable[_Part]:
        return (self.target,)

    def write(self) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{self.name}"}

    def fits(self, value: Any, known: _Known, *, so_far: bool) -> bool:
        return self.target.fits(value, known, so_far=so_far)

    def decode(self, value: Any) -> Any:
        return self.target.decode(value) if self.changes else value


class _Writer:
    """Makes the parts of one schema."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.loosened: list[str] = []
        self.table: dict[str, _Part] = {}
        self.names: dict[str, str] = {}
        """The name of each definition, by the reference to it."""
        self.made: list[_Part] = []
        self.level = 0

    def settle(self) -> None:
        """Note which parts change their values: the inner ones make the outer ones do so, through circles too."""
        changed = True
        while changed:
            changed = False
            for part in self.made:
                own = isinstance(part, _Fixed | _Map) or (isinstance(part, _Object) and bool(part.optional))
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

    def part(self, schema: Any, place: str, trail: frozenset[str]) -> _Part:
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
                part.notes = {**part.notes, **notes} if not isinstance(part, _Reference) else {}
            self.made.append(part)
            return part
        finally:
            self.level -= 1

    def of_words(self, schema: Any, place: str, trail: frozenset[str]) -> _Part:
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
            null = _Scalar("null", {})
            return (
                _Nullable([parts[0], null])
                if "null" in kinds and len(parts) == 1
                else _Choice([*parts, null] if "null" in kinds else parts)
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

    def reference(self, reference: Any, place: str, trail: frozenset[str]) -> _Part:
        target, trail = self.target(reference, place, trail)
        if reference not in self.names:
            last = re.sub(r"[^A-Za-z0-9_.-]", "_", str(reference).rpartition("/")[2]) if reference != "#" else "root"
            name = self.names[reference] = _free(last or "part", self.names.values())
            self.table[name] = self.part(target, str(reference), trail)
        return _Reference(self.names[reference], self.table)

    def choice(self, word: str, told: dict[str, Any], place: str, trail: frozenset[str]) -> _Part:
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
        return _Choice(parts)

    def listed(self, told: Mapping[str, Any], place: str) -> _Part:
        """Make the part of listed values, one for each kind of them."""
        values = [told["const"]] if "const" in told else told["enum"]
        kinds = told.get("type", _TYPES)
        kinds = [kinds] if isinstance(kinds, str) else kinds
        values = [value for value in values if any(is_kind(value, kind) for kind in kinds)]
        if any(isinstance(value, list | dict) for value in values):
            _unsupported(place, "strict mode lists strings, numbers, true, false and null only")
        parts: list[_Part] = []
        for kind in _TYPES:
            own = [value for value in values if kind_of(value) == kind]
            if kind == "null" and own:
                parts.append(_Scalar("null", {}))
            elif own:
                whole = kind == "number" and all(type(value) is int for value in own)
                parts.append(
                    _Scalar("integer" if whole else kind, {"const": own[0]} if "const" in told else {"enum": own})
                )
        if not parts:
            _unsupported(place, "nothing is valid")
        self.made += parts
        null = [part for part in parts if "null" in part.kinds]
        others = [part for part in parts if "null" not in part.kinds]
        if len(parts) == 1:
            return parts[0]
        return _Nullable([*others, *null]) if null and len(others) == 1 else _Choice([*others, *null])

    def of_kind(self, kind: str, told: Mapping[str, Any], place: str) -> _Part:
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
        return _Scalar(kind, words)

    def object(self, told: Mapping[str, Any], place: str) -> _Part:
        properties, required = told.get("properties", {}), told.get("required", ())
        rest = told.get("additionalProperties", True)
        if not properties and not required and rest is not False:
            return _Map(self.part(rest, f"{place}/additionalProperties", frozenset()))
        members = {
            name: self.part(inner, f"{place}/properties/{_escaped(name)}", frozenset())
            for name, inner in properties.items()
            if inner is not False or name in required
        }
        for name in required:
            if name not in members:
                members[name] = self.part(rest, f"{place}/required", frozenset())
        return _Object(members, required)

    def array(self, told: Mapping[str, Any], place: str) -> _Part:
        places, rest = told.get("prefixItems", ()), told.get("items", True)
        if isinstance(rest, list):  # as it was written before draft 2020-12
            places, rest = rest, told.get("additionalItems", True)
        bounds = {word: told[word] for word in ("minItems", "maxItems") if word in told}
        for word, count in bounds.items():
            if type(count) is not int or count < 0:
                _unsupported(f"{place}/{word}", "a number of elements is expected")
        least, most = bounds.get("minItems", 0), bounds.get("maxItems")
        if not places:
            return _Array(self.part(rest, f"{place}/items", frozenset()), {**bounds} if least else _without(bounds))
        size = len(places)
        if least != size or not (most == size or rest is False):
            _unsupported(f"{place}/prefixItems", "strict mode takes an array of places of one length only")
        if all(inner == places[0] for inner in places):
            return _Array(self.part(places[0], f"{place}/prefixItems/0", frozenset()), dict.fromkeys(bounds, size))
        return _Fixed(
            [self.part(inner, f"{place}/prefixItems/{index}", frozenset()) for index, inner in enumerate(places)]
        )

    def anything(self) -> _Part:
        """Make the part of any JSON at all: objects are told from arrays by their entries."""
        if "any" not in self.names:
            name = self.names["any"] = _free("json", self.names.values())
            inner = _Reference(name, self.table)
            entries = _Entries(inner)
            parts = [
                *(_Scalar(kind, {}) for kind in ("null", "boolean", "number", "string")),
                _Array(inner, {}),
                entries,
            ]
            self.table[name] = _Choice(parts)
            self.made += [inner, *parts, self.table[name]]
        return _Reference(self.names["any"], self.table)


class _Entries(_Map):
    """An object of any keys beside arrays: an object with its entries."""

    kinds = frozenset({"object"})

    def write(self) -> dict[str, Any]:
        return _closed({"entries": super().write()})

    def fits(self, value: Any, known: _Known, *, so_far: bool) -> bool:
        if not isinstance(value, dict) or not value.keys() <= {"entries"} or not (so_far or value):
            return False
        return super().fits(value.get("entries", []), known, so_far=so_far)

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict) or value.keys() != {"entries"}:
            refuse('an object with the one key "entries"', value)
        return _under("entries", super().decode, value["entries"])


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


def _kinds_of(part: _Part) -> frozenset[str]:
    """Return the kinds of a part's strict values; a part that is being made counts for none."""
    found: set[str] = set()
    seen: set[int] = set()
    waiting: list[_Part | None] = [part]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, _Reference):
            waiting.append(each.table.get(each.name))
        elif isinstance(each, _Choice):
            waiting += each.options
        else:
            found |= each.kinds
    return frozenset(found)


def _apart(one: _Part, other: _Part, depth: int = 4) -> bool:
    """Tell whether it is plain that no value is of both parts: by kind, listed values, or a property of objects."""
    one, other = (part.target if isinstance(part, _Reference) else part for part in (one, other))
    if depth == 0:
        return False
    for choice, single in ((one, other), (other, one)):
        if isinstance(choice, _Choice):
            return all(_apart(option, single, depth - 1) for option in choice.options)
    if any(isinstance(part, _Map | _Fixed) for part in (one, other)):
        return type(one) is not type(other) and not isinstance(one, _Object) and not isinstance(other, _Object)
    if not one.kinds & other.kinds:
        return True
    if isinstance(one, _Scalar) and isinstance(other, _Scalar):
        return one.values is not None and other.values is not None and not one.values & other.values
    if not isinstance(one, _Object) or not isinstance(other, _Object):
        return False
    names = (one.members.keys() - one.optional) | (other.members.keys() - other.optional)
    return any(
        name in one.members and name in other.members and _apart(one.members[name], other.members[name], depth - 1)
        for name in names
    )


def _each(convert: Callable[[Any], Any], items: Iterable[tuple[str | int, Any]]) -> list[Any]:
    """Convert every element; raise one `Mismatch` with the faults of all."""
    values: list[Any] = []
    faults: list[Fault] = []
    for key, element in items:
        try:
            values.append(convert(element))
        except Mismatch as error:
            faults.extend(error.under(key))
    if faults:
        raise Mismatch(faults)
    return values


def _under(key: str, convert: Callable[[Any], Any], value: Any) -> Any:
    return _each(convert, [(key, value)])[0]


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    """Write the one kind of object that strict mode has."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], _NOTHING]}
    return {"anyOf": [schema, _NOTHING]}


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


def within_limits(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema with its deepest parts moved to definitions; raise ``SchemaUnsupported`` for one too large.

    The limits are those of OpenAI's guide (2026), counted as the validator in OpenAI's Java client counts them,
    which is the more careful reading: the root is at depth 0, a definition at 1, and everything inside a schema is one
    deeper, alternatives too. References are not followed.
    """
    definitions: dict[str, Any] = {}
    placed = _placed({word: part for word, part in schema.items() if word != "$defs"}, 0, definitions, schema)
    for name, definition in schema.get("$defs", {}).items():
        definitions[name] = _placed(definition, 1, definitions, schema)
    if definitions:
        placed["$defs"] = {**{name: definitions[name] for name in schema.get("$defs", {})}, **definitions}
    _refuse_excess(placed)
    return placed


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
