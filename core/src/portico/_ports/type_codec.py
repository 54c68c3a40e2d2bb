"""The TypeCodec port: Python types to JSON Schema and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from portico._types.compiled import Compiled


class TypeCodec(Protocol):
    """Compiles some kinds of types (attrs classes, pydantic models) in place of core.

    Behaviour: for every value v of the hint, ``structure(unstructure(v)) == v``, and ``unstructure(v)``
    satisfies the schema.
    Errors: ``SchemaUnsupported`` for a type of its kind that has no JSON form.
    """

    name: str

    def compile(self, hint: object, inner: Callable[[object], Compiled]) -> Compiled | None:
        """Return the compiled hint, or None for a hint of another kind.

        ``inner`` compiles contained types through all codecs.
        """
        ...
