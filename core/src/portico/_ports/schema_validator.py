"""The SchemaValidator port."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol


class SchemaValidator(Protocol):
    """Checks JSON values against JSON Schema. The core's default knows the keywords that the core emits.

    Errors: ``SchemaUnsupported`` for a schema with a keyword that it does not know: none is ignored.
    """

    name: str

    def compile(self, schema: Mapping[str, Any]) -> Callable[[Any], list[str]]:
        """Return a function that checks values, which may be called concurrently and keeps no reference to them.

        It returns every fault of a value as a sentence that names its place; none for a valid value.
        """
        ...
