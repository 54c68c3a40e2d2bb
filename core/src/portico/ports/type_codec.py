"""The TypeCodec port: Python types to JSON Schema and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from portico.types import Compiled

__all__ = ["TypeCodec"]


class TypeCodec(Protocol):
    """Takes over some kinds of types (attrs classes, pydantic models) from the core's own.

    Behaviour: for every value v of the hint, ``structure(unstructure(v)) == v``, and ``unstructure(v)``
    satisfies the schema.
    Errors: ``SchemaUnsupported`` for a type of its kind that it cannot express.
    """

    name: str

    def compile(self, hint: object, inner: Callable[[object], Compiled]) -> Compiled | None:
        """Return the compiled hint, or None when it is not of this codec's kind.

        ``inner`` compiles contained types through all codecs.
        """
        ...
