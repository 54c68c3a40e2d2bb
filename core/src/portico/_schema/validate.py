"""The default SchemaValidator: the keywords that schemas of Python types have, any other refused.

`portico-basics` brings a validator of all of JSON Schema 2020-12.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from portico._schema.values import frozen, is_kind, kind_of, resolve
from portico._types.compiled import Compiled, Fault
from portico.errors import SchemaUnsupported

_Path: TypeAlias = tuple[str | int, ...]
_Check: TypeAlias = Callable[[Any, _Path], Iterator[str]]

_TYPES = frozenset(["string", "integer", "number", "boolean", "null", "array", "object"])
_ANNOTATIONS = frozenset({"description", "title", "default", "format", "$defs", "examples"})
_DIALECTS = ("https://json-schema.org/", "http://json-schema.org/")
"""How the names of JSON Schema's own dialects begin: the keywords known here mean the same in all of them."""
_MAXIMUM_DEPTH = 200


class PlainSchemaValidator:
    """Check JSON values against the schemas that Portico makes from Python types.

    >>> validate = PlainSchemaValidator().compile({"type": "array", "items": {"type": "integer"}})
    >>> validate([1, "2"])
    ['$[1]: expected integer, got string']

    ``format`` is an annotation, as 2020-12 has it by default. Raises ``SchemaUnsupported`` for any other
    keyword than those of `portico._types`, and for a schema deeper than 200 levels.
    """

    name = "plain"

    def compile(self, schema: Mapping[str, Any]) -> Callable[[Any], list[str]]:
        """Return a function that lists every fault of a value, each a sentence with its place."""
        compiler = _Compiler(schema)
        try:
            check = compiler.compile(schema, 0)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SchemaUnsupported(f"The schema is malformed: {error}.") from error
        except RecursionError:
            raise SchemaUnsupported("The schema is nested too deeply.") from None

        def validate(value: Any) -> list[str]:
            compiler.tried.faults = {}
            try:
                return list(check(value, ()))
            except RecursionError:
                return ["$: nested too deeply to be checked"]
            finally:
                del compiler.tried.faults

        return validate


class _Compiler:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.references: dict[str, list[_Check]] = {}
        self.ending: set[str] = set()
        self.tried = threading.local()
        """What came of the alternatives at each place of the value: tried once, not once for each way there."""

    def compile(self, schema: Any, depth: int) -> _Check:
        if depth > _MAXIMUM_DEPTH:
            raise SchemaUnsupported(f"The schema is deeper than {_MAXIMUM_DEPTH} levels.")
        if schema is True:
            return _anything
        if schema is False:
            return lambda value, path: iter([f"{Fault.place(path)}: nothing is allowed here"])
        if not isinstance(schema, Mapping):
            raise SchemaUnsupported(f"A JSON Schema is an object, true or false, not {type(schema).__name__}.")
        checks = [
            self.keyword(keyword, argument, schema, depth + 1)
            for keyword, argument in schema.items()
            if keyword not in _ANNOTATIONS and keyword not in ("required", "additionalProperties")
        ]
        if "properties" not in schema and ("required" in schema or "additionalProperties" in schema):
            checks.append(self.properties({}, schema, depth + 1))
        if len(checks) == 1:
            return checks[0]
        return lambda value, path: (fault for check in checks for fault in check(value, path))

    def keyword(self, keyword: str, argument: Any, schema: Mapping[str, Any], depth: int) -> _Check:
        match keyword:
            case "$schema":
                if not str(argument).startswith(_DIALECTS):
                    raise SchemaUnsupported(f"{argument!r} is no dialect of JSON Schema that is known here.")
                return _anything
            case "$ref":
                return self.reference(argument, depth)
            case "anyOf":
                return self.any_of(argument, depth)
            case "enum" | "const":
                return _listed([argument] if keyword == "const" else argument)
            case "type":
                return _typed([argument] if isinstance(argument, str) else argument)
            case "properties":
                return self.properties(argument, schema, depth)
            case "items":
                rest, start = self.compile(argument, depth), len(schema.get("prefixItems", ()))
                return _elements(lambda value: [(index, rest) for index in range(start, len(value))])
            case "prefixItems":
                members = [self.compile(member, depth) for member in argument]
                return _elements(lambda value: list(enumerate(members[: len(value)])))
            case "minItems" | "maxItems":
                return _counted(argument, least=keyword == "minItems")
            case "uniqueItems":
                return _unique if argument else _anything
        raise SchemaUnsupported(
            f"The schema keyword {keyword!r} is not handled by the plain validator. "
            "Install portico-basics for all of JSON Schema 2020-12."
        )

    def properties(self, argument: Any, schema: Any, depth: int) -> _Check:
        members = {name: self.compile(member, depth) for name, member in argument.items()}
        required = tuple(schema.get("required", ()))
        rest = self.compile(schema.get("additionalProperties", True), depth)
        closed = schema.get("additionalProperties") is False

        def check(value: Any, path: _Path) -> Iterator[str]:
            if not isinstance(value, dict):
                return
            for name in required:
                if name not in value:
                    yield f"{Fault.place(path)}: {name!r} is missing"
            for name, element in value.items():
                if name in members:
                    yield from members[name](element, (*path, name))
                elif closed:
                    yield f"{Fault.place(path)}: {name!r} is not a known key"
                else:
                    yield from rest(element, (*path, name))

        return check

    def any_of(self, argument: Any, depth: int) -> _Check:
        options = [self.compile(option, depth) for option in argument]

        def check(value: Any, path: _Path) -> Iterator[str]:
            known: dict[tuple[int, _Path], list[str]] = self.tried.faults
            key = (id(options), path)
            if key not in known:
                known[key] = list(alternatives(value, path))
            yield from known[key]

        def alternatives(value: Any, path: _Path) -> Iterator[str]:
            nearest: list[str] | None = None
            chosen = Compiled.likely(argument, value, self.root.get("$defs", {}))
            for index in chosen:
                faults = list(options[index](value, path))
                if not faults:
                    return
                if nearest is None or len(faults) < len(nearest):
                    nearest = faults
            if len(chosen) == 1:
                yield from nearest or ()
                return
            yield f"{Fault.place(path)}: none of {len(options)} alternatives fits; nearest: {'; '.join(nearest or ())}"

        return check

    def require_end(self, schema: Any, trail: tuple[str, ...]) -> None:
        """Refuse references that lead back to where they stand: no value is the deeper for following them."""
        if not isinstance(schema, Mapping):
            return
        for option in schema.get("anyOf", ()):
            self.require_end(option, trail)
        reference = schema.get("$ref")
        if reference in trail:
            raise SchemaUnsupported(f"The reference {reference!r} leads to itself.")
        if isinstance(reference, str) and reference not in self.ending:
            self.require_end(resolve(reference, self.root), (*trail, reference))
            self.ending.add(reference)

    def reference(self, argument: Any, depth: int) -> _Check:
        name = argument.removeprefix("#/$defs/")
        definitions = self.root.get("$defs", {})
        if not argument.startswith("#/$defs/") or name not in definitions:
            raise SchemaUnsupported(f"The reference {argument!r} is not to a definition of this schema.")
        if name not in self.references:
            self.require_end({"$ref": argument}, ())
            cell = self.references[name] = []
            cell.append(self.compile(definitions[name], depth))
        cell = self.references[name]

        def check(value: Any, path: _Path) -> Iterator[str]:
            if len(path) > _MAXIMUM_DEPTH:
                yield f"{Fault.place(path[:5])}…: deeper than {_MAXIMUM_DEPTH} levels"
                return
            yield from cell[0](value, path)

        return check


def _typed(names: Any) -> _Check:
    if not isinstance(names, list):
        raise SchemaUnsupported(f"A type is a word or an array of words, not {names!r}.")
    unknown = [name for name in names if name not in _TYPES]
    if unknown:
        raise SchemaUnsupported(f"{unknown[0]!r} is not a JSON Schema type.")

    def check(value: Any, path: _Path) -> Iterator[str]:
        if not any(is_kind(value, name) for name in names):
            yield f"{Fault.place(path)}: expected {' or '.join(names)}, got {_kind(value)}"

    return check


def _listed(values: Any) -> _Check:
    options = [frozen(option) for option in values]
    shown = ", ".join(repr(option) for option in values)

    def check(value: Any, path: _Path) -> Iterator[str]:
        if frozen(value) not in options:
            yield f"{Fault.place(path)}: expected one of {shown}"

    return check


def _elements(checks_of: Callable[[list[Any]], list[tuple[int, _Check]]]) -> _Check:
    """Check the elements of an array, each with the check that is given with its index."""

    def check(value: Any, path: _Path) -> Iterator[str]:
        if isinstance(value, list):
            for index, item in checks_of(value):
                yield from item(value[index], (*path, index))

    return check


def _counted(bound: Any, *, least: bool) -> _Check:
    if type(bound) is not int or bound < 0:
        raise SchemaUnsupported(f"A number of elements is an integer of at least 0, not {bound!r}.")

    def check(value: Any, path: _Path) -> Iterator[str]:
        if isinstance(value, list) and (len(value) < bound if least else len(value) > bound):
            words = "least" if least else "most"
            yield f"{Fault.place(path)}: expected at {words} {bound} elements, got {len(value)}"

    return check


def _unique(value: Any, path: _Path) -> Iterator[str]:
    if isinstance(value, list) and len({frozen(element) for element in value}) < len(value):
        yield f"{Fault.place(path)}: the elements are not all different"


def _anything(value: Any, path: _Path) -> Iterator[str]:
    return iter(())


def _kind(value: Any) -> str:
    return "integer" if is_kind(value, "integer") else kind_of(value)
