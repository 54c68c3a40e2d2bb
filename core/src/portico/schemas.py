"""The default SchemaValidator: exactly the keywords that `portico.types` emits, any other refused.

`portico-jsonschema` takes over all of JSON Schema 2020-12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from portico.errors import SchemaUnsupported

__all__ = ["PlainSchemaValidator"]

_Path: TypeAlias = tuple[str | int, ...]
_Check: TypeAlias = Callable[[Any, _Path], Iterator[str]]

_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int, float),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}
_ANNOTATIONS = frozenset({"description", "title", "default", "format", "$defs", "$schema", "examples"})
_MAXIMUM_DEPTH = 200


class PlainSchemaValidator:
    """Check JSON values against the schemas that Portico makes from Python types.

    >>> validate = PlainSchemaValidator().compile({"type": "array", "items": {"type": "integer"}})
    >>> validate([1, "2"])
    ['$[1]: expected integer, got string']

    ``format`` is an annotation, as 2020-12 has it by default. Raises ``SchemaUnsupported`` for any other
    keyword than those of `portico.types`, and for a schema deeper than 200 levels.
    """

    name = "plain"

    def compile(self, schema: Mapping[str, Any]) -> Callable[[Any], list[str]]:
        """Return a function that lists every fault of a value, each a sentence with its place."""
        check = _Compiler(schema).compile(schema, 0)
        return lambda value: list(check(value, ()))


class _Compiler:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.references: dict[str, list[_Check]] = {}

    def compile(self, schema: Any, depth: int) -> _Check:
        if depth > _MAXIMUM_DEPTH:
            raise SchemaUnsupported(f"The schema is deeper than {_MAXIMUM_DEPTH} levels.")
        if schema is True:
            return _anything
        if schema is False:
            return lambda value, path: iter([f"{_place(path)}: nothing is allowed here"])
        checks: list[_Check] = []
        for keyword, argument in schema.items():
            if keyword in _ANNOTATIONS or keyword in ("required", "additionalProperties"):
                continue
            build = getattr(self, f"on_{keyword.lstrip('$')}", None)
            if build is None:
                raise SchemaUnsupported(
                    f"The schema keyword {keyword!r} is not handled by the plain validator. "
                    "Install portico-jsonschema for all of JSON Schema 2020-12."
                )
            checks.append(build(argument, schema, depth + 1))
        if "properties" not in schema and ("required" in schema or "additionalProperties" in schema):
            checks.append(self.on_properties({}, schema, depth + 1))
        if len(checks) == 1:
            return checks[0]
        return lambda value, path: (fault for check in checks for fault in check(value, path))

    def on_type(self, argument: Any, schema: Any, depth: int) -> _Check:
        names = [argument] if isinstance(argument, str) else list(argument)
        unknown = [name for name in names if name not in _KINDS]
        if unknown:
            raise SchemaUnsupported(f"{unknown[0]!r} is not a JSON Schema type.")

        def check(value: Any, path: _Path) -> Iterator[str]:
            if not any(_is_kind(value, name) for name in names):
                yield f"{_place(path)}: expected {' or '.join(names)}, got {_kind(value)}"

        return check

    def on_enum(self, argument: Any, schema: Any, depth: int) -> _Check:
        options = [(_frozen(option)) for option in argument]
        shown = ", ".join(repr(option) for option in argument)

        def check(value: Any, path: _Path) -> Iterator[str]:
            if _frozen(value) not in options:
                yield f"{_place(path)}: expected one of {shown}"

        return check

    def on_const(self, argument: Any, schema: Any, depth: int) -> _Check:
        return self.on_enum([argument], schema, depth)

    def on_properties(self, argument: Any, schema: Any, depth: int) -> _Check:
        members = {name: self.compile(member, depth) for name, member in argument.items()}
        required = tuple(schema.get("required", ()))
        rest = self.compile(schema.get("additionalProperties", True), depth)
        closed = schema.get("additionalProperties") is False

        def check(value: Any, path: _Path) -> Iterator[str]:
            if not isinstance(value, dict):
                return
            for name in required:
                if name not in value:
                    yield f"{_place(path)}: {name!r} is missing"
            for name, element in value.items():
                if name in members:
                    yield from members[name](element, (*path, name))
                elif closed:
                    yield f"{_place(path)}: {name!r} is not a known key"
                else:
                    yield from rest(element, (*path, name))

        return check

    def on_items(self, argument: Any, schema: Any, depth: int) -> _Check:
        item = self.compile(argument, depth)
        start = len(schema.get("prefixItems", ()))

        def check(value: Any, path: _Path) -> Iterator[str]:
            if isinstance(value, list):
                for index in range(start, len(value)):
                    yield from item(value[index], (*path, index))

        return check

    def on_prefixItems(self, argument: Any, schema: Any, depth: int) -> _Check:  # noqa: N802 - the keyword
        members = [self.compile(member, depth) for member in argument]

        def check(value: Any, path: _Path) -> Iterator[str]:
            if isinstance(value, list):
                for index, (member, element) in enumerate(zip(members, value, strict=False)):
                    yield from member(element, (*path, index))

        return check

    def on_minItems(self, argument: Any, schema: Any, depth: int) -> _Check:  # noqa: N802 - the keyword
        def check(value: Any, path: _Path) -> Iterator[str]:
            if isinstance(value, list) and len(value) < argument:
                yield f"{_place(path)}: expected at least {argument} elements, got {len(value)}"

        return check

    def on_maxItems(self, argument: Any, schema: Any, depth: int) -> _Check:  # noqa: N802 - the keyword
        def check(value: Any, path: _Path) -> Iterator[str]:
            if isinstance(value, list) and len(value) > argument:
                yield f"{_place(path)}: expected at most {argument} elements, got {len(value)}"

        return check

    def on_uniqueItems(self, argument: Any, schema: Any, depth: int) -> _Check:  # noqa: N802 - the keyword
        def check(value: Any, path: _Path) -> Iterator[str]:
            if argument and isinstance(value, list) and len({_frozen(element) for element in value}) < len(value):
                yield f"{_place(path)}: the elements are not all different"

        return check

    def on_anyOf(self, argument: Any, schema: Any, depth: int) -> _Check:  # noqa: N802 - the keyword
        options = [self.compile(option, depth) for option in argument]

        def check(value: Any, path: _Path) -> Iterator[str]:
            nearest: list[str] | None = None
            for option in options:
                faults = list(option(value, path))
                if not faults:
                    return
                if nearest is None or len(faults) < len(nearest):
                    nearest = faults
            yield f"{_place(path)}: none of {len(options)} alternatives fits; the nearest: {'; '.join(nearest or ())}"

        return check

    def on_ref(self, argument: Any, schema: Any, depth: int) -> _Check:
        name = argument.removeprefix("#/$defs/")
        definitions = self.root.get("$defs", {})
        if not argument.startswith("#/$defs/") or name not in definitions:
            raise SchemaUnsupported(f"The reference {argument!r} is not to a definition of this schema.")
        if name not in self.references:
            cell = self.references[name] = []
            cell.append(self.compile(definitions[name], depth))
        cell = self.references[name]

        def check(value: Any, path: _Path) -> Iterator[str]:
            if len(path) > _MAXIMUM_DEPTH:
                yield f"{_place(path[:5])}…: deeper than {_MAXIMUM_DEPTH} levels"
                return
            yield from cell[0](value, path)

        return check


def _anything(value: Any, path: _Path) -> Iterator[str]:
    return iter(())


def _is_kind(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, _KINDS[name])


def _kind(value: Any) -> str:
    return next((name for name in ("boolean", "integer", *_KINDS) if _is_kind(value, name)), type(value).__name__)


def _frozen(value: Any) -> Any:
    """Make a JSON value hashable, so that 1 and 1.0 are equal and 1 and true are not, as JSON Schema has it."""
    if isinstance(value, list):
        return ("array", tuple(_frozen(element) for element in value))
    if isinstance(value, dict):
        return ("object", frozenset((key, _frozen(element)) for key, element in value.items()))
    return (isinstance(value, bool), value)


def _place(path: _Path) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
