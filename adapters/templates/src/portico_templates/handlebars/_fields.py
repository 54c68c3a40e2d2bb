"""How templates read data: mappings by key, lists by index, objects by the fields that their class declares."""

from __future__ import annotations

import dataclasses
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attrs import fields as attrs_fields, has as is_attrs

from portico.errors import SchemaUnsupported
from portico.plugins import compile_type
from portico.ports import TypeCodec
from portico_templates.handlebars.values import MISSING, is_array

Read = Callable[[Any, str], Any]

_TYPES_KEPT = 512
_INDEX = re.compile(r"(?:0|[1-9][0-9]{0,17})")
_PLAIN = (str, int, float, bool, complex, bytes, type(None))


class Fields:
    """Reads what is in a value by name, and nothing else: no methods, and no names that begin with ``_``.

    Which names a class has is found out once. ``codecs`` are asked for classes that neither the standard library nor
    attrs knows: what they make of a value is read instead.
    """

    def __init__(self, codecs: Iterable[TypeCodec] = ()) -> None:
        self._codecs = tuple(codecs)
        self._readers: dict[type, Read] = {}
        self._names: dict[type, frozenset[str]] = {}

    def read(self, value: Any, name: str) -> Any:
        """Return what is under a name; MISSING where there is nothing."""
        kind = type(value)
        reader = self._readers.get(kind)
        if reader is None:
            reader = self._reader(kind)
        return reader(value, name)

    def has(self, value: Any, name: str) -> bool:
        """Tell whether there is something under a name, and be it None."""
        return self.read(value, name) is not MISSING

    def declares(self, kind: type, name: str) -> bool:
        """Tell whether a class declares a field that may be read."""
        return name in self._declared(kind)

    def items(self, value: Any) -> list[tuple[str, Any]] | None:
        """Return keys and values of a mapping or of an object with fields; None for other values."""
        if isinstance(value, Mapping):
            return list(value.items())
        if isinstance(value, _PLAIN) or is_array(value):
            return None
        names = self._declared(type(value))
        if names:
            read = self.read
            return [(name, read(value, name)) for name in self._in_order(type(value), names)]
        converted = self._converted(value)
        return list(converted.items()) if isinstance(converted, Mapping) else None

    def _reader(self, kind: type) -> Read:
        if len(self._readers) >= _TYPES_KEPT:
            self._readers.clear()
        reader = self._readers[kind] = self._made_reader(kind)
        return reader

    def _made_reader(self, kind: type) -> Read:
        if issubclass(kind, Mapping):
            return _of_mapping
        names = self._declared(kind)
        if names:
            indexed = issubclass(kind, tuple)

            def of_fields(value: Any, name: str) -> Any:
                if name in names:
                    return getattr(value, name, MISSING)
                return _of_list(value, name) if indexed else MISSING

            return of_fields
        if issubclass(kind, str | list | tuple | range | deque) or issubclass(kind, Sequence):
            return _nothing if issubclass(kind, bytes | bytearray | memoryview) else _of_list
        return _nothing if issubclass(kind, _PLAIN) else self._by_codec

    def _by_codec(self, value: Any, name: str) -> Any:
        converted = self._converted(value)
        return _of_mapping(converted, name) if isinstance(converted, Mapping) else MISSING

    def _converted(self, value: Any) -> Any:
        if not self._codecs:
            return None
        try:
            return compile_type(type(value), self._codecs).unstructure(value)
        except (SchemaUnsupported, TypeError, ValueError):
            return None

    def _declared(self, kind: type) -> frozenset[str]:
        names = self._names.get(kind)
        if names is None:
            if len(self._names) >= _TYPES_KEPT:
                self._names.clear()
            names = self._names[kind] = frozenset(name for name in _declared(kind) if not name.startswith("_"))
        return names

    @staticmethod
    def _in_order(kind: type, names: frozenset[str]) -> list[str]:
        return [name for name in _declared(kind) if name in names]


def _declared(kind: type) -> tuple[str, ...]:
    if dataclasses.is_dataclass(kind):
        return tuple(each.name for each in dataclasses.fields(kind))
    if issubclass(kind, tuple):
        return tuple(getattr(kind, "_fields", ()))
    return tuple(each.name for each in attrs_fields(kind)) if is_attrs(kind) else ()


def _of_mapping(value: Any, name: str) -> Any:
    found = value.get(name, MISSING)
    if found is MISSING and _INDEX.fullmatch(name):
        found = value.get(int(name), MISSING)
    return found


def _of_list(value: Any, name: str) -> Any:
    if name == "length":
        return len(value)
    if _INDEX.fullmatch(name):
        index = int(name)
        return value[index] if index < len(value) else MISSING
    return MISSING


def _nothing(value: Any, name: str) -> Any:
    return MISSING
