"""The default SchemaValidator: the keywords that schemas of Python types have, any other refused.

`portico-basics` brings a validator of all of JSON Schema 2020-12.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from portico._schema.values import frozen, is_kind, kind_of
from portico._types.compiled import Compiled, Fault
from portico.errors import SchemaUnsupported

_Path: TypeAlias = tuple[str | int, ...]
_Check: TypeAlias = Callable[[Any, _Path], Iterator[str]]

_TYPES = frozenset(["string", "integer", "number", "boolean", "null", "array", "object"])
_ANNOTATIONS = frozenset({"description", "title", "default", "format", "$defs", "examples"})
_DIALECTS = ("https://json-schema.org/", "http://json-schema.org/")
"""How the names of JSON Schema's own dialects begin: the keywords known here mean the same in all of them."""
_METHODS = {
    "$ref": "reference",
    "$schema": "dialect",
    "anyOf": "any_of",
    "const": "const",
    "enum": "enum",
    "items": "items",
    "maxItems": "maximum",
    "minItems": "minimum",
    "prefixItems": "prefix",
    "properties": "properties",
    "type": "type",
    "uniqueItems": "unique",
}
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
        compiler.refuse_circles()

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
        self.tried = threading.local()
        """What came of the alternatives at each place of the value: tried once, not once for each way there."""
        self.leads_to: dict[str, set[str]] = {"": set()}
        self.here: str | None = ""
        """The definition being compiled, as long as it speaks of the same value; None further inside."""

    def inside(self, schema: Any, depth: int) -> _Check:
        """Compile the schema of a part of the value."""
        here, self.here = self.here, None
        try:
            return self.compile(schema, depth)
        finally:
            self.here = here

    def refuse_circles(self) -> None:
        """Refuse references that lead back to where they stand: no value is the deeper for following them."""
        clear: set[str] = set()
        for start in self.leads_to:
            trail, stack = [start], [iter(self.leads_to[start])]
            while stack:
                following = next(stack[-1], None)
                if following is None:
                    stack.pop()
                    clear.add(trail.pop())
                elif following in trail:
                    raise SchemaUnsupported(f"The reference to {following!r} leads to itself.")
                elif following not in clear:
                    trail.append(following)
                    stack.append(iter(self.leads_to.get(following, ())))

    def compile(self, schema: Any, depth: int) -> _Check:
        if depth > _MAXIMUM_DEPTH:
            raise SchemaUnsupported(f"The schema is deeper than {_MAXIMUM_DEPTH} levels.")
        if schema is True:
            return _anything
        if schema is False:
            return lambda value, path: iter([f"{Fault.place(path)}: nothing is allowed here"])
        checks: list[_Check] = []
        if not isinstance(schema, Mapping):
            raise SchemaUnsupported(f"A JSON Schema is an object, true or false, not {type(schema).__name__}.")
        for keyword, argument in schema.items():
            if keyword in _ANNOTATIONS or keyword in ("required", "additionalProperties"):
                continue
            build = getattr(self, f"on_{_METHODS[keyword]}") if keyword in _METHODS else None
            if build is None:
                raise SchemaUnsupported(
                    f"The schema keyword {keyword!r} is not handled by the plain validator. "
                    "Install portico-basics for all of JSON Schema 2020-12."
                )
            checks.append(build(argument, schema, depth + 1))
        if "properties" not in schema and ("required" in schema or "additionalProperties" in schema):
            checks.append(self.on_properties({}, schema, depth + 1))
        if len(checks) == 1:
            return checks[0]
        return lambda value, path: (fault for check in checks for fault in check(value, path))

    def on_dialect(self, argument: Any, schema: Any, depth: int) -> _Check:
        if not str(argument).startswith(_DIALECTS):
            raise SchemaUnsupported(f"{argument!r} is no dialect of JSON Schema that is known here.")
        return _anything

    def on_type(self, argument: Any, schema: Any, depth: int) -> _Check:
        names = [argument] if isinstance(argument, str) else argument
        if not isinstance(names, list):
            raise SchemaUnsupported(f"A type is a word or an array of words, not {names!r}.")
        unknown = [name for name in names if name not in _TYPES]
        if unknown:
            raise SchemaUnsupported(f"{unknown[0]!r} is not a JSON Schema type.")

        def check(value: Any, path: _Path) -> Iterator[str]:
            if not any(is_kind(value, name) for name in names):
                yield f"{Fault.place(path)}: expected {' or '.join(names)}, got {_kind(value)}"

        return check

    def on_enum(self, argument: Any, schema: Any, depth: int) -> _Check:
        options = [(frozen(option)) for option in argument]
        shown = ", ".join(repr(option) for option in argument)

        def check(value: Any, path: _Path) -> Iterator[str]:
            if frozen(value) not in options:
                yield f"{Fault.place(path)}: expected one of {shown}"

        return check

    def on_const(self, argument: Any, schema: Any, depth: int) -> _Check:
        return self.on_enum([argument], schema, depth)

    def on_properties(self, argument: Any, schema: Any, depth: int) -> _Check:
        members = {name: self.inside(member, depth) for name, member in argument.items()}
        required = tuple(schema.get("required", ()))
        rest = self.inside(schema.get("additionalProperties", True), depth)
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

    def on_items(self, argument: Any, schema: Any, depth: int) -> _Check:
        item = self.inside(argument, depth)
        start = len(schema.get("prefixItems", ()))

        def check(value: Any, path: _Path) -> Iterator[str]:
            if isinstance(value, list):
                for index in range(start, len(value)):
                    yield from item(value[index], (*path, index))

        return check

    def on_prefix(self, argument: Any, schema: Any, depth: int) -> _Check:
        members = [self.inside(member, depth) for member in argument]

        def check(value: Any, path: _Path) -> Iterator[str]:
            if isinstance(value, list):
                for index, (member, element) in enumerate(zip(members, value, strict=False)):
                    yield from member(element, (*path, index))

        return check

    def on_minimum(self, argument: Any, schema: Any, depth: int) -> _Check:
        _require_count(argument)

        def check(value: Any, path: _Path) -> Iterator[str]:
            if isinstance(value, list) and len(value) < argument:
                yield f"{Fault.place(path)}: expected at least {argument} elements, got {len(value)}"

        return check

    def on_maximum(self, argument: Any, schema: Any, depth: int) -> _Check:
        _require_count(argument)

        def check(value: Any, path: _Path) -> Iterator[str]:
            if isinstance(value, list) and len(value) > argument:
                yield f"{Fault.place(path)}: expected at most {argument} elements, got {len(value)}"

        return check

    def on_unique(self, argument: Any, schema: Any, depth: int) -> _Check:
        def check(value: Any, path: _Path) -> Iterator[str]:
            if argument and isinstance(value, list) and len({frozen(element) for element in value}) < len(value):
                yield f"{Fault.place(path)}: the elements are not all different"

        return check

    def on_any_of(self, argument: Any, schema: Any, depth: int) -> _Check:
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

    def on_reference(self, argument: Any, schema: Any, depth: int) -> _Check:
        name = argument.removeprefix("#/$defs/")
        definitions = self.root.get("$defs", {})
        if not argument.startswith("#/$defs/") or name not in definitions:
            raise SchemaUnsupported(f"The reference {argument!r} is not to a definition of this schema.")
        if self.here is not None:
            self.leads_to[self.here].add(name)
        if name not in self.references:
            cell = self.references[name] = []
            here, self.here = self.here, name
            self.leads_to[name] = set()
            cell.append(self.compile(definitions[name], depth))
            self.here = here
        cell = self.references[name]

        def check(value: Any, path: _Path) -> Iterator[str]:
            if len(path) > _MAXIMUM_DEPTH:
                yield f"{Fault.place(path[:5])}…: deeper than {_MAXIMUM_DEPTH} levels"
                return
            yield from cell[0](value, path)

        return check


def _anything(value: Any, path: _Path) -> Iterator[str]:
    return iter(())


def _kind(value: Any) -> str:
    """Name the kind of a value for people: integer rather than number."""
    return "integer" if is_kind(value, "integer") else kind_of(value)


def _require_count(argument: Any) -> None:
    if type(argument) is not int or argument < 0:
        raise SchemaUnsupported(f"A number of elements is an integer of at least 0, not {argument!r}.")
