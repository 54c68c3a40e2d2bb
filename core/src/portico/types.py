"""Python type hints to JSON Schema (2020-12), and JSON values to Python values and back.

Covers the kinds of the standard library. A `TypeCodec` takes over others (attrs, pydantic); it is asked first
and calls back for the types inside its own.
"""

from __future__ import annotations

import collections.abc
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import MISSING, InitVar, fields, is_dataclass
from enum import Enum
from typing import Any, Literal, Protocol

from portico.compiled import Compiled, Fault, Mismatch, likely, refuse
from portico.errors import SchemaUnsupported
from portico.scalars import SCALARS, choice, copied, strict_integer
from portico.unions import QUALIFIERS, Tried, instance_test, required_keys

__all__ = ["Compiled", "Fault", "Mismatch", "compile_type"]

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

    Raises ``SchemaUnsupported`` for a type that JSON cannot hold or that no codec knows.
    """
    compiler = _Compiler(tuple(codecs))
    compiled = compiler.compile(hint)
    if not compiler.definitions:
        return compiled
    schema = {**compiled.schema, "$defs": compiler.definitions}
    return Compiled(schema, compiler.bounded(compiled.structure), compiled.unstructure)


class _Compiler:
    def __init__(self, codecs: tuple[_Codec, ...]) -> None:
        self.codecs = codecs
        self.definitions: dict[str, Mapping[str, Any]] = {}
        self.open: dict[object, list[Compiled]] = {}
        self.recursive: dict[object, str] = {}
        self.tried = Tried()

    def bounded(self, structure: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Give a recursive type's values an end: a bound on their depth, and each alternative tried once."""

        def bounded(value: Any) -> Any:
            outer, self.tried.outcomes = self.tried.outcomes, {}
            try:
                return structure(value)
            except RecursionError:
                refuse("a value that is nested less deeply", value)
            finally:
                self.tried.outcomes = outer

        return bounded

    def compile(self, hint: object) -> Compiled:
        for codec in self.codecs:
            compiled = codec.compile(hint, self.compile)
            if compiled is not None:
                return compiled
        if hint is None:
            hint = types.NoneType
        simple = SCALARS.get(f"{hint.__module__}.{hint.__qualname__}") if isinstance(hint, type) else None
        if simple is not None:
            return simple()
        if hint is Any or hint is object:
            return Compiled({}, copied, _to_json)
        origin = typing.get_origin(hint)
        if origin is typing.Annotated:
            return self.annotated(hint)
        if origin is typing.Union or origin is types.UnionType:
            return self.union(typing.get_args(hint))
        if origin is Literal:
            return choice(typing.get_args(hint))
        if origin in QUALIFIERS:
            return self.compile(typing.get_args(hint)[0])
        supertype = getattr(hint, "__supertype__", None)
        if supertype is not None:
            return self.compile(supertype)
        container = self.container(origin or hint, typing.get_args(hint))
        if container is not None:
            return container
        if isinstance(hint, type):
            if issubclass(hint, Enum):
                return choice(hint)
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
        """Compile a union: JSON goes to the first member that takes it, so ``date | str`` makes dates."""
        members = [self.compile(hint) for hint in hints]
        tests = [instance_test(hint) for hint in hints]
        schemas = [member.schema for member in members]
        structures = [
            strict_integer if hint is int and float in hints else member.structure
            for hint, member in zip(hints, members, strict=True)
        ]
        if float in hints and int in hints:
            # A number written as an integer is one, whichever of the two comes first.
            structures.insert(0, structures.pop(hints.index(int)))
            schemas.insert(0, schemas.pop(hints.index(int)))

        def structure(value: Any) -> Any:
            outcomes = self.tried.outcomes
            if outcomes is None or type(value) not in (dict, list):
                return first_fitting(value)
            key = (id(value), id(structures))
            if key not in outcomes:
                try:
                    outcomes[key] = first_fitting(value)
                except Mismatch as error:
                    outcomes[key] = error
            if isinstance(outcomes[key], Mismatch):
                raise outcomes[key]
            return outcomes[key]

        def first_fitting(value: Any) -> Any:
            faults: dict[Fault, None] = {}
            for index in likely(schemas, value, self.definitions):
                try:
                    return structures[index](value)
                except Mismatch as error:
                    faults |= dict.fromkeys(error.faults)
            expected = " or ".join(dict.fromkeys(fault.expected for fault in faults if not fault.path))
            if expected and not any(fault.path for fault in faults):
                refuse(expected, value)
            raise Mismatch([fault for fault in faults if fault.path] or list(faults))

        def unstructure(value: Any) -> Any:
            for test, member in zip(tests, members, strict=True):
                if test(value):
                    return member.unstructure(value)
            return _to_json(value)

        return Compiled({"anyOf": [member.schema for member in members]}, structure, unstructure)

    def container(self, origin: object, arguments: tuple[Any, ...]) -> Compiled | None:
        if not isinstance(origin, type):
            return None
        if issubclass(origin, tuple) and not hasattr(origin, "_fields"):
            if len(arguments) == 2 and arguments[1] is Ellipsis:
                return self.array(arguments[0], tuple)
            return self.fixed(arguments) if arguments else self.array(Any, tuple)
        item = arguments[0] if arguments else Any
        if issubclass(origin, set | frozenset) or origin in _SETS:
            return self.array(item, frozenset if issubclass(origin, frozenset) else set, unique=True)
        if issubclass(origin, list) or origin in _LISTS:
            return self.array(item, list)
        if (issubclass(origin, dict) or origin in _MAPPINGS) and not typing.is_typeddict(origin):
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
                refuse("an array", value)
            elements = _each(inner.structure, enumerate(value))
            try:
                made = make(elements)
            except TypeError:
                refuse("an array of strings, numbers, bools or null", value)
            if unique and len(made) < len(value):
                refuse("an array whose elements are all different", value)
            return made

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
                refuse(f"an array of {len(inner)}", value)
            elements = enumerate(zip(inner, value, strict=True))
            return tuple(_each(lambda pair: pair[0].structure(pair[1]), elements))

        def unstructure(value: Any) -> Any:
            return [compiled.unstructure(element) for compiled, element in zip(inner, value, strict=True)]

        return Compiled(schema, structure, unstructure)

    def mapping(self, item: object) -> Compiled:
        inner = self.compile(item)

        def structure(value: Any) -> Any:
            if type(value) is not dict:
                refuse("an object", value)
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
        pseudo = [name for name, member in hints.items() if isinstance(member, InitVar)]
        if pseudo:
            raise SchemaUnsupported(f"{hint.__qualname__} is made from {pseudo[0]!r}, which it does not keep.")
        members = {field.name: hints[field.name] for field in fields(hint) if field.init}
        required = {
            field.name for field in fields(hint) if field.default is MISSING and field.default_factory is MISSING
        }
        return self.object(hint, members, required, lambda values: hint(**values), getattr)

    def typed_dict(self, hint: Any) -> Compiled:
        members = typing.get_type_hints(hint, include_extras=True)
        required = required_keys(hint, members)
        return self.object(hint, members, required, dict, lambda value, name: value[name])

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
                refuse("an object", value)
            values: dict[str, Any] = {}
            faults: list[Fault] = []
            for name, compiled in inner.items():
                if name in value:
                    try:
                        values[name] = compiled.structure(value[name])
                    except Mismatch as error:
                        faults.extend(error.under(name))
                elif name in required:
                    faults.append(Fault((name,), "a value", "nothing"))
            faults += [
                Fault((key,), f"one of {', '.join(inner)}", "an unknown key") for key in value if key not in inner
            ]
            if faults:
                raise Mismatch(faults)
            try:
                return make(values)
            except (ValueError, TypeError) as error:
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
            faults.extend(error.under(key))
    if faults:
        raise Mismatch(faults)
    return values


def _to_json(value: Any) -> Any:
    """Write a value of no declared type as JSON, by the type that it has."""
    kind = type(value)
    if kind in (str, int, float, bool, types.NoneType):
        return value
    if kind in (list, tuple):
        return [_to_json(element) for element in value]
    if kind is dict:
        for key in value:
            if not isinstance(key, str):
                raise SchemaUnsupported(f"The keys of a JSON object are strings, not {key!r}.")
        return {key: _to_json(element) for key, element in value.items()}
    if kind is object:
        raise SchemaUnsupported("A bare object has no JSON form.")
    return compile_type(kind).unstructure(value)
