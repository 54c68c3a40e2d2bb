"""The SchemaValidator port."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

Validate: TypeAlias = Callable[[Any], list[str]]
"""Returns every fault of a JSON value as a sentence that names its place; none for a valid one."""


class SchemaValidator(Protocol):
    """Checks JSON values against JSON Schema. The core's default knows the keywords that the core emits.

    Errors: ``SchemaUnsupported`` for a schema with a keyword that it does not know: none is ignored.
    """

    name: str

    def compile(self, schema: Mapping[str, Any]) -> Validate:
        """Return a function that checks values; it keeps no reference to them and may be called concurrently."""
        ...
