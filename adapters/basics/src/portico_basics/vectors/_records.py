"""Records of an application in a vector store: fields to filter by, and the whole record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from portico.errors import StoreDamaged
from portico.plugins import Mismatch, compile_type
from portico.ports import TypeCodec
from portico.search import FilterSupport, Scalar

Record = TypeVar("Record")
Metadata = Mapping[str, Scalar | Sequence[Scalar]]

_WHOLE = "portico:record"
_CLAUSES = frozenset({"Equal", "AnyOf", "Range"})
_SCALARS = frozenset({"string", "integer", "number", "boolean"})


class Records(Generic[Record]):
    """Turns records of one type into metadata and back.

    Fields with text, a number, a bool, or a list of these become fields to filter by. Fields of an object in the record
    have dotted names. A record with other fields is also stored whole, as JSON.
    """

    def __init__(self, record_type: type[Record], codecs: Iterable[TypeCodec]) -> None:
        self._compiled = compile_type(record_type, codecs)
        self._name = getattr(record_type, "__name__", str(record_type))
        schema = _resolved(self._compiled.schema, self._compiled.schema)
        if schema.get("type") != "object":
            raise ValueError(f"a record is an object with fields, such as a dataclass; {self._name} is not")
        self.properties: frozenset[str] | None = None
        """The fields of a record; None where any field is allowed."""
        self._filterable: frozenset[str] | None = None
        if "properties" in schema:
            self.properties = frozenset(schema["properties"])
            self._filterable = frozenset(_filterable(schema, self._compiled.schema, "", ()))

    def support(self, store: FilterSupport, offered: Iterable[str]) -> FilterSupport:
        """Return the filters that the store supports on the fields of a record."""
        fields = store.fields
        if self._filterable is not None:
            known = dict.fromkeys(sorted(self._filterable), _CLAUSES) if fields is None else fields
            fields = {name: kinds for name, kinds in known.items() if name in self._filterable}
        offered = tuple(offered)
        unknown = [] if fields is None else [name for name in offered if name not in fields]
        if unknown:
            known_ones = ", ".join(sorted(fields or ())) or "none"
            raise ValueError(f"{self._name} has no field {unknown[0]!r} to filter by; there are {known_ones}")
        return FilterSupport(fields, store.combine, offered)

    def metadata(self, record: Record) -> Metadata:
        """Return the metadata for a record."""
        written = self._compiled.unstructure(record)
        metadata = dict(_flat(written, ""))
        if metadata != written or _WHOLE in metadata:
            metadata[_WHOLE] = json.dumps(written, separators=(",", ":"))
        return metadata

    def record(self, id: str, metadata: Metadata) -> Record:
        """Return the record of stored metadata; ``StoreDamaged`` if it is not a record."""
        whole = metadata.get(_WHOLE)
        try:
            value = json.loads(whole) if isinstance(whole, str) else dict(metadata)
            found: Record = self._compiled.structure(value)
        except (Mismatch, ValueError) as error:
            raise StoreDamaged(f"the content of {id!r} is not a {self._name}: {error}") from error
        return found


def reader(
    field: str | Callable[[Any], Any], record_type: type[Any], known: frozenset[str] | None
) -> Callable[..., Any]:
    """Return a function that reads a field of a record; ``ValueError`` for an unknown field.

    A function stays as it is. A missing field of a mapping is None.
    """
    if callable(field):
        return field
    if (
        known is not None
        and field not in known
        and not hasattr(record_type, field)
        and field not in _annotated(record_type)
    ):
        raise ValueError(f"{record_type.__name__} has no field {field!r}; there are {', '.join(sorted(known))}")

    def read(record: Any) -> Any:
        return record.get(field) if isinstance(record, Mapping) else getattr(record, field)

    return read


def _annotated(record_type: type[Any]) -> set[str]:
    return {name for kind in getattr(record_type, "__mro__", ()) for name in getattr(kind, "__annotations__", ())}


def _flat(value: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Scalar | list[Scalar]]]:
    for name, part in value.items():
        if isinstance(part, Mapping):
            yield from _flat(part, f"{prefix}{name}.")
        elif all(isinstance(element, str | int | float) for element in (part if isinstance(part, list) else [part])):
            yield prefix + name, part


def _filterable(
    schema: Mapping[str, Any], root: Mapping[str, Any], prefix: str, within: tuple[str, ...]
) -> Iterator[str]:
    """Yield the dotted names of the fields to filter by, from a schema."""
    for name, part in schema["properties"].items():
        for choice in _choices(part, root):
            reference = str(part.get("$ref") or choice.get("$ref") or "")
            resolved = _resolved(choice, root)
            if "properties" in resolved and (not reference or reference not in within):
                yield from _filterable(resolved, root, f"{prefix}{name}.", (*within, reference))
            elif _is_scalar(resolved) or (resolved.get("type") == "array" and _is_scalar(_items(resolved, root))):
                yield prefix + name


def _choices(schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    resolved = _resolved(schema, root)
    choices: list[Mapping[str, Any]] = resolved.get("anyOf") or resolved.get("oneOf") or [schema]
    return choices


def _items(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    items = schema.get("items")
    return _resolved(items, root) if isinstance(items, Mapping) else {}


def _is_scalar(schema: Mapping[str, Any]) -> bool:
    kinds = schema.get("type", ())
    if _SCALARS & ({kinds} if isinstance(kinds, str) else set(kinds)):
        return True
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return any(isinstance(value, str | int | float) for value in values)


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    found: Mapping[str, Any] = root["$defs"][reference.removeprefix("#/$defs/")]
    return found
