"""What a Python type becomes: its JSON Schema, and how values are read and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from portico._schema.values import is_kind
from portico._types.docstrings import Documentation

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Fault:
    """One place where a JSON value does not fit a type: its path from ``$``, what was expected, what came."""

    path: tuple[str | int, ...]
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{Fault.place(self.path)}: expected {self.expected}, got {self.got}"

    @staticmethod
    def place(path: Sequence[str | int]) -> str:
        """Write a path into a JSON value for people."""
        return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


class Mismatch(ValueError):
    """A JSON value does not fit a type; ``faults`` are all the places."""

    __module__ = "portico.plugins"

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(map(str, self.faults)))

    def under(self, key: str | int) -> list[Fault]:
        """Return the faults as they are seen from one level further out."""
        return [Fault((key, *fault.path), fault.expected, fault.got) for fault in self.faults]

    @staticmethod
    def refuse(expected: str, value: object) -> NoReturn:
        """Raise the `Mismatch` of a value that is wrong as a whole."""
        raise Mismatch([Fault((), expected, _describe(value))])


@dataclass(frozen=True, slots=True)
class Compiled:
    """A type made ready: its JSON Schema, and functions from JSON values and to them.

    ``structure`` raises `Mismatch`; ``unstructure`` trusts its argument. ``draft`` makes a value from what has come
    of a JSON value so far: fields that are missing have their default or None, and what does not fit yet is left
    out; it raises `Mismatch` when there is nothing to show. Without one, only whole values are shown.

    A codec's schema may have its own ``$defs``.
    """

    schema: Mapping[str, Any]
    structure: Callable[[Any], Any]
    unstructure: Callable[[Any], Any]
    draft: Callable[[Any], Any] | None = None

    @staticmethod
    def documentation(kind: type) -> Documentation:
        """Read the docstring of a class: its ``description``, and ``parameters`` with the text on each attribute."""
        return Documentation.of_class(kind)

    @staticmethod
    def likely(schemas: Sequence[Any], value: object, definitions: Mapping[str, Any]) -> list[int]:
        """Return the indexes of the alternatives that are worth trying on a value; all of them for no object.

        The keys and tags of an object choose first, those that fit best before the others. Trying every alternative
        of every level of a deep value would take time without bound, and would report the faults of alternatives that
        were not meant.
        """
        if type(value) is not dict:
            return list(range(len(schemas)))
        resolved = [_resolve(schema, definitions) for schema in schemas]
        nearest = sorted(range(len(resolved)), key=lambda index: _distance(resolved[index], value))
        return [index for index in nearest if _may_fit(resolved[index], value)] or nearest[:1]

    def json_default(self, default: object) -> dict[str, Any]:
        """Return the ``default`` of a schema, as a keyword or none: a default may have no JSON form, or not fit.

        >>> from portico.plugins import compile_type
        >>> compile_type(int | None).json_default(None)
        {'default': None}
        >>> compile_type(int).json_default(None)
        {}
        """
        import json

        try:
            written = self.unstructure(default)
            self.structure(written)
            json.dumps(written, allow_nan=False)
        except Exception:  # noqa: BLE001 - whatever stands for "not given" was not made to be written
            return {}
        return {"default": written}


def _resolve(schema: Any, definitions: Mapping[str, Any]) -> Any:
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


def _distance(schema: Any, value: dict[str, Any]) -> tuple[int, int]:
    """Count the keys of an object that a schema does not know, then the properties that the object lacks."""
    properties = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    known = sum(key in properties for key in value)
    return len(value) - known, len(properties) - known


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


def draft_of(compiled: Compiled) -> Callable[[Any], Any]:
    """Return what makes drafts of a type: its own, or only whole values."""
    return compiled.draft or compiled.structure


def convert_each(convert: Callable[[Any], Any], items: Iterable[tuple[str | int, Any]]) -> list[Any]:
    """Convert elements that are given with their keys; raise one `Mismatch` with the faults of all."""
    made: list[Any] = []
    faults: list[Fault] = []
    for key, element in items:
        try:
            made.append(convert(element))
        except Mismatch as error:
            faults.extend(error.under(key))
    if faults:
        raise Mismatch(faults)
    return made


def draft_each(draft: Callable[[Any], Any], elements: Iterable[Any]) -> list[Any]:
    """Return the drafts of those elements of which there is something to show."""
    shown: list[Any] = []
    for element in elements:
        try:
            shown.append(draft(element))
        except Mismatch:
            continue
    return shown


def common_draft(options: Iterable[Callable[[Any], Any]], value: Any) -> Any:
    """Return the one draft that all of the options make, if they can make any.

    Where they differ it is too early to say which is meant: raises `Mismatch`.
    """
    made = [drawn for option in options for drawn in draft_each(option, [value])]
    if not made or any(type(other) is not type(made[0]) or other != made[0] for other in made[1:]):
        Mismatch.refuse("more of the value", value)
    return made[0]


def may_become(schema: Any, value: Any, definitions: Mapping[str, Any]) -> bool:
    """Tell whether more of an unfinished JSON value may make it valid under a schema, by its kind, keys and tags.

    What else is inside an object or an array is not looked at.

    >>> may_become({"enum": ["north", "south"]}, "no", {})
    True
    """
    schema = _resolve(schema, definitions)
    if not isinstance(schema, Mapping):
        return schema is not False
    if "anyOf" in schema:
        return any(may_become(option, value, definitions) for option in schema["anyOf"])
    if "enum" in schema:
        return any(
            value == option or (isinstance(value, str) and isinstance(option, str) and option.startswith(value))
            for option in schema["enum"]
            if isinstance(value, bool) == isinstance(option, bool)
        )
    names = schema.get("type")
    if names is not None and not any(is_kind(value, name) for name in ([names] if isinstance(names, str) else names)):
        return False
    if not isinstance(value, dict):
        return True
    properties = schema.get("properties", {})
    if schema.get("additionalProperties") is False and not value.keys() <= properties.keys():
        return False
    return all(
        may_become(member, value[name], definitions)
        for name, member in properties.items()
        if name in value and isinstance(member, Mapping) and "enum" in member
    )
