"""Inputs of prompt functions: types and JSON Schemas made parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from portico._schema.validate import PlainSchemaValidator
from portico.errors import SchemaUnsupported
from portico.functions import Parameter
from portico.types import Compiled, Fault, Mismatch, compile_type
from portico.types.compiled import place
from portico.types.scalars import copied

if TYPE_CHECKING:
    from portico.ports.schema_validator import SchemaValidator
    from portico.ports.type_codec import TypeCodec

__all__ = ["REQUIRED", "PromptInput", "compiled_input", "parameter_of"]


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED: Final = _Required()
"""The default of an input that must be given."""

_KINDS: Mapping[object, type] = {"string": str, "integer": int, "number": float, "boolean": bool}
_SAYING_NOTHING = {"type", "title", "description", "default", "examples"}
_NOTES = ("title", "description", "examples")
_NAME = re.compile(r"[0-9A-Za-z_]+")
_PLACE = re.compile(r"\$((?:\.[^.\[\]:]+|\[\d+\])*): ")
_STEP = re.compile(r"\.([^.\[\]:]+)|\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class PromptInput:
    """One input of a prompt function.

    >>> PromptInput(int, "how many words", default=100)
    PromptInput(type=<class 'int'>, description='how many words', default=100)

    ``type`` is a type or a JSON Schema. The default is a value as code gives it.
    """

    type: object = str
    description: str = ""
    default: object = REQUIRED


@dataclass(frozen=True, slots=True)
class _Told(Fault):
    """A fault in a validator's own words."""

    def __str__(self) -> str:
        return f"{place(self.path)}: {self.expected}"


def parameter_of(
    name: str, given: object, codecs: Iterable[TypeCodec] = (), validator: SchemaValidator | None = None
) -> Parameter:
    """Return the parameter of an input: a type, a JSON Schema, what a text is for, or a `PromptInput`.

    Raises ``SchemaUnsupported``, and ``ValueError`` for a name that no template could write.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"the name of an input has letters, digits and '_' only, not {name!r}")
    match given:
        case PromptInput():
            told = given
        case str():
            told = PromptInput(description=given)
        case _:
            told = PromptInput(given)
    compiled = compiled_input(told.type, codecs, validator)
    default = told.default
    if isinstance(told.type, Mapping) and default is REQUIRED:
        default = told.type.get("default", REQUIRED)
    description = told.description or str(compiled.schema.get("description", ""))
    required = default is REQUIRED
    return Parameter(name, description, compiled, required, None if required else default)


def compiled_input(
    given: object, codecs: Iterable[TypeCodec] = (), validator: SchemaValidator | None = None
) -> Compiled:
    """Return a type or a JSON Schema made ready; values of a schema are plain JSON. Raises ``SchemaUnsupported``."""
    if not isinstance(given, Mapping):
        return compile_type(given, codecs)
    kind = given.get("type")
    simple = _KINDS.get(kind) if isinstance(kind, str) else None
    if simple is not None and set(given) <= _SAYING_NOTHING:
        compiled = compile_type(simple)
        return replace(compiled, schema={**compiled.schema, **{key: given[key] for key in _NOTES if key in given}})
    schema = {key: value for key, value in given.items() if key != "default"}
    try:
        validate = (validator or PlainSchemaValidator()).compile(schema)
    except SchemaUnsupported as error:
        advice = "" if validator else " A kernel that has it gives it as validator=kernel.schema_validator."
        raise SchemaUnsupported(f"{error}{advice}") from error

    def structure(value: Any) -> Any:
        faults = validate(value)
        if faults:
            raise Mismatch([_fault(sentence) for sentence in faults])
        return copied(value)

    return Compiled(schema, structure, copied)


def _fault(sentence: str) -> Fault:
    found = _PLACE.match(sentence)
    if found is None:
        return _Told((), sentence, "")
    path = tuple(key or int(index) for key, index in _STEP.findall(found[1]))
    return _Told(path, sentence[found.end() :], "")
