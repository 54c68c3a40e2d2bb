"""Structs of msgspec, and types that carry a ``msgspec.Meta``: msgspec reads, writes and describes them."""

from __future__ import annotations

import functools
import re
import typing
from collections.abc import Callable
from typing import Any

import msgspec

from portico.errors import SchemaUnsupported
from portico.plugins import Compiled, Fault, Mismatch
from portico_basics.type_codecs._plain_schema import plain_schema

_PLACE = re.compile(r" - at `(?:key in )?\$(.*)`$")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


def compile_type(hint: Any, inner: Callable[[object], Compiled]) -> Compiled:
    """Compile a type in the form that msgspec itself writes. What it does not know is left to the other codecs.

    Raises ``SchemaUnsupported``.
    """
    compiled: Callable[[Any], Compiled] = functools.cache(inner)
    kind = typing.get_origin(hint) or hint
    if kind is msgspec.Struct:
        raise SchemaUnsupported("Struct itself has no fields: name a class of it.")
    try:
        (schema,), definitions = msgspec.json.schema_components(
            [hint], schema_hook=lambda foreign: dict(compiled(foreign).schema), ref_template="#/$defs/{name}"
        )
    except (TypeError, RuntimeError, NameError) as error:
        raise SchemaUnsupported(f"{getattr(kind, '__qualname__', kind)} has no JSON form: {error}.") from error
    root = schema.get("$ref", "").removeprefix("#/$defs/")
    if root and f"'{schema['$ref']}'" not in repr(definitions):
        schema = definitions.pop(root)
    if definitions:
        schema["$defs"] = definitions

    def structure(value: Any) -> Any:
        try:
            return msgspec.convert(
                value, hint, str_keys=True, dec_hook=lambda kind, part: compiled(kind).structure(part)
            )
        except msgspec.ValidationError as error:
            raise Mismatch([_fault(error)]) from error
        except Exception as error:  # a value that is too deep, or whatever a class of the user raised
            raise Mismatch([Fault((), "a valid value", f"{type(error).__name__}: {error}")]) from error

    def unstructure(value: Any) -> Any:
        return msgspec.to_builtins(value, str_keys=True, enc_hook=lambda part: compiled(type(part)).unstructure(part))

    return Compiled(plain_schema(schema), structure, unstructure)


def _fault(error: msgspec.ValidationError) -> Fault:
    """Read the first fault, which is all that msgspec reports, off its message."""
    text = str(error)
    place = _PLACE.search(text)
    steps = _STEP.findall(place[1]) if place else []
    path = tuple(word or int(number) for word, number in steps)
    text = (text[: place.start()] if place else text).replace("`", "")
    if not text.startswith("Expected "):
        return Fault(path, "a valid value", text)
    expected, _, got = text.removeprefix("Expected ").partition(", got ")
    return Fault(path, expected, got or "another value")
