"""Strict mode: the part of JSON Schema that services such as OpenAI hold a model to, and the way back from it.

The root is an object, every property is required, no object has other keys, and a handful of keywords are known. The
rules are those of OpenAI's guide "Structured model outputs", section "Supported schemas" (read in 2026), and three that
its service gives in errors: every schema has a type, nothing stands beside ``$ref``, and a pattern has no lookaround.

A value that a model writes under the strict form is decoded to a value of the original. The strict form may allow less
than the original: an object that declares properties has no others, and null leaves out an optional property. It allows
more only where ``loosened`` says so. Schemas that would take more than that have no strict form: send them as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from portico._schema.compare import never_meet
from portico._schema.definitions import free_name, with_definitions
from portico._schema.values import ANNOTATIONS, OF_KIND, Evaluation, accepts, is_kind, is_number, kind_of, resolve, same
from portico._types.compiled import Fault, Mismatch, convert_each, may_become
from portico.errors import SchemaUnsupported

_FORMATS = frozenset(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"])
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_HELD: Mapping[str, tuple[str, ...]] = {
    "null": (),
    "boolean": (),
    "string": ("pattern", "format"),
    "number": _NUMBERS,
    "integer": _NUMBERS,
    "array": ("items", "prefixItems", "minItems", "maxItems"),
    "object": ("properties", "required", "additionalProperties"),
}
"""The keywords that are kept or rewritten, by the type that they speak of."""
_TYPES = ("null", "boolean", "number", "string", "array", "object")
# OpenAI answers "regex lookaround is not supported"; such engines have no backreferences either.
_UNSUPPORTED_PATTERN = re.compile(r"\(\?<?[=!]|\\[1-9]|\\k<|\(\?P=")
_PREFIX = "#/$defs/"
_WORDS = 100_000
_NESTED = 5
_DEPTH = 10
_PROPERTIES = 5_000
_ENUM_VALUES = 1_000


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
            root = writer.whole()
            target = writer.target(root)
        except (AttributeError, TypeError, ValueError, KeyError) as error:
            raise SchemaUnsupported(f"The schema has no strict form: it is malformed: {error}.") from error
        except RecursionError:
            raise SchemaUnsupported("The schema has no strict form: it is nested too deeply.") from None
        if writer.loosened and not loosen:
            raise SchemaUnsupported(f"The schema has no exact strict form. {'. '.join(writer.loosened)}.")
        is_object = target.get("type") == "object"
        identity = is_object and not writer.changes
        written = target if is_object else _write_object({"value": root.schema})

        def decode(value: Any) -> Any:
            try:
                if is_object:
                    return root.decode(value)
                if not isinstance(value, dict) or value.keys() != {"value"}:
                    Mismatch.refuse('an object with the one key "value"', value)
                return convert_each(root.decode, value.items())[0]
            except RecursionError:
                return Mismatch.refuse("a value that is nested less deeply", value)

        whole = StrictForm.limit(with_definitions(written, writer.definitions))
        return StrictForm(whole, tuple(dict.fromkeys(writer.loosened)), _same if identity else decode, identity)

    @staticmethod
    def limit(schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the schema with its deepest parts moved to definitions; raise ``SchemaUnsupported`` for one too large.

        The limits are those of OpenAI's guide (2026), counted as the validator in OpenAI's Java client counts them,
        which is the more careful reading: the root is at depth 0, a definition at 1, and everything inside a schema is
        one deeper, alternatives too. References are not followed.
        """
        given: Mapping[str, Any] = schema.get("$defs", {})
        definitions: dict[str, Any] = dict(given)
        properties = values = 0

        def place(part: Mapping[str, Any], depth: int) -> dict[str, Any]:
            nonlocal properties, values
            if depth == _DEPTH and any(word in part for word in ("properties", "items", "anyOf")):
                name = _free_name("part", definitions)
                definitions[name] = {}
                definitions[name] = place(part, 1)
                return {"$ref": _PREFIX + name}
            properties += len(part.get("properties", ()))
            values += len(part.get("enum", ()))
            return _with_inner(part, lambda inner: place(inner, depth + 1))

        placed = place({word: part for word, part in schema.items() if word != "$defs"}, 0)
        for name, definition in given.items():
            definitions[name] = place(definition, 1)
        _require_few(properties, values)
        return dict(with_definitions(placed, definitions))


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class _Part:
    schema: dict[str, Any]
    decode: Callable[[Any], Any] = _same


class _Writer:
    def __init__(self, root: Any) -> None:
        self.root = root
        self.loosened: list[str] = []
        self.names: dict[int, str] = {}
        """The names of the definitions, by the identities of the schemas that they are written from."""
        self.waiting: list[tuple[Any, str]] = []
        """The schemas that become definitions, with their places."""
        self.definitions: dict[str, dict[str, Any]] = {}
        self.decoders: dict[str, Callable[[Any], Any]] = {}
        self.json: _Part | None = None
        self.changes = False
        """Whether decoding changes any value."""
        self.merged = {id(root)}
        self.nested = self.words = self.properties = self.values = 0
        self.of_null = Evaluation(root)
        self.compared: dict[Any, bool] = {}

    def whole(self) -> _Part:
        """Write the root, then the definitions, each once."""
        root = self.part(self.root, "#", define=True)
        for schema, place in self.waiting:  # more come meanwhile
            self.define(self.names[id(schema)], self.part(schema, place, define=True))
        return root

    def count(self, words: int, *, properties: int = 0, values: int = 0) -> None:
        """Count what is read and what is written: what is beyond a limit is not begun."""
        self.words += words
        self.properties += properties
        self.values += values
        _require_few(self.properties, self.values)
        if self.words > _WORDS:
            raise SchemaUnsupported(f"The schema has no strict form: it is longer than {_WORDS:,} keywords and names.")

    def part(self, schema: Any, place: str, *, define: bool = False) -> _Part:
        """Write a schema; with ``define``, the body of its definition."""
        _require_schema(schema, place)
        words: Mapping[str, Any] = {} if schema is True else schema
        self.count(1 + len(words))
        if "$ref" not in words and "allOf" not in words:
            return self.of_words(words, place)
        key: Any = schema
        target = self.resolve(words["$ref"], place) if "$ref" in words else None
        if target is not None and self.adds_nothing(words, target):
            key, notes = target, _notes(words)
            if not notes or self.is_written(key):
                part = self.definition(key, words["$ref"])
                return replace(part, schema={"anyOf": [part.schema], **notes}) if notes else part
        elif self.is_written(key) and not define:
            return self.definition(key, place)
        self.merged.add(id(key))
        self.nested += 1
        part = self.of_words(self.merge(schema, place), place)
        self.nested -= 1
        return part

    def adds_nothing(self, schema: Mapping[str, Any], target: Any) -> bool:
        """Tell whether a schema asks for no more than what its reference leads to."""
        asked = {word: argument for word, argument in schema.items() if word != "$ref" and _asks(word)}
        if not asked or not isinstance(target, Mapping):
            return not asked
        self.count(len(target))
        speaks_of = {OF_KIND.get(word) for word in target if _asks(word)}
        held = {"type": "object", **target} if speaks_of == {"object"} else target
        return all(word in held and same(argument, held[word]) for word, argument in asked.items())

    def is_written(self, schema: Any) -> bool:
        """Tell whether to refer to a schema: it is written out in one place only, and not far inside of others."""
        return self.nested == _NESTED or id(schema) in self.merged or id(schema) in self.names

    def of_words(self, schema: Mapping[str, Any], place: str) -> _Part:
        words = {word: part for word, part in schema.items() if _asks(word)}
        choice = next((word for word in ("anyOf", "oneOf") if word in words), None)
        if choice is not None:
            if len(words) > 1:
                _refuse(place, f"{choice} does not stand alone")
            part = self.choice(choice, words[choice], place)
        elif "const" in words or "enum" in words:
            part = self.list_values(words, place)
        else:
            part = self.of_kinds(words, place)
        return part if "$ref" in part.schema else replace(part, schema={**part.schema, **_notes(schema)})

    def merge(self, schema: Mapping[str, Any], place: str) -> dict[str, Any]:
        """Return what a schema, and those that it names by ``$ref`` and ``allOf``, ask together."""
        found: dict[int, Any] = {}
        ended: set[int] = set()

        def follow(part: Any) -> None:
            if part is True or id(part) in ended:
                return
            _require_schema(part, place)
            if id(part) in found:
                _refuse(place, "the schema leads to itself")
            self.count(1 + sum(len(part.get(word, ())) for word in ("properties", "required")) + len(part))
            found[id(part)] = {word: argument for word, argument in part.items() if word not in ("$ref", "allOf")}
            others = [self.resolve(part["$ref"], place)] if "$ref" in part else []
            for other in (*others, *part.get("allOf", ())):
                follow(other)
            ended.add(id(part))

        follow(schema)
        return _merge(list(found.values()), place)

    def resolve(self, reference: Any, place: str) -> Any:
        target = resolve(reference, self.root)
        if target is None:
            _refuse(place, f"the reference {reference!r} leads out of the schema")
        return target

    def definition(self, schema: Any, place: str) -> _Part:
        """Refer to the definition of a schema, which is written when its turn comes."""
        if id(schema) not in self.names:
            last = re.sub(r"[^A-Za-z0-9_.-]", "_", place.rpartition("/")[2]) if place != "#" else "root"
            self.names[id(schema)] = self.free_name(last or "part")
            self.waiting.append((schema, place))
        return self.refer_to(self.names[id(schema)])

    def free_name(self, name: str) -> str:
        name = _free_name(name, self.definitions)
        self.definitions[name] = {}
        return name

    def define(self, name: str, part: _Part) -> None:
        self.definitions[name], self.decoders[name] = part.schema, part.decode

    def refer_to(self, name: str) -> _Part:
        def decode(value: Any) -> Any:
            return self.decoders[name](value)

        return _Part({"$ref": _PREFIX + name}, decode)

    def target(self, part: _Part) -> dict[str, Any]:
        target = part.schema
        for _ in range(len(self.definitions) + 1):
            if "$ref" not in target:
                return target
            target = self.definitions[target["$ref"].removeprefix(_PREFIX)]
        return _refuse("#", "the schema leads to itself")

    def choice(self, word: str, options: Sequence[Any], place: str) -> _Part:
        options = [option for option in options if option is not False]
        parts = [self.part(option, f"{place}/{word}/{index}") for index, option in enumerate(options)]
        if word == "oneOf" and not all(
            never_meet(((one, self.root), (other, self.root)), self.compared)
            for index, one in enumerate(options)
            for other in options[:index]
        ):
            self.loosen(place, "oneOf", "it becomes anyOf, and a value may fit several of its alternatives")
        return self.one_of(parts, place)

    def one_of(self, parts: Sequence[_Part], place: str) -> _Part:
        if not parts:
            _refuse(place, "nothing is valid")
        if len(parts) == 1:
            return parts[0]
        written: dict[str, dict[str, Any]] = {}
        for part in parts:
            for schema in part.schema["anyOf"] if part.schema.keys() == {"anyOf"} else [part.schema]:
                written.setdefault(json.dumps(schema, sort_keys=True), schema)
        schema = {"anyOf": [*written.values()]} if len(written) > 1 else next(iter(written.values()))
        if len(written) == 1:
            return _Part(schema, parts[0].decode)
        if all(part.decode is _same for part in parts):
            return _Part(schema)
        return _Part(schema, lambda value: self.choose(parts, value).decode(value))

    def choose(self, parts: Sequence[_Part], value: Any) -> _Part:
        """Return the part that a value is of, or the only one that it may become when more of it has come."""
        root = {"$defs": self.definitions}
        answers = [accepts(value, part.schema, root) for part in parts]
        for wanted in (True, None):
            if wanted in answers:
                return parts[answers.index(wanted)]
        open_parts = [part for part in parts if may_become(part.schema, value, self.definitions)]
        if len(open_parts) != 1:
            Mismatch.refuse(f"a value of one of {len(parts)} alternatives", value)
        return open_parts[0]

    def list_values(self, words: Mapping[str, Any], place: str) -> _Part:
        values = [words["const"]] if "const" in words else words["enum"]
        self.count(len(values), values=len(values) if "enum" in words else 0)
        kinds = words.get("type", _TYPES)
        kinds = [kinds] if isinstance(kinds, str) else kinds
        values = [value for value in values if any(is_kind(value, kind) for kind in kinds)]
        for word in words.keys() - {"const", "enum", "type"}:
            self.loosen(place, word)
        if any(isinstance(value, list | dict) for value in values):
            _refuse(place, "strict mode lists strings, numbers, true, false and null only")
        parts: list[_Part] = []
        for kind in _TYPES[:4]:
            own = [value for value in values if kind_of(value) == kind]
            if kind == "null" and own:
                parts.append(_Part({"type": "null"}))
            elif own:
                whole = kind == "number" and all(type(value) is int for value in own)
                held = {"const": own[0]} if "const" in words else {"enum": own}
                parts.append(_Part({"type": "integer" if whole else kind, **held}))
        return self.one_of(parts, place)

    def of_kinds(self, words: Mapping[str, Any], place: str) -> _Part:
        # A schema without a type is read as the types that its keywords speak of.
        spoken_of = {OF_KIND[word] for word in words if word in OF_KIND}
        kinds = words.get("type", [kind for kind in _TYPES if kind in spoken_of] or _TYPES)
        kinds = [kinds] if isinstance(kinds, str) else [*dict.fromkeys(kinds)]
        if not kinds or any(kind not in _HELD for kind in kinds):
            _refuse(place, f"{kinds!r} are no types of JSON Schema")
        if set(_TYPES) <= set(kinds):
            for word in words.keys() - {"type"}:
                self.loosen(place, word)
            return self.anything()
        return self.one_of([self.of_kind(kind, words, place) for kind in kinds], place)

    def of_kind(self, kind: str, words: Mapping[str, Any], place: str) -> _Part:
        about = "number" if kind == "integer" else kind
        for word in words:
            if word != "type" and word not in _HELD[kind] and OF_KIND.get(word, about) == about:
                self.loosen(place, word)
        if kind == "object":
            return self.object(words, place)
        if kind == "array":
            return self.array(words, place)
        held: dict[str, Any] = {}
        for word in _HELD[kind]:
            if word not in words:
                continue
            if word in _NUMBERS and not is_number(words[word]):
                _refuse(f"{place}/{word}", "a number is expected")
            if word == "pattern" and _UNSUPPORTED_PATTERN.search(words[word]):
                self.loosen(place, word, "strict mode has no lookaround and no backreferences")
            elif word != "format" or words[word] in _FORMATS:
                held[word] = words[word]
        return _Part({"type": kind, **held})

    def object(self, words: Mapping[str, Any], place: str) -> _Part:
        properties, required = words.get("properties", {}), dict.fromkeys(words.get("required", ()))
        rest = words.get("additionalProperties", True)
        if not properties and not required and rest is not False:
            return self.map(rest, place)
        inner = {name: schema for name, schema in properties.items() if schema is not False or name in required}
        inner |= {name: rest for name in required if name not in inner}
        self.count(len(properties) + len(required), properties=len(inner))
        members = {name: self.part(schema, f"{place}/properties/{name}") for name, schema in inner.items()}
        optional = {
            name for name, schema in inner.items() if name not in required and self.of_null.of(None, schema) is not True
        }
        self.changes = self.changes or bool(optional)
        written = {name: _or_null(part.schema) if name in optional else part.schema for name, part in members.items()}

        def decode(value: Any) -> Any:
            if not isinstance(value, dict):
                Mismatch.refuse("an object", value)
            unknown = [name for name in value if name not in members]
            if unknown:
                known = f"one of {', '.join(members)}"
                raise Mismatch([Fault((name,), known, "an unknown key") for name in unknown])
            given = {name: value[name] for name in value if value[name] is not None or name not in optional}
            decoded = convert_each(lambda name: members[name].decode(given[name]), zip(given, given, strict=True))
            return dict(zip(given, decoded, strict=True))

        return _Part(_write_object(written), decode)

    def map(self, schema: Any, place: str) -> _Part:
        self.changes = True
        self.count(0, properties=2)
        value = self.part(schema, f"{place}/additionalProperties")
        return _Part(_entries(value.schema), lambda entries: _from_entries(entries, value.decode))

    def array(self, words: Mapping[str, Any], place: str) -> _Part:
        places, rest = words.get("prefixItems", ()), words.get("items", True)
        bounds = {word: words[word] for word in ("minItems", "maxItems") if words.get(word)}
        if words.get("maxItems") == 0:
            bounds["maxItems"] = 0
        if any(type(count) is not int or count < 0 for count in bounds.values()):
            _refuse(place, "a number of elements is expected")
        if places:
            size = len(places)
            fixed = bounds.get("minItems") == size and (bounds.get("maxItems") == size or rest is False)
            if not fixed or any(inner != places[0] for inner in places):
                _refuse(f"{place}/prefixItems", "strict mode has one schema for all elements of an array")
            rest, bounds = places[0], dict.fromkeys(("minItems", "maxItems"), size)
        item = self.part(rest, f"{place}/items")

        def decode(value: Any) -> Any:
            if not isinstance(value, list):
                Mismatch.refuse("an array", value)
            return convert_each(item.decode, enumerate(value))

        schema = {"type": "array", "items": item.schema, **bounds}
        return _Part(schema, _same if item.decode is _same else decode)

    def anything(self) -> _Part:
        """Make the part of any JSON at all: an object is one with the one key ``entries``."""
        self.changes = True
        if self.json is None:
            self.count(0, properties=3)
            name = self.free_name("json")
            self.json = self.refer_to(name)
            inner = self.json.schema
            kinds: list[dict[str, Any]] = [{"type": kind} for kind in _TYPES[:4]]
            kinds += [{"type": "array", "items": inner}, _write_object({"entries": _entries(inner)})]
            self.define(name, _Part({"anyOf": kinds}, _from_anything))
        return self.json

    def loosen(self, place: str, word: str, why: str = "strict mode has no such keyword") -> None:
        self.loosened.append(f"{place}/{word} is not held: {why}")


def _merge(schemas: Sequence[Mapping[str, Any]], place: str) -> dict[str, Any]:
    """Return one schema of what several ask together: objects whose properties do not clash, and little else."""
    merged: dict[str, Any] = {}
    for schema in schemas:
        for word, argument in schema.items():
            if word not in merged:
                known = dict.fromkeys(argument) if word == "required" else argument
                merged[word] = dict(known) if word == "properties" else known
                continue
            known = merged[word]
            if word == "properties" and all(same(known[name], argument[name]) for name in argument if name in known):
                known.update(argument)
            elif word == "required":
                known.update(dict.fromkeys(argument))
            elif word not in ANNOTATIONS and not same(known, argument):
                _refuse(place, f"{word} is asked for twice, and differently")
    asking = [schema for schema in schemas if schema.keys() - ANNOTATIONS]
    if len(asking) > 1 and (
        {"items", "prefixItems"} & merged.keys() or merged.get("additionalProperties", True) is not True
    ):
        _refuse(place, "only objects that are not closed are merged")
    return merged


def _require_schema(schema: Any, place: str) -> None:
    if schema is False:
        _refuse(place, "nothing is valid")
    if schema is not True and not isinstance(schema, Mapping):
        _refuse(place, f"a schema is an object, true or false, not {type(schema).__name__}")


def _require_few(properties: int, values: int) -> None:
    for count, most, of in ((properties, _PROPERTIES, "properties"), (values, _ENUM_VALUES, "listed values")):
        if count > most:
            raise SchemaUnsupported(
                f"The schema has no strict form: it has at least {count:,} {of}, and strict mode takes {most:,}. "
                "Ask for less at a time, or turn strict mode off."
            )


def _free_name(name: str, definitions: Mapping[str, Any]) -> str:
    """Return a free name without trying thousands of numbers."""
    return free_name(f"{name}{len(definitions) + 1}" if name in definitions else name, definitions)


def _asks(word: str) -> bool:
    return word not in ANNOTATIONS and not word.startswith("x-")


def _notes(schema: Mapping[str, Any]) -> dict[str, str]:
    return {word: schema[word] for word in ("title", "description") if isinstance(schema.get(word), str)}


def _write_object(properties: dict[str, Any]) -> dict[str, Any]:
    """Write the one kind of object that strict mode has."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _entries(value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": _write_object({"key": {"type": "string"}, "value": value})}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    nothing = {"type": "null"}
    return {**schema, "anyOf": [*schema["anyOf"], nothing]} if "anyOf" in schema else {"anyOf": [schema, nothing]}


def _from_entries(value: Any, decode: Callable[[Any], Any]) -> dict[str, Any]:
    """Turn entries into an object; no key may come twice, since one of the two would be lost."""
    if not isinstance(value, list):
        Mismatch.refuse("an array of entries", value)
    decoded: dict[str, Any] = {}
    for index, entry in enumerate(value):
        if not isinstance(entry, dict) or entry.keys() != {"key", "value"} or not isinstance(entry["key"], str):
            raise Mismatch([Fault((index,), 'an object with "key", a string, and "value"', "something else")])
        if entry["key"] in decoded:
            raise Mismatch([Fault((index, "key"), "a key that is not there before", repr(entry["key"]))])
        decoded[entry["key"]] = convert_each(decode, [(index, entry["value"])])[0]
    return decoded


def _from_anything(value: Any) -> Any:
    if isinstance(value, list):
        return convert_each(_from_anything, enumerate(value))
    if not isinstance(value, dict):
        return value
    if value.keys() != {"entries"}:
        Mismatch.refuse('an object with the one key "entries"', value)
    return convert_each(lambda entries: _from_entries(entries, _from_anything), value.items())[0]


def _with_inner(schema: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    made = dict(schema)
    if "properties" in made:
        made["properties"] = {name: change(part) for name, part in made["properties"].items()}
    if "anyOf" in made:
        made["anyOf"] = [change(part) for part in made["anyOf"]]
    if "items" in made:
        made["items"] = change(made["items"])
    return made


def _refuse(place: str, why: str) -> NoReturn:
    raise SchemaUnsupported(f"The schema has no strict form: at {place}, {why}.")
