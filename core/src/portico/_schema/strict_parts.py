"""The parts of a strict form: each writes its schema, and decodes the values that a model wrote under it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from portico._schema.values import frozen, is_kind, kind_of
from portico._types.compiled import Fault, Mismatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_NOTHING = {"type": "null"}
_Known: TypeAlias = dict[tuple[int, int], bool]
"""Which parts of a value are of which choices, by their identities."""


class Part:
    """A part of a strict form. ``kinds`` are the kinds of its strict values; the rest speaks of these, too."""

    kinds: frozenset[str] = frozenset()
    notes: Mapping[str, str] = {}
    changes = False
    """Whether decoding changes any value; known when the whole form is."""

    def parts(self) -> Iterable[Part]:
        return ()

    def write(self) -> dict[str, Any]:
        """Write the schema."""
        return {**self.notes}

    def fits(self, value: Any, known: _Known, *, so_far: bool) -> bool:
        """Tell whether a value is of this part; ``so_far``: whether it may be when more of it has come."""
        return False

    def decode(self, value: Any) -> Any:
        return value


class Scalar(Part):
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


class Array(Part):
    kinds = frozenset({"array"})

    def __init__(self, item: Part, bounds: Mapping[str, int]) -> None:
        self.item, self.bounds = item, bounds

    def parts(self) -> Iterable[Part]:
        return (self.item,)

    def write(self) -> dict[str, Any]:
        return {"type": "array", "items": self.item.write(), **self.bounds, **self.notes}

    def fits(self, value: Any, known: _Known, *, so_far: bool) -> bool:
        if not isinstance(value, list):
            return False
        least, most = self.bounds.get("minItems", 0), self.bounds.get("maxItems", len(value))
        if len(value) > most or not (so_far or len(value) >= least):
            return False
        return all(self.item.fits(element, known, so_far=so_far) for element in value)

    def decode(self, value: Any) -> Any:
        if not self.changes:
            return value
        if not isinstance(value, list):
            Mismatch.refuse("an array", value)
        return each(self.item.decode, enumerate(value))


class Object(Part):
    """An object with declared properties; null stands for one of the ``optional`` ones that is left out."""

    kinds = frozenset({"object"})

    def __init__(self, members: Mapping[str, Part], required: Sequence[str]) -> None:
        self.members = members
        self.optional = {
            name for name, part in members.items() if name not in required and "null" not in kinds_of(part)
        }

    def parts(self) -> Iterable[Part]:
        return self.members.values()

    def write(self) -> dict[str, Any]:
        properties = {
            name: _nullable(part.write()) if name in self.optional else part.write()
            for name, part in self.members.items()
        }
        return {**closed(properties), **self.notes}

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
            Mismatch.refuse("an object", value)
        unknown = [name for name in value if name not in self.members]
        if unknown:
            raise Mismatch([Fault((name,), f"one of {', '.join(self.members)}", "an unknown key") for name in unknown])
        there = [name for name, element in value.items() if element is not None or name not in self.optional]
        values = each(lambda name: self.members[name].decode(value[name]), zip(there, there, strict=True))
        return dict(zip(there, values, strict=True))


class Fixed(Part):
    """An array with a schema for each place: an object with a property for each."""

    kinds = frozenset({"object"})

    def __init__(self, places: Sequence[Part]) -> None:
        self.places = {f"item_{index + 1}": part for index, part in enumerate(places)}

    def parts(self) -> Iterable[Part]:
        return self.places.values()

    def write(self) -> dict[str, Any]:
        return {**closed({name: part.write() for name, part in self.places.items()}), **self.notes}

    def fits(self, value: Any, known: _Known, *, so_far: bool) -> bool:
        if not isinstance(value, dict) or not (value.keys() <= self.places.keys()):
            return False
        return (so_far or value.keys() == self.places.keys()) and all(
            self.places[name].fits(element, known, so_far=so_far) for name, element in value.items()
        )

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            Mismatch.refuse("an object", value)
        unknown = [name for name in value if name not in self.places]
        if unknown:
            raise Mismatch([Fault((unknown[0],), f"one of {', '.join(self.places)}", "an unknown key")])
        there = []
        for name in self.places:
            if name not in value:
                break
            there.append(name)
        return each(lambda name: self.places[name].decode(value[name]), zip(there, there, strict=True))


class Map(Part):
    """An object of any keys: an array of entries."""

    kinds = frozenset({"array"})

    def __init__(self, value: Part) -> None:
        self.value = value

    def parts(self) -> Iterable[Part]:
        return (self.value,)

    def write(self) -> dict[str, Any]:
        entry = closed({"key": {"type": "string"}, "value": self.value.write()})
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
            Mismatch.refuse("an array of entries", value)
        decoded: dict[str, Any] = {}
        faults: list[Fault] = []
        for index, entry in enumerate(value):
            if not isinstance(entry, dict) or entry.keys() != {"key", "value"} or not isinstance(entry["key"], str):
                faults.append(Fault((index,), 'an object with "key", a string, and "value"', "something else"))
            elif entry["key"] in decoded:
                faults.append(Fault((index, "key"), "a key that is not there before", repr(entry["key"])))
            else:
                try:
                    decoded[entry["key"]] = self.value.decode(entry["value"])
                except Mismatch as error:
                    faults += [Fault((index, "value", *each.path), each.expected, each.got) for each in error.faults]
        if faults:
            raise Mismatch(faults)
        return decoded


class Choice(Part):
    """A value of any of several parts: decoded by the first that the strict value is of."""

    def __init__(self, options: Sequence[Part]) -> None:
        self.options = options

    def parts(self) -> Iterable[Part]:
        return self.options

    def write(self) -> dict[str, Any]:
        written: list[dict[str, Any]] = []
        for option in self.options:
            schema = option.write()
            for one in schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]:
                if one not in written:
                    written.append(one)
        if len(written) == 1 and not (self.notes and "$ref" in written[0]):
            return {**written[0], **self.notes}
        return {"anyOf": written, **self.notes}

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
        of_kind = begun or [option for option in self.options if kind_of(value) in kinds_of(option)]
        if len(of_kind) == 1:
            return of_kind[0].decode(value)
        return Mismatch.refuse(f"a value of one of {len(self.options)} alternatives", value)


class Nullable(Choice):
    """A value or null, written with two types as the guide does."""

    def write(self) -> dict[str, Any]:
        schema = self.options[0].write()
        if not isinstance(schema.get("type"), str) or "const" in schema:
            return super().write()
        listed = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
        return {**schema, "type": [schema["type"], "null"], **listed, **self.notes}


class Reference(Part):
    """Another part, by its name in a table that is filled later."""

    def __init__(self, name: str, table: Mapping[str, Part]) -> None:
        self.name, self.table = name, table

    @property
    def target(self) -> Part:
        part = self.table[self.name]
        while isinstance(part, Reference):
            part = part.table[part.name]
        return part

    def parts(self) -> Iterable[Part]:
        return (self.target,)

    def write(self) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{self.name}"}

    def fits(self, value: Any, known: _Known, *, so_far: bool) -> bool:
        return self.target.fits(value, known, so_far=so_far)

    def decode(self, value: Any) -> Any:
        return self.target.decode(value) if self.changes else value


class Entries(Map):
    """An object of any keys beside arrays: an object with its entries."""

    kinds = frozenset({"object"})

    def write(self) -> dict[str, Any]:
        return closed({"entries": super().write()})

    def fits(self, value: Any, known: _Known, *, so_far: bool) -> bool:
        if not isinstance(value, dict) or not value.keys() <= {"entries"} or not (so_far or value):
            return False
        return super().fits(value.get("entries", []), known, so_far=so_far)

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict) or value.keys() != {"entries"}:
            Mismatch.refuse('an object with the one key "entries"', value)
        return under("entries", super().decode, value["entries"])


def kinds_of(part: Part) -> frozenset[str]:
    """Return the kinds of a part's strict values; a part that is being made counts for none."""
    found: set[str] = set()
    seen: set[int] = set()
    waiting: list[Part | None] = [part]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, Reference):
            waiting.append(each.table.get(each.name))
        elif isinstance(each, Choice):
            waiting += each.options
        else:
            found |= each.kinds
    return frozenset(found)


def each(convert: Callable[[Any], Any], items: Iterable[tuple[str | int, Any]]) -> list[Any]:
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


def under(key: str, convert: Callable[[Any], Any], value: Any) -> Any:
    return each(convert, [(key, value)])[0]


def closed(properties: dict[str, Any]) -> dict[str, Any]:
    """Write the one kind of object that strict mode has."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], _NOTHING]}
    return {"anyOf": [schema, _NOTHING]}
