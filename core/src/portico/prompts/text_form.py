"""How values are written into a prompt."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from portico.errors import SchemaUnsupported
from portico.ports.type_codec import TypeCodec
from portico.types import compile_type

__all__ = ["TextForm"]

_TYPES_KEPT = 256


class TextForm:
    """Write values as text, each kind by one rule, whatever the locale.

    >>> from datetime import date
    >>> write = TextForm()
    >>> [write(value) for value in ("as it is", None, True, 2.5, date(2026, 3, 1))]
    ['as it is', '', 'True', '2.5', '2026-03-01']
    >>> write({"name": "Ada", "born": date(1815, 12, 10), "tall": True})
    '{"name": "Ada", "born": "1815-12-10", "tall": true}'

    Text stays, None is empty, and numbers and bools are written as Python and .NET write them. Everything else is
    written by its JSON form: what is one string there (dates, UUIDs, enumerations of texts) as that string, lists,
    mappings and classes with fields as JSON. What has no JSON form is written by its own ``__str__``. ``codecs`` are
    asked for the types that the standard library does not know.
    """

    __slots__ = ("_unstructure",)

    def __init__(self, codecs: Iterable[TypeCodec] = ()) -> None:
        codecs = tuple(codecs)
        self._unstructure: Callable[[Any], Callable[[Any], Any]] = lru_cache(_TYPES_KEPT)(
            lambda kind: _unstructuring(kind, codecs)
        )

    def __call__(self, value: object) -> str:
        """Return the text; raises ``ValueError`` for a value that has none, saying why."""
        try:
            value = self._json(value)
            if isinstance(value, str):
                return value
            if value is None:
                return ""
            if isinstance(value, bool | int | float):
                return str(value)
            return json.dumps(value, ensure_ascii=False)
        except SchemaUnsupported as error:
            raise ValueError(str(error)) from error
        except RecursionError as error:
            raise ValueError("The value is nested too deeply, or contains itself.") from error

    def _json(self, value: Any) -> Any:
        kind = type(value)
        if kind in (str, int, float, bool, type(None)):
            return value
        if kind in (list, tuple, set, frozenset):
            return [self._json(element) for element in value]
        if isinstance(value, Mapping):
            wrong = next((key for key in value if not isinstance(key, str)), None)
            if wrong is not None:
                raise SchemaUnsupported(f"The keys of a JSON object are strings, not {wrong!r}.")
            return {str(key): self._json(element) for key, element in value.items()}
        return self._unstructure(kind)(value)


def _unstructuring(kind: Any, codecs: tuple[TypeCodec, ...]) -> Callable[[Any], Any]:
    try:
        return compile_type(kind, codecs).unstructure
    except SchemaUnsupported:
        if kind.__str__ is object.__str__ or issubclass(kind, bytes | bytearray):
            raise  # All that there is to say of it is its class and address, or how Python would write it.
        return str
