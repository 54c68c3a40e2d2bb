"""The default SchemaValidator: the keywords that schemas of Python types have, any other refused.

`portico-basics` brings a validator of all of JSON Schema 2020-12.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from portico._schema.values import ANNOTATIONS, OF_KIND, Evaluation, is_kind, kind_of, other_members, resolve
from portico._types.compiled import Compiled, Fault
from portico.errors import SchemaUnsupported

_Path: TypeAlias = tuple[str | int, ...]

_TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
_NOTES = ("description", "title", "default", "format", "$defs", "examples")
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
        try:
            _SchemaCheck(schema).part(schema, 0)
            root = copy.deepcopy(schema)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SchemaUnsupported(f"The schema is malformed: {error}.") from error
        except RecursionError:
            raise SchemaUnsupported("The schema is nested too deeply.") from None

        def validate(value: Any) -> list[str]:
            evaluation = _PlainEvaluation(root)
            try:
                return [] if evaluation.of(value, root) else list(evaluation.faults(value, root, ()))
            except RecursionError:
                return ["$: nested too deeply to be checked"]

        return validate


class _SchemaCheck:
    """Refuse a schema with something in it that is not known here."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.checked: set[str] = set()
        self.ending: set[str] = set()

    def part(self, schema: Any, depth: int) -> None:
        if depth > _MAXIMUM_DEPTH:
            raise SchemaUnsupported(f"The schema is deeper than {_MAXIMUM_DEPTH} levels.")
        if isinstance(schema, bool):
            return
        if not isinstance(schema, Mapping):
            raise SchemaUnsupported(f"A JSON Schema is an object, true or false, not {type(schema).__name__}.")
        for keyword, argument in schema.items():
            self.keyword(keyword, argument, depth + 1)

    def keyword(self, keyword: str, argument: Any, depth: int) -> None:
        match keyword:
            case "$schema" if str(argument).startswith(_DIALECTS):
                pass
            case "$ref":
                self.reference(argument, depth)
            case "type":
                for name in [argument] if isinstance(argument, str) else _list(argument):
                    if name not in _TYPES:
                        raise SchemaUnsupported(f"{name!r} is not a JSON Schema type.")
            case "enum" | "required":
                _list(argument)
            case "anyOf" | "prefixItems":
                for part in _list(argument):
                    self.part(part, depth)
            case "properties":
                for part in argument.values():
                    self.part(part, depth)
            case "items" | "additionalProperties":
                self.part(argument, depth)
            case "minItems" | "maxItems":
                if type(argument) is not int or argument < 0:
                    raise SchemaUnsupported(f"A number of elements is an integer of at least 0, not {argument!r}.")
            case "const" | "uniqueItems":
                pass
            case _ if keyword not in _NOTES:
                raise SchemaUnsupported(
                    f"The schema keyword {keyword!r} is not handled by the plain validator. "
                    "Install portico-basics for all of JSON Schema 2020-12."
                )

    def reference(self, reference: Any, depth: int) -> None:
        name = reference.removeprefix("#/$defs/")
        if not reference.startswith("#/$defs/") or name not in self.root.get("$defs", {}):
            raise SchemaUnsupported(f"The reference {reference!r} is not to a definition of this schema.")
        if reference not in self.checked:
            self.checked.add(reference)
            self.require_end({"$ref": reference}, ())
            self.part(self.root["$defs"][name], depth)

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


def _list(argument: Any) -> list[Any]:
    if not isinstance(argument, list):
        raise SchemaUnsupported(f"An array is expected in a schema, not {argument!r}.")
    return argument


class _PlainEvaluation(Evaluation):
    """An evaluation that can say what is wrong."""

    def __init__(self, root: Any) -> None:
        super().__init__(root, ANNOTATIONS.union(_NOTES))

    def faults(self, value: Any, schema: Any, path: _Path) -> Iterator[str]:
        """Yield the faults of the value, or of a part of it."""
        valid, place = self.of(value, schema), Fault.place(path)
        if valid is None:
            yield f"{Fault.place(path[:5])}: deeper than {_MAXIMUM_DEPTH} levels"
        elif schema is False:
            yield f"{place}: nothing is allowed here"
        elif not valid:
            kind = kind_of(value)
            for keyword, argument in schema.items():
                if OF_KIND.get(keyword, kind) == kind and not self.keyword(keyword, argument, value, schema):
                    yield from self.keyword_faults(keyword, value, schema, path)

    def keyword_faults(self, keyword: str, value: Any, schema: Mapping[str, Any], path: _Path) -> Iterator[str]:
        """Yield the faults under one keyword."""
        argument, place = schema[keyword], Fault.place(path)
        match keyword:
            case "type":
                names = [argument] if isinstance(argument, str) else argument
                got = "integer" if is_kind(value, "integer") else kind_of(value)
                yield f"{place}: expected {' or '.join(names)}, got {got}"
            case "enum" | "const":
                yield f"{place}: expected one of {', '.join(map(repr, [argument] if keyword == 'const' else argument))}"
            case "$ref":
                yield from self.faults(value, resolve(argument, self.root), path)
            case "anyOf":
                likely = Compiled.likely(argument, value, self.root.get("$defs", {}))
                if len(likely) == 1:
                    yield from self.faults(value, argument[likely[0]], path)
                else:
                    yield f"{place}: none of {len(argument)} alternatives fits"
            case "required":
                yield from (f"{place}: {name!r} is missing" for name in argument if name not in value)
            case "properties":
                for name in [name for name in value if name in argument]:
                    yield from self.faults(value[name], argument[name], (*path, name))
            case "additionalProperties":
                for name, member in other_members(value, schema).items():
                    if argument is False:
                        yield f"{place}: {name!r} is not a known key"
                    else:
                        yield from self.faults(member, argument, (*path, name))
            case "prefixItems":
                for index, (element, inner) in enumerate(zip(value, argument, strict=False)):
                    yield from self.faults(element, inner, (*path, index))
            case "items":
                first = len(schema.get("prefixItems", ()))
                for index, element in enumerate(value[first:], first):
                    yield from self.faults(element, argument, (*path, index))
            case "minItems" | "maxItems":
                words = "least" if keyword == "minItems" else "most"
                yield f"{place}: expected at {words} {argument} elements, got {len(value)}"
            case "uniqueItems":
                yield f"{place}: the elements are not all different"
