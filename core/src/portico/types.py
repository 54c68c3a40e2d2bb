"""Python type hints to JSON Schema (2020-12), and JSON values to Python values and back.

Covers the kinds of the standard library. A `TypeCodec` takes over others (attrs, pydantic); it is asked first
and calls back for the types inside its own.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, Literal, NoReturn, Protocol

from portico.errors import SchemaUnsupported

__all__ = ["Compiled", "Fault", "Mismatch", "compile_type"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One place where a JSON value does not fit a type: its path from ``$``, what was expected, what came."""

    path: tuple[str | int, ...]
    expected: str
    got: str

    def __str__(self) -> str:
        place = "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return f"{place}: expected {self.expected}, got {self.got}"


class Mismatch(ValueError):
    """A JSON value does not fit a type; ``faults`` are all the places."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(map(str, self.faults)))


@dataclass(frozen=True, slots=True)
class Compiled:
    """A type made ready: its JSON Schema, and functions from JSON values and to them.

    ``structure`` raises `Mismatch`; ``unstructure`` trusts its argument.
    """

    schema: Mapping[str, Any]
    structure: Callable[[Any], Any]
    unstructure: Callable[[Any], Any]


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

    Raises ``SchemaUnsupported`` for a type that JSON cannot hold or that no codec knows.
    """
    compiler = _Compiler(tuple(codecs))
    compiled = compiler.compile(hint)
    if not compiler.definitions:
        return compiled
    schema = {**compiled.schema, "$defs": compiler.definitions}
    return Compiled(schema, compiled.structure, compiled.unstructure)


def _same(value: Any) -> Any:
    return value


def _refuse(expected: str, value: object) -> NoReturn:
    raise Mismatch([Fault((), expected, _describe(value))])


def _describe(value: object) -> str:
    """Show a JSON value in an error: its kind, and its text when short."""
    kinds: dict[type, str] = {dict: "an object", list: "an array", type(None): "null"}
    kind = kinds.get(type(value))
    if kind is not None:
        return kind
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _under(key: str | int, error: Mismatch) -> list[Fault]:
    return [Fault((key, *fault.path), fault.expected, fault.got) for fault in error.faults]


class _Compiler:
    def __init__(self, codecs: tuple[_Codec, ...]) -> None:
        self.codecs = codecs
        self.definitions: dict[str, Mapping[str, Any]] = {}
        self.open: dict[object, list[Compiled]] = {}
        self.recursive: dict[object, str] = {}

    def compile(self, hint: object) -> Compiled:
        for codec in self.codecs:
            compiled = codec.compile(hint, self.compile)
            if compiled is not None:
                return compiled
        if hint is None:
            hint = types.NoneType
        simple = _SIMPLE.get(f"{hint.__module__}.{hint.__qualname__}") if isinstance(hint, type) else None
        if simple is not None:
            return simple()
        if hint is Any or hint is object:
            return Compiled({}, _same, _same)
        origin = typing.get_origin(hint)
        if origin is typing.Annotated:
            return self.annotated(hint)
        if origin is typing.Union or origin is types.UnionType:
            return self.union(typing.get_args(hint))
        if origin is Literal:
            return _choice([(value, value) for value in typing.get_args(hint)])
        if origin in (typing.Required, typing.NotRequired, typing.Final, typing.ClassVar):
            return self.compile(typing.get_args(hint)[0])
        supertype = getattr(hint, "__supertype__", None)
        if supertype is not None:
            return self.compile(supertype)
        container = self.container(origin or hint, typing.get_args(hint))
        if container is not None:
            return container
        if isinstance(hint, type):
            if issubclass(hint, Enum):
                return _choice([(member.value, member) for member in hint])
            if is_dataclass(hint):
                return self.named(hint, self.dataclass)
            if typing.is_typeddict(hint):
                return self.named(hint, self.typed_dict)
            if issubclass(hint, tuple) and hasattr(hint, "_fields"):
                return self.named(hint, self.named_tuple)
        raise SchemaUnsupported(
            f"The type {getattr(hint, '__qualname__', hint)} has no JSON form here. Use standard-library kinds, "
            "or install a package with a type codec for it."
        )

    def annotated(self, hint: object) -> Compiled:
        inner, *notes = typing.get_args(hint)
        compiled = self.compile(inner)
        description = next((note for note in notes if isinstance(note, str)), None)
        if description is None:
            return compiled
        return Compiled({**compiled.schema, "description": description}, compiled.structure, compiled.unstructure)

    def union(self, hints: Sequence[object]) -> Compiled:
        members = [self.compile(hint) for hint in hints]
        tests = [_instance_test(hint) for hint in hints]

        def structure(value: Any) -> Any:
            faults: list[Fault] = []
            for member in members:
                try:
                    return member.structure(value)
                except Mismatch as error:
                    faults.extend(error.faults)
            expected = " or ".join(dict.fromkeys(fault.expected for fault in faults if not fault.path))
            if expected and not any(fault.path for fault in faults):
                _refuse(expected, value)
            raise Mismatch([fault for fault in faults if fault.path] or faults)

        def unstructure(value: Any) -> Any:
            for test, member in zip(tests, members, strict=True):
                if test(value):
                    return member.unstructure(value)
            return value

        return Compiled({"anyOf": [member.schema for member in members]}, structure, unstructure)

    def container(self, origin: object, arguments: tuple[Any, ...]) -> Compiled | None:
        if not isinstance(origin, type):
            return None
        if issubclass(origin, tuple) and not hasattr(origin, "_fields"):
            if len(arguments) == 2 and arguments[1] is Ellipsis:
                return self.array(arguments[0], tuple)
            return self.fixed(arguments) if arguments else self.array(Any, tuple)
        item = arguments[0] if arguments else Any
        if issubclass(origin, set | frozenset) or origin is Set:
            return self.array(item, frozenset if issubclass(origin, frozenset) else set, unique=True)
        if issubclass(origin, list) or origin in (Sequence, Iterable, typing.Collection):
            return self.array(item, list)
        if (issubclass(origin, dict) or origin is Mapping) and not typing.is_typeddict(origin):
            if arguments and arguments[0] is not str:
                raise SchemaUnsupported(f"The keys of a JSON object are strings, not {arguments[0]!r}.")
            return self.mapping(arguments[1] if arguments else Any)
        return None

    def array(self, item: object, make: Callable[[list[Any]], Any], *, unique: bool = False) -> Compiled:
        inner = self.compile(item)
        schema: dict[str, Any] = {"type": "array", "items": inner.schema}
        if unique:
            schema["uniqueItems"] = True

        def structure(value: Any) -> Any:
            if type(value) is not list:
                _refuse("an array", value)
            return make(_each(inner.structure, enumerate(value)))

        def unstructure(value: Any) -> Any:
            return [inner.unstructure(element) for element in value]

        return Compiled(schema, structure, unstructure)

    def fixed(self, hints: tuple[object, ...]) -> Compiled:
        inner = [self.compile(hint) for hint in hints]
        schema = {
            "type": "array",
            "prefixItems": [compiled.schema for compiled in inner],
            "minItems": len(inner),
            "maxItems": len(inner),
        }

        def structure(value: Any) -> Any:
            if type(value) is not list or len(value) != len(inner):
                _refuse(f"an array of {len(inner)}", value)
            return tuple(compiled.structure(element) for compiled, element in zip(inner, value, strict=True))

        def unstructure(value: Any) -> Any:
            return [compiled.unstructure(element) for compiled, element in zip(inner, value, strict=True)]

        return Compiled(schema, structure, unstructure)

    def mapping(self, item: object) -> Compiled:
        inner = self.compile(item)

        def structure(value: Any) -> Any:
            if type(value) is not dict:
                _refuse("an object", value)
            return dict(zip(value, _each(inner.structure, value.items()), strict=True))

        def unstructure(value: Any) -> Any:
            return {key: inner.unstructure(element) for key, element in value.items()}

        return Compiled({"type": "object", "additionalProperties": inner.schema}, structure, unstructure)

    def named(self, hint: Any, build: Callable[[Any], Compiled]) -> Compiled:
        """Compile a class with fields; one that contains itself becomes a definition with references."""
        if hint in self.open:
            name = self.recursive.setdefault(hint, self.definition_name(hint))
            cell = self.open[hint]
            return Compiled(
                {"$ref": f"#/$defs/{name}"},
                lambda value: cell[0].structure(value),  # noqa: PLW0108 - the cell is filled later
                lambda value: cell[0].unstructure(value),  # noqa: PLW0108
            )
        cell = self.open[hint] = []
        try:
            compiled = build(hint)
        finally:
            del self.open[hint]
        cell.append(compiled)
        name_or_none = self.recursive.get(hint)
        if name_or_none is None:
            return compiled
        self.definitions[name_or_none] = compiled.schema
        return Compiled({"$ref": f"#/$defs/{name_or_none}"}, compiled.structure, compiled.unstructure)

    def definition_name(self, hint: Any) -> str:
        name: str = hint.__name__
        taken = set(self.recursive.values())
        return next(
            candidate
            for candidate in (name, *(f"{name}{count}" for count in range(2, len(taken) + 3)))
            if candidate not in taken
        )

    def dataclass(self, hint: Any) -> Compiled:
        hints = typing.get_type_hints(hint, include_extras=True)
        members = {field.name: hints[field.name] for field in fields(hint) if field.init}
        required = {
            field.name for field in fields(hint) if field.default is MISSING and field.default_factory is MISSING
        }
        return self.object(hint, members, required, lambda values: hint(**values), getattr)

    def typed_dict(self, hint: Any) -> Compiled:
        members = typing.get_type_hints(hint, include_extras=True)
        return self.object(hint, members, set(hint.__required_keys__), _same, lambda value, name: value[name])

    def named_tuple(self, hint: Any) -> Compiled:
        hints = typing.get_type_hints(hint, include_extras=True)
        members = {name: hints.get(name, Any) for name in hint._fields}
        required = set(hint._fields) - set(hint._field_defaults)
        return self.object(hint, members, required, lambda values: hint(**values), getattr)

    def object(
        self,
        hint: Any,
        members: Mapping[str, object],
        required: set[str],
        make: Callable[[dict[str, Any]], Any],
        read: Callable[[Any, str], Any],
    ) -> Compiled:
        inner = {name: self.compile(member) for name, member in members.items()}
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {name: compiled.schema for name, compiled in inner.items()},
            "required": [name for name in inner if name in required],
            "additionalProperties": False,
        }
        sparse = typing.is_typeddict(hint)

        def structure(value: Any) -> Any:
            if type(value) is not dict:
                _refuse("an object", value)
            values: dict[str, Any] = {}
            faults: list[Fault] = []
            for name, compiled in inner.items():
                if name in value:
                    try:
                        values[name] = compiled.structure(value[name])
                    except Mismatch as error:
                        faults.extend(_under(name, error))
                elif name in required:
                    faults.append(Fault((name,), "a value", "nothing"))
            faults += [
                Fault((key,), f"one of {', '.join(inner)}", "an unknown key") for key in value if key not in inner
            ]
            if faults:
                raise Mismatch(faults)
            try:
                return make(values)
            except ValueError as error:
                raise Mismatch([Fault((), f"a valid {hint.__name__}", str(error))]) from error

        def unstructure(value: Any) -> Any:
            return {
                name: compiled.unstructure(read(value, name))
                for name, compiled in inner.items()
                if not sparse or name in value
            }

        return Compiled(schema, structure, unstructure)


def _each(structure: Callable[[Any], Any], items: Iterable[tuple[str | int, Any]]) -> list[Any]:
    """Structure every element and report all faults, each under its key."""
    values: list[Any] = []
    faults: list[Fault] = []
    for key, element in items:
        try:
            values.append(structure(element))
        except Mismatch as error:
            faults.extend(_under(key, error))
    if faults:
        raise Mismatch(faults)
    return values


def _instance_test(hint: object) -> Callable[[Any], bool]:
    """Tell values of a union's member apart, by class only: enough to choose how to unstructure."""
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return _instance_test(typing.get_args(hint)[0])
    if origin is Literal:
        options = typing.get_args(hint)
        return lambda value: any(type(value) is type(option) and value == option for option in options)
    kind = origin or hint
    if kind is Any or kind is object:
        return lambda value: True
    if typing.is_typeddict(kind):
        keys: frozenset[str] = getattr(kind, "__required_keys__", frozenset())
        return lambda value: isinstance(value, dict) and keys <= value.keys()
    if isinstance(kind, type):
        exact = kind in (bool, int, float, str)
        return (lambda value: type(value) is kind) if exact else (lambda value: isinstance(value, kind))
    return lambda value: True


def _choice(pairs: list[tuple[Any, Any]]) -> Compiled:
    """Compile an enumeration given as (JSON value, Python value) pairs."""
    for value, _ in pairs:
        if not isinstance(value, str | int | float | bool | types.NoneType):
            raise SchemaUnsupported(f"{value!r} is not a JSON value: an enumeration needs strings, numbers or bools.")
    by_key = {(type(value), value): member for value, member in pairs}
    expected = "one of " + ", ".join(repr(value) for value, _ in pairs)

    def structure(value: Any) -> Any:
        try:
            return by_key[type(value), value]
        except (KeyError, TypeError):
            return _refuse(expected, value)

    def unstructure(value: Any) -> Any:
        return value.value if isinstance(value, Enum) else value

    return Compiled({"enum": [value for value, _ in pairs]}, structure, unstructure)


def _text(value: Any) -> str:
    return value if type(value) is str else _refuse("a string", value)


def _integer(value: Any) -> int:
    if type(value) is int:
        return value
    return int(value) if type(value) is float and value.is_integer() else _refuse("an integer", value)


def _number(value: Any) -> float:
    if type(value) is float:
        return value
    return float(value) if type(value) is int and int(float(value)) == value else _refuse("a number", value)


def _boolean(value: Any) -> bool:
    return value if type(value) is bool else _refuse("true or false", value)


def _null(value: Any) -> None:
    if value is not None:
        _refuse("null", value)


def _parsed(expected: str, parse: Callable[[str], Any]) -> Callable[[Any], Any]:
    def structure(value: Any) -> Any:
        if type(value) is not str:
            _refuse(expected, value)
        try:
            return parse(value)
        except (ValueError, ArithmeticError):
            return _refuse(expected, value)

    return structure


def _textual(format: str, expected: str, load: Callable[[], tuple[Any, Any]]) -> Callable[[], Compiled]:
    def build() -> Compiled:
        parse, show = load()
        return Compiled({"type": "string", "format": format}, _parsed(expected, parse), show)

    return build


def _date_time() -> Any:
    from datetime import datetime

    return datetime.fromisoformat, datetime.isoformat


def _date() -> Any:
    from datetime import date

    return date.fromisoformat, date.isoformat


def _time() -> Any:
    from datetime import time

    return time.fromisoformat, time.isoformat


def _uuid() -> Any:
    from uuid import UUID

    return UUID, str


def _decimal() -> Any:
    from decimal import Decimal

    return Decimal, str


def _plain(kind: str, structure: Callable[[Any], Any]) -> Callable[[], Compiled]:
    return lambda: Compiled({"type": kind}, structure, _same)


# By name, so that types which a program never uses are never imported.
_SIMPLE: Mapping[str, Callable[[], Compiled]] = {
    "builtins.str": _plain("string", _text),
    "builtins.int": _plain("integer", _integer),
    "builtins.float": _plain("number", _number),
    "builtins.bool": _plain("boolean", _boolean),
    "builtins.NoneType": _plain("null", _null),
    "datetime.datetime": _textual("date-time", "a date and time (ISO 8601)", _date_time),
    "datetime.date": _textual("date", "a date (ISO 8601)", _date),
    "datetime.time": _textual("time", "a time of day (ISO 8601)", _time),
    "uuid.UUID": _textual("uuid", "a UUID", _uuid),
    "decimal.Decimal": _textual("decimal", "a decimal number in a string", _decimal),
}
