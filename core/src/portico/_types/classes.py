"""Classes with named fields made ready: dataclasses, typed dictionaries, named tuples."""

from __future__ import annotations

import inspect
import typing
from contextlib import suppress
from dataclasses import MISSING, InitVar, dataclass, field, fields
from typing import Any

from portico._types.compiled import Compiled, Fault, Mismatch, draft_each, draft_of
from portico._types.docstrings import Documentation
from portico.errors import SchemaUnsupported

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Mapping

QUALIFIERS = (
    typing.Required,
    typing.NotRequired,
    typing.Final,
    typing.ClassVar,
    getattr(typing, "ReadOnly", typing.Final),
)
"""What a field's hint may be wrapped in without being another type; ``ReadOnly`` is of Python 3.13."""

_EMPTY = (list, dict, set, frozenset, tuple, str, int, float, bool)
"""Factories that make the same value each time, so that a schema can show it. Others may read a clock."""


@dataclass(frozen=True, slots=True)
class Members:
    """The fields of a class: their hints, which must be given, what the others are, and how they are read."""

    hints: Mapping[str, Any]
    required: frozenset[str]
    make: Callable[..., Any]
    read: Callable[[Any, str], Any]
    documentation: Documentation
    defaults: Mapping[str, Any] = field(default_factory=dict)
    sparse: bool = False
    """Whether a value may lack fields, as that of a typed dictionary may."""


def resolve_hints(target: Any) -> dict[str, Any]:
    """Return the hints of a function or class; names of the function that defines it are known while that runs.

    Raises ``SchemaUnsupported`` for a name that cannot be found.
    """
    with suppress(NameError):
        return typing.get_type_hints(target, include_extras=True)
    place = (target.__module__, target.__qualname__.rpartition(".<locals>.")[0])
    frame = inspect.currentframe()
    while frame is not None and (frame.f_globals.get("__name__"), frame.f_code.co_qualname) != place:
        frame = frame.f_back
    try:
        return typing.get_type_hints(target, localns=frame and frame.f_locals, include_extras=True)
    except NameError as error:
        raise SchemaUnsupported(
            f"The hints of {target.__qualname__} use the name {error.name!r}, which is not known there. Import it at "
            "run time, not under TYPE_CHECKING, or define it at the top of the module."
        ) from error


def class_members(kind: Any) -> Members:
    """Return the fields of a dataclass, a typed dictionary or a named tuple."""
    hints = resolve_hints(kind)
    documentation = Documentation.of_class(kind)
    if typing.is_typeddict(kind):
        required = frozenset(required_keys(kind, hints))
        return Members(hints, required, dict, lambda value, name: value[name], documentation, sparse=True)
    if issubclass(kind, tuple):
        named = {name: hints.get(name, Any) for name in kind._fields}
        missing = frozenset(kind._fields) - frozenset(kind._field_defaults)
        return Members(named, missing, kind, getattr, documentation, kind._field_defaults)
    pseudo = [name for name, hint in hints.items() if isinstance(hint, InitVar)]
    if pseudo:
        raise SchemaUnsupported(f"{kind.__qualname__} is made from {pseudo[0]!r}, which it does not keep.")
    given = [each for each in fields(kind) if each.init]
    defaults = {each.name: each.default for each in given if each.default is not MISSING}
    factories = [each for each in given if each.default_factory is not MISSING]
    defaults |= {each.name: each.default_factory() for each in factories if each.default_factory in _EMPTY}
    needed = frozenset(each.name for each in given) - defaults.keys() - {each.name for each in factories}
    return Members({each.name: hints[each.name] for each in given}, needed, kind, getattr, documentation, defaults)


def required_keys(hint: Any, members: Mapping[str, object]) -> set[str]:
    """Tell which keys of a TypedDict must be there.

    Where annotations are postponed, ``__required_keys__`` has not seen ``NotRequired`` and ``Required``.
    """
    marks = {name: typing.get_origin(member) for name, member in members.items()}
    return {
        name
        for name, mark in marks.items()
        if mark is typing.Required or (mark is not typing.NotRequired and name in hint.__required_keys__)
    }


def note(hint: Any) -> str | None:
    """Return the text that ``Annotated`` gives a hint: the first string among its notes.

    >>> from typing import Annotated
    >>> note(Annotated[int, "how many"])
    'how many'
    """
    while typing.get_origin(hint) in QUALIFIERS:
        hint = typing.get_args(hint)[0]
    if typing.get_origin(hint) is not typing.Annotated:
        return None
    return next((each for each in typing.get_args(hint)[1:] if isinstance(each, str)), None)


def compile_class(kind: Any, members: Members, inner: Mapping[str, Compiled]) -> Compiled:
    """Compile a class from its compiled fields."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: compiled.schema for name, compiled in inner.items()},
        "required": [name for name in inner if name in members.required],
        "additionalProperties": False,
    }
    if members.documentation.description:
        schema["description"] = members.documentation.description
    make, read, sparse = members.make, members.read, members.sparse
    parts = [(name, compiled.structure, name in members.required) for name, compiled in inner.items()]
    writers = [(name, compiled.unstructure) for name, compiled in inner.items()]

    def structure(value: Any) -> Any:
        if type(value) is not dict:
            Mismatch.refuse("an object", value)
        values: dict[str, Any] = {}
        faults: list[Fault] = []
        for name, structure_field, needed in parts:
            if name in value:
                try:
                    values[name] = structure_field(value[name])
                except Mismatch as error:
                    faults.extend(error.under(name))
            elif needed:
                faults.append(Fault((name,), "a value", "nothing"))
        if faults or len(values) < len(value):
            known = f"one of {', '.join(inner)}" if inner else "no keys"
            faults += [Fault((key,), known, "an unknown key") for key in value if key not in inner]
            raise Mismatch(faults)
        try:
            return make(**values)
        except Exception as error:  # the class refuses the value, in whatever way it does
            words = str(error) if isinstance(error, ValueError | TypeError) else f"{type(error).__name__}: {error}"
            raise Mismatch([Fault((), f"a valid {kind.__name__}", words)]) from error

    def unstructure(value: Any) -> Any:
        if sparse:
            return {name: write(value[name]) for name, write in writers if name in value}
        return {name: write(read(value, name)) for name, write in writers}

    def draft(value: Any) -> Any:
        if type(value) is not dict:
            Mismatch.refuse("an object", value)
        values = {
            name: shown
            for name, compiled in inner.items()
            if name in value
            for shown in draft_each(draft_of(compiled), [value[name]])
        }
        if not sparse:
            values |= dict.fromkeys(name for name in inner if name in members.required and name not in values)
        try:
            return make(**values)
        except Exception as error:  # a class may do anything when it is made of half of its values
            raise Mismatch([Fault((), f"more of a {kind.__name__}", str(error))]) from error

    return Compiled(schema, structure, unstructure, draft)
