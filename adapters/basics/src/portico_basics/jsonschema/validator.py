"""The SchemaValidator on jsonschema."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from portico.errors import SchemaUnsupported
from portico.plugins import Services
from portico_basics.config import JsonschemaSettings

if TYPE_CHECKING:
    from portico_basics.jsonschema._dialect import Dialect


_KEPT = 256


class JsonschemaValidator:
    """Check JSON values against JSON Schema 2020-12, all of it.

    >>> validate = JsonschemaValidator().compile({"type": "array", "items": {"type": "integer", "minimum": 0}})
    >>> validate([1, "2", -3])
    ['$[1]: expected integer, got string', '$[2]: expected at least 0, got -3']

    Raises ``SchemaUnsupported`` for a schema that is malformed, has a keyword that 2020-12 does not know, or refers
    to what is not in it: nothing is ever fetched. The last 256 schemas are kept compiled. May be used from several
    threads.
    """

    def __init__(self, settings: JsonschemaSettings | None = None, services: Services | None = None) -> None:
        self._settings = settings or JsonschemaSettings()
        self._dialect: Dialect | None = None
        self._compile = lru_cache(_KEPT)(self._compile_text)
        self.name = "jsonschema"

    def compile(self, schema: Mapping[str, Any]) -> Callable[[Any], list[str]]:
        """Return a function that lists every fault of a value, each a sentence with its place."""
        try:
            text = json.dumps(schema, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise SchemaUnsupported(f"The schema is not JSON: {error}.") from error
        except RecursionError:
            raise SchemaUnsupported("The schema is nested too deeply.") from None
        return self._compile(text)

    def _compile_text(self, text: str) -> Callable[[Any], list[str]]:
        if self._dialect is None:
            # Its vendor takes a while to import: not before a schema comes.
            from portico_basics.jsonschema._dialect import Dialect

            self._dialect = Dialect(self._settings)
        return self._dialect.compile(json.loads(text))
