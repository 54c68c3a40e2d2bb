"""What a type becomes when it is made ready: a schema, and functions from JSON and to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

__all__ = ["Compiled", "Fault", "Mismatch", "likely", "place", "refuse"]

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Fault:
    """One place where a JSON value does not fit a type: its path from ``$``, what was expected, what came."""

    path: tuple[str | int, ...]
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{place(self.path)}: expected {self.expected}, got {self.got}"


class Mismatch(ValueError):
    """A JSON value does not fit a type; ``faults`` are all the places."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(map(str, self.faults)))

    def under(self, key: str | int) -> list[Fault]:
        """Return the faults as they are seen from one level further out."""
        return [Fault((key, *fault.path), fault.expected, fault.got) for fault in self.faults]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A type made ready: its JSON Schema, and functions from JSON values and to them.

    ``structure`` raises `Mismatch`; ``unstructure`` trusts its argument. ``draft`` makes a value from what has come
    of a JSON value so far: fields that are missing have their default or None, and what does not fit yet is left
    out; it raises `Mismatch` when there is nothing to show. Without one, only whole values are shown.

    ``whole`` says that ``unstructure`` writes every property of the schema, also those that are not required: in a
    union, keys and tags with a default then tell its members apart. A codec's schema may have ``$defs`` of its own.
    """

    schema: Mapping[str, Any]
    structure: Callable[[Any], Any]
    unstructure: Callable[[Any], Any]
    draft: Callable[[Any], Any] | None = None
    whole: bool = False


def place(path: Sequence[str | int]) -> str:
    """Write a path into a JSON value for people."""
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def likely(schemas: Sequence[Any], value: object, definitions: Mapping[str, Any]) -> list[int]:
    """Return the indexes of the alternatives that are worth trying on a value; all of them for no object.

    The keys and tags of an object choose first. Trying every alternative of every level of a deep value would
    take time without bound, and would report the faults of alternatives that nobody meant.
    """
    if type(value) is not dict:
        return list(range(len(schemas)))
    resolved = [_resolved(schema, definitions) for schema in schemas]
    fitting = [index for index, schema in enumerate(resolved) if _may_fit(schema, value)]
    return fitting or [max(range(len(resolved)), key=lambda index: _keys_known(resolved[index], value))]


def _resolved(schema: Any, definitions: Mapping[str, Any]) -> Any:
    reference = schema.get("$ref") if isinstance(schema, Mapping) else None
    return definitions.get(reference.removeprefix("#/$defs/"), {}) if isinstance(reference, str) else schema


def _may_fit(schema: Any, value: dict[str, Any]) -> bool:
    if not isinstance(schema, Mapping):
        return schema is not False
    if isinstance(schema.get("type"), str) and schema["type"] != "object":
        return False
    properties = schema.get("properties", {})
    closed = schema.get("additionalProperties") is False
    return (
        all(name in value for name in schema.get("required", ()))
        and not (closed and any(key not in properties for key in value))
        and all(
            value[name] in member["enum"]
            for name, member in properties.items()
            if name in value and isinstance(member, Mapping) and "enum" in member
        )
    )


def _keys_known(schema: Any, value: dict[str, Any]) -> int:
    properties = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    return sum(key in properties for key in value)


def refuse(expected: str, value: object) -> NoReturn:
    """Raise the `Mismatch` of a value that is wrong as a whole."""
    raise Mismatch([Fault((), expected, _describe(value))])


def _describe(value: object) -> str:
    """Show a JSON value in an error: its kind, and its text when short."""
    kinds: dict[type, str] = {dict: "an object", list: "an array", type(None): "null"}
    kind = kinds.get(type(value))
    if kind is not None:
        return kind
    if isinstance(value, int) and abs(value) >= 10**_SHOWN:
        return f"a number of more than {_SHOWN} digits"
    text = repr(value[: _SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
