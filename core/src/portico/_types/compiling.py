"""Compiles Python types: plain values, containers, and what they are made of."""

from __future__ import annotations

import collections.abc
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import is_dataclass, replace
from enum import Enum
from importlib import import_module
from typing import Any, Literal, Protocol

from portico._schema.definitions import free_name, hoist, with_definitions
from portico._types.classes import QUALIFIERS, class_members, compile_class, note
from portico._types.compiled import Compiled, Fault, Mismatch, convert_each, draft_each, draft_of
from portico._types.docstrings import Documentation
from portico._types.unions import OUTCOMES, UnionOf
from portico.errors import PorticoError, SchemaUnsupported


def choice(members: Iterable[Any]) -> Compiled:
    """Compile an enumeration of JSON values or `Enum` members.

    As in JSON Schema, 1 and 1.0 are one value, and 1 and true are two.
    """
    pairs = [(member.value if isinstance(member, Enum) else member, member) for member in members]
    for value, _ in pairs:
        if not isinstance(value, str | int | float | bool | types.NoneType):
            raise SchemaUnsupported(f"{value!r} is not a JSON value: an enumeration needs strings, numbers or bools.")
    by_key = {(type(value) is bool, value): member for value, member in pairs}
    expected = "one of " + ", ".join(repr(value) for value, _ in pairs)

    def structure(value: Any) -> Any:
        try:
            return by_key[type(value) is bool, value]
        except (KeyError, TypeError):
            return Mismatch.refuse(expected, value)

    def unstructure(value: Any) -> Any:
        return value.value if isinstance(value, Enum) else value

    return Compiled({"enum": [value for value, _ in pairs]}, structure, unstructure)


def copy_json(value: Any) -> Any:
    """Copy a JSON value, so that changing the copy does not change the original."""
    if type(value) is list:
        return [copy_json(element) for element in value]
    if type(value) is dict:
        return {key: copy_json(element) for key, element in value.items()}
    return value


def _text(value: Any) -> str:
    return value if type(value) is str else Mismatch.refuse("a string", value)


def _integer(value: Any) -> int:
    if type(value) is int:
        return value
    return int(value) if type(value) is float and value.is_integer() else Mismatch.refuse("an integer", value)


def _number(value: Any) -> float:
    # JSON has neither NaN nor infinity; Python's parser lets both in.
    if type(value) is float and math.isfinite(value):
        return value
    try:
        return float(value) if type(value) is int else Mismatch.refuse("a number", value)
    except OverflowError:
        return Mismatch.refuse("a number that a float can hold", value)


def _boolean(value: Any) -> bool:
    return value if type(value) is bool else Mismatch.refuse("true or false", value)


def _null(value: Any) -> None:
    if value is not None:
        Mismatch.refuse("null", value)


KEPT = {id(_text): str, id(_integer): int, id(_boolean): bool}  # whose values stay as they are, by what reads them


def _make_parser(expected: str, parse: Callable[[str], Any]) -> Callable[[Any], Any]:
    def structure(value: Any) -> Any:
        if type(value) is not str:
            Mismatch.refuse(expected, value)
        try:
            return parse(value)
        except (ValueError, ArithmeticError):
            return Mismatch.refuse(expected, value)

    return structure


def _textual(name: str, format: str, expected: str, parse: str = "", show: str = "__str__") -> Callable[[], Compiled]:
    """Compile a class by its name; ``parse`` is its method that reads a string, ``show`` the one that writes it."""

    def build() -> Compiled:
        module, _, attribute = name.rpartition(".")
        kind = getattr(import_module(module), attribute)
        read = getattr(kind, parse) if parse else kind
        return Compiled({"type": "string", "format": format}, _make_parser(expected, read), getattr(kind, show))

    return build


def same(value: Any) -> Any:
    """Write a value that is one of JSON."""
    return value


def _plain(kind: str, structure: Callable[[Any], Any]) -> Callable[[], Compiled]:
    return lambda: Compiled({"type": kind}, structure, same)


# By name, so that types which a program never uses are never imported.
_SCALARS: Mapping[str, Callable[[], Compiled]] = {
    "builtins.str": _plain("string", _text),
    "builtins.int": _plain("integer", _integer),
    "builtins.float": _plain("number", _number),
    "builtins.bool": _plain("boolean", _boolean),
    "builtins.NoneType": _plain("null", _null),
    "portico._prompts.prompt.Trusted": lambda: Compiled({"type": "string"}, _text, str),  # what is read is plain text
} | {
    name: _textual(name, *more)
    for name, *more in (
        ("datetime.datetime", "date-time", "a date and time (ISO 8601)", "fromisoformat", "isoformat"),
        ("datetime.date", "date", "a date (ISO 8601)", "fromisoformat", "isoformat"),
        ("datetime.time", "time", "a time of day (ISO 8601)", "fromisoformat", "isoformat"),
        ("uuid.UUID", "uuid", "a UUID"),
        ("decimal.Decimal", "decimal", "a decimal number in a string"),
    )
}


def array(inner: Compiled, make: Callable[[list[Any]], Any], *, unique: bool = False) -> Compiled:
    """Compile an array of any number of elements; ``make`` is list, tuple, set or frozenset."""
    schema: dict[str, Any] = {"type": "array", "items": inner.schema}
    if unique:
        schema["uniqueItems"] = True
    structure_inner, unstructure_inner, draft_inner = inner.structure, inner.unstructure, draft_of(inner)

    def structure(value: Any) -> Any:
        if type(value) is not list:
            Mismatch.refuse("an array", value)
        made = whole(convert_each(structure_inner, enumerate(value)), value)
        if unique and len(made) < len(value):
            Mismatch.refuse("an array whose elements are all different", value)
        return made

    def whole(elements: list[Any], value: Any) -> Any:
        if make is list:
            return elements
        try:
            return make(elements)
        except TypeError:
            Mismatch.refuse("an array of strings, numbers, bools or null", value)

    def unstructure(value: Any) -> Any:
        return [unstructure_inner(element) for element in value]

    def draft(value: Any) -> Any:
        if type(value) is not list:
            Mismatch.refuse("an array", value)
        return whole(draft_each(draft_inner, value), value)

    return Compiled(schema, structure, unstructure, draft)


def compile_tuple(inner: Sequence[Compiled]) -> Compiled:
    """Compile a tuple of a fixed number of elements."""
    schema = {
        "type": "array",
        "prefixItems": [compiled.schema for compiled in inner],
        "minItems": len(inner),
        "maxItems": len(inner),
    }
    structures = [compiled.structure for compiled in inner]
    unstructures = [compiled.unstructure for compiled in inner]

    def structure(value: Any) -> Any:
        if type(value) is not list or len(value) != len(inner):
            Mismatch.refuse(f"an array of {len(inner)}", value)
        pairs = zip(structures, value, strict=True)
        return tuple(convert_each(lambda pair: pair[0](pair[1]), enumerate(pairs)))

    def unstructure(value: Any) -> Any:
        return [write(element) for write, element in zip(unstructures, value, strict=True)]

    def draft(value: Any) -> Any:
        if type(value) is not list or len(value) > len(inner):
            Mismatch.refuse(f"an array of {len(inner)}", value)
        shown = [
            next(iter(draft_each(draft_of(each), [element])), None) for each, element in zip(inner, value, strict=False)
        ]
        return tuple(shown + [None] * (len(inner) - len(shown)))

    return Compiled(schema, structure, unstructure, draft)


def mapping(inner: Compiled) -> Compiled:
    """Compile an object whose keys are data."""
    structure_inner, unstructure_inner, draft_inner = inner.structure, inner.unstructure, draft_of(inner)

    def structure(value: Any) -> Any:
        if type(value) is not dict:
            Mismatch.refuse("an object", value)
        return dict(zip(value, convert_each(structure_inner, value.items()), strict=True))

    def unstructure(value: Any) -> Any:
        return {key: unstructure_inner(element) for key, element in value.items()}

    def draft(value: Any) -> Any:
        if type(value) is not dict:
            Mismatch.refuse("an object", value)
        return {key: shown for key, element in value.items() for shown in draft_each(draft_inner, [element])}

    return Compiled({"type": "object", "additionalProperties": inner.schema}, structure, unstructure, draft)


_LISTS = (Sequence, Iterable, collections.abc.Collection, collections.abc.MutableSequence)
_MAPPINGS = (Mapping, collections.abc.MutableMapping)
_SETS = (Set, collections.abc.MutableSet)


class _Codec(Protocol):
    def compile(self, hint: object, inner: Callable[[object], Compiled]) -> Compiled | None: ...


def compile_type(hint: object, codecs: Iterable[_Codec] = ()) -> Compiled:
    """Compile a resolved type hint (no strings, no forward references).

    >>> from typing import Annotated
    >>> compiled = compile_type(dict[str, Annotated[int, "how many"]])
    >>> compiled.schema["additionalProperties"]
    {'type': 'integer', 'description': 'how many'}
    >>> compiled.structure({"a": 2.0})
    {'a': 2}

    Every value comes back from JSON as it was, but for those of no declared type, which come back as plain JSON, and
    values of a union that another member takes, too. Raises ``SchemaUnsupported`` for a type that JSON cannot hold or
    that no codec knows, and for a union of two members with the same schema.
    """
    compiler = _Compiler(tuple(codecs))
    compiled = compiler.compile(hint)
    compiler.settle()
    draft = compiled.draft and compiler.limit(compiled.draft, total=True)
    if not compiler.definitions:
        return replace(compiled, draft=draft)
    schema = with_definitions(compiled.schema, compiler.definitions)
    return Compiled(schema, compiler.limit(compiled.structure), compiled.unstructure, draft)


class _Compiler:
    def __init__(self, codecs: tuple[_Codec, ...]) -> None:
        self.codecs = codecs
        self.definitions: dict[str, Mapping[str, Any]] = {}
        self.open: dict[object, list[Compiled]] = {}
        self.recursive: dict[object, str] = {}
        self.done: dict[object, Compiled] = {}
        self.unions: list[UnionOf] = []
        self.defaults: list[tuple[dict[str, Any], Compiled, object]] = []
        """Schemas of fields, with their types and defaults."""
        self.written_by: dict[type, Callable[[Any], Any]] = {}

    def settle(self) -> None:
        """Finish what had to wait until every definition was there."""
        for union in self.unions:
            union.settle()
        for schema, compiled, default in self.defaults:
            schema.update(compiled.json_default(default))

    def limit(self, structure: Callable[[Any], Any], *, total: bool = False) -> Callable[[Any], Any]:
        """Give a recursive type's values an end: a bound on their depth, and each alternative tried once.

        ``total`` lets no other error out than a `Mismatch`.
        """

        def convert(value: Any) -> Any:
            token = OUTCOMES.set({})
            try:
                return structure(value)
            except RecursionError:
                Mismatch.refuse("a value that is nested less deeply", value)
            except Mismatch:
                raise
            except Exception as error:
                if not total:
                    raise
                raise Mismatch([Fault((), "more of the value", str(error))]) from error
            finally:
                OUTCOMES.reset(token)

        return convert

    def compile(self, hint: object) -> Compiled:
        for codec in self.codecs:
            compiled = self.ask_codec(codec, hint)
            if compiled is not None:
                # The definitions of the codec move to the root.
                schema = hoist(compiled.schema, self.definitions, taken=self.recursive.values())
                return replace(compiled, schema=schema)
        if hint is None:
            hint = types.NoneType
        simple = _SCALARS.get(f"{hint.__module__}.{hint.__qualname__}") if isinstance(hint, type) else None
        if simple is not None:
            return simple()
        if hint is Any or hint is object:
            return Compiled({}, copy_json, self.write)
        origin = typing.get_origin(hint)
        if origin is typing.Annotated:
            return self.compile_annotated(hint)
        if origin is typing.Union or origin is types.UnionType:
            return self.union(typing.get_args(hint))
        if origin is Literal:
            return choice(typing.get_args(hint))
        if origin in QUALIFIERS:
            return self.compile(typing.get_args(hint)[0])
        supertype = getattr(hint, "__supertype__", None)
        if supertype is not None:
            return self.compile(supertype)
        if hasattr(hint, "__value__"):
            return self.compile_named(hint)
        container = self.container(origin or hint, typing.get_args(hint))
        if container is not None:
            return container
        if isinstance(hint, type):
            if issubclass(hint, Enum):
                return self.enumeration(hint)
            if (
                is_dataclass(hint)
                or typing.is_typeddict(hint)
                or (issubclass(hint, tuple) and hasattr(hint, "_fields"))
            ):
                return self.compile_named(hint)
        raise SchemaUnsupported(
            f"The type {getattr(hint, '__qualname__', hint)} has no JSON form here. Use standard-library kinds, "
            "or install a package with a type codec for it."
        )

    def ask_codec(self, codec: _Codec, hint: object) -> Compiled | None:
        """Ask a codec for a type; it is asked about types of all kinds, so its own errors name it."""
        try:
            return codec.compile(hint, self.compile)
        except PorticoError:
            raise
        except Exception as error:
            name = getattr(codec, "name", None) or type(codec).__qualname__
            raise SchemaUnsupported(
                f"The type codec {name!r} failed when it was asked for {hint!r:.200}: {type(error).__name__}: {error}. "
                "Tell its author, or uninstall its package where the type is none of its kind."
            ) from error

    def compile_annotated(self, hint: object) -> Compiled:
        compiled = self.compile(typing.get_args(hint)[0])
        description = note(hint)
        return compiled if description is None else _describe(compiled, description)

    def union(self, hints: Sequence[object]) -> Compiled:
        members = [self.compile(hint) for hint in hints]
        union = UnionOf(hints, members, self.definitions, self.write)
        self.unions.append(union)
        return union.compiled

    def enumeration(self, hint: type[Enum]) -> Compiled:
        if not len(hint):
            raise SchemaUnsupported(f"The enumeration {hint.__qualname__} has no members, so it has no values.")
        description = Documentation.of_class(hint).description
        return _describe(choice(hint), description) if description else choice(hint)

    def container(self, origin: object, arguments: tuple[Any, ...]) -> Compiled | None:
        if not isinstance(origin, type):
            return None
        if issubclass(origin, tuple) and not hasattr(origin, "_fields"):
            if not arguments or (len(arguments) == 2 and arguments[1] is Ellipsis):
                return array(self.compile(arguments[0] if arguments else Any), tuple)
            return compile_tuple([self.compile(hint) for hint in arguments])
        item = arguments[0] if arguments else Any
        if issubclass(origin, set | frozenset) or origin in _SETS:
            kind = frozenset if issubclass(origin, frozenset) else set
            return array(self.compile(item), kind, unique=True)
        if issubclass(origin, list) or origin in _LISTS:
            return array(self.compile(item), list)
        if (issubclass(origin, dict) or origin in _MAPPINGS) and not typing.is_typeddict(origin):
            if arguments and arguments[0] is not str:
                raise SchemaUnsupported(f"The keys of a JSON object are strings, not {arguments[0]!r}.")
            return mapping(self.compile(arguments[1] if arguments else Any))
        return None

    def compile_named(self, hint: Any) -> Compiled:
        """Compile a class with fields or an alias; what contains itself becomes a definition with references."""
        if hint in self.open:
            name = self.recursive.setdefault(
                hint, free_name(hint.__name__, {*self.recursive.values(), *self.definitions})
            )
            cell = self.open[hint]
            return Compiled(
                {"$ref": f"#/$defs/{name}"},
                lambda value: cell[0].structure(value),  # noqa: PLW0108 - the cell is filled later
                lambda value: cell[0].unstructure(value),  # noqa: PLW0108
                lambda value: draft_of(cell[0])(value),  # noqa: PLW0108
            )
        if hint in self.done:
            return self.done[hint]
        cell = self.open[hint] = []
        try:
            compiled = self.object(hint) if isinstance(hint, type) else self.compile(hint.__value__)
        finally:
            del self.open[hint]
        cell.append(compiled)
        if hint in self.recursive:
            self.definitions[self.recursive[hint]] = compiled.schema
            compiled = replace(compiled, schema={"$ref": f"#/$defs/{self.recursive[hint]}"})
        self.done[hint] = compiled
        return compiled

    def object(self, hint: Any) -> Compiled:
        members = class_members(hint)
        inner: dict[str, Compiled] = {}
        for name, member in members.hints.items():
            compiled = self.compile(member)
            description = members.documentation.parameters.get(name)
            if description and note(member) is None:
                compiled = _describe(compiled, description)
            if name in members.defaults:
                schema = dict(compiled.schema)
                compiled = replace(compiled, schema=schema)
                self.defaults.append((schema, compiled, members.defaults[name]))
            inner[name] = compiled
        return compile_class(hint, members, inner)

    def write(self, value: Any) -> Any:
        """Write a value of no declared type as JSON, by the type that it has."""
        kind = type(value)
        if kind in (str, int, float, bool, types.NoneType):
            return value
        if kind in (list, tuple):
            return [self.write(element) for element in value]
        if kind is dict:
            for key in value:
                if not isinstance(key, str):
                    raise SchemaUnsupported(f"The keys of a JSON object are strings, not {key!r}.")
            return {key: self.write(element) for key, element in value.items()}
        if kind is object:
            raise SchemaUnsupported("A bare object has no JSON form.")
        if kind not in self.written_by:
            self.written_by[kind] = compile_type(kind, self.codecs).unstructure
        return self.written_by[kind](value)


def _describe(compiled: Compiled, description: str) -> Compiled:
    return replace(compiled, schema={**compiled.schema, "description": description})
