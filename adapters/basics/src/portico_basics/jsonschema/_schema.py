"""A schema before it is used: every keyword known, every reference local, every pattern one that ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from jsonschema_specifications import REGISTRY
from referencing import Registry
from referencing.exceptions import CannotDetermineSpecification, Unresolvable
from referencing.jsonschema import DRAFT202012

from portico.errors import SchemaUnsupported, nearest
from portico_basics.jsonschema._patterns import Pattern, read_pattern

_MAXIMUM_DEPTH = 200
_HERE = "https://json-schema.org/draft/2020-12/"
_DIALECTS = (
    f"{_HERE}schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-04/schema",
)
"""What a schema may say that it is written in; what it has in another sense than 2020-12 is refused."""
_ALONE = "http://"
"""How those dialects begin in which nothing counts that stands beside a ``$ref``."""

NOTHING = "x-portico-nothing"
"""The keyword of what a schema that is false becomes: so its faults have a place, and do not show the value."""

META: Registry[Any] = Registry().with_resources(
    # The vendor takes a `$schema` inside of a schema for a reason to use another class of validators.
    (uri, DRAFT202012.create_resource({key: part for key, part in REGISTRY.contents(uri).items() if key != "$schema"}))
    for uri in REGISTRY
    if uri.startswith(_HERE)
)
"""The meta-schemas of 2020-12, all that a schema may refer to outside of itself."""

_SCHEMA = frozenset(
    {"additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAPS = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_SAME_VALUE = frozenset({"allOf", "anyOf", "dependentSchemas", "else", "if", "not", "oneOf", "then"})
"""Keywords whose schemas speak of the very value: a circle of these leads no deeper into it."""
_REFERENCES = ("$ref", "$dynamicRef")
_ANNOTATIONS = frozenset(
    {"$comment", "contentEncoding", "contentMediaType", "default", "deprecated", "description", "examples", "format"}
    | {"readOnly", "title", "writeOnly"}
    # What OpenAPI's vocabulary adds says nothing of validity.
    | {"discriminator", "example", "externalDocs", "xml"}
)
_CORE = frozenset({"$anchor", "$dynamicAnchor", "$id", "$schema", "$vocabulary", *_REFERENCES})
_CHECKS = frozenset(
    {"const", "dependentRequired", "enum", "exclusiveMaximum", "exclusiveMinimum", "maxContains", "maxItems"}
    | {"maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum"}
    | {"multipleOf", "pattern", "required", "type", "uniqueItems"}
)
_KNOWN = _SCHEMA | _LISTS | _MAPS | _ANNOTATIONS | _CORE | _CHECKS
_INSTEAD = {
    "$recursiveRef": "$dynamicRef",
    "additionalItems": "items beside prefixItems",
    "dependencies": "dependentSchemas and dependentRequired",
    "id": "$id",
    "nullable": 'the type "null"',
}


@dataclass(slots=True)
class Prepared:
    """A schema that may be used, its patterns by what they became in it, and whether it refers dynamically."""

    schema: Any
    patterns: dict[str, Pattern] = field(default_factory=dict)
    dynamic: bool = False


def prepare(schema: Any, annotations: frozenset[str], formats: Mapping[str, Callable[[str], bool]] | None) -> Prepared:
    """Check a schema and change its patterns to Python's; it must be the caller's own copy, not deeper than Python.

    Raises ``SchemaUnsupported`` with the place of what cannot be used.
    """
    _require_shallow(schema)
    _require_well_formed(schema)
    prepared = Prepared(_without_false(schema))
    parts = list(_parts(prepared.schema, "#"))
    for part, place in parts:
        _check_keywords(part, place, annotations)
        _check_dialect(part, place)
        name = part.get("format")
        if formats is not None and name is not None and name not in formats:
            raise SchemaUnsupported(f"{place}: the format {name!r} cannot be checked. Known: {', '.join(formats)}.")
        _change_patterns(part, place, prepared)
    _follow_references(prepared, {id(part): place for part, place in parts})
    return prepared


def _require_shallow(schema: Any) -> None:
    level = [schema]
    for _ in range(_MAXIMUM_DEPTH):
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return
    raise SchemaUnsupported(f"The schema is deeper than {_MAXIMUM_DEPTH} levels.")


def _require_well_formed(schema: Any) -> None:
    error = best_match(Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(schema))
    if error is not None:
        place = "/".join(["#", *map(str, error.absolute_path)])
        message = error.message if len(error.message) <= 200 else f"{error.message[:199]}…"
        raise SchemaUnsupported(f"The schema is malformed at {place}: {message}.")


def _without_false(schema: Any) -> Any:
    """Return a schema with every schema that is false made an object; false for further keys stays."""
    if schema is False:
        return {NOTHING: True}
    if isinstance(schema, dict):
        for keyword, argument in schema.items():
            if keyword in _SCHEMA and keyword != "additionalProperties":
                schema[keyword] = _without_false(argument)
            elif keyword in _LISTS:
                schema[keyword] = [_without_false(inner) for inner in argument]
            elif keyword in _MAPS:
                schema[keyword] = {name: _without_false(inner) for name, inner in argument.items()}
        if schema.get("additionalProperties", False) is not False:
            schema["additionalProperties"] = _without_false(schema["additionalProperties"])
    return schema


def _parts(schema: Any, place: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield a schema and all schemas inside of it, with their places."""
    if isinstance(schema, dict):
        yield schema, place
        for keyword, inner, step in _inside(schema):
            yield from _parts(inner, f"{place}/{keyword}{step}")


def _inside(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    for keyword, argument in schema.items():
        if keyword in _SCHEMA:
            yield keyword, argument, ""
        elif keyword in _LISTS:
            yield from ((keyword, inner, f"/{index}") for index, inner in enumerate(argument))
        elif keyword in _MAPS:
            yield from ((keyword, inner, f"/{name}") for name, inner in argument.items())


def _check_keywords(part: dict[str, Any], place: str, annotations: frozenset[str]) -> None:
    for keyword in part:
        if keyword not in _KNOWN and keyword not in annotations and not keyword.startswith("x-"):
            close = _INSTEAD.get(keyword) or next(iter(nearest(keyword, sorted(_KNOWN), count=1)), None)
            named = "name it in `annotations` of [schemas.jsonschema] to pass it by."
            advice = f"2020-12 has {close}. Or {named}" if close else named.capitalize()
            raise SchemaUnsupported(f"{place}: {keyword!r} is not a keyword of JSON Schema 2020-12. {advice}")


def _check_dialect(part: dict[str, Any], place: str) -> None:
    dialect = part.pop("$schema", _DIALECTS[0]).rstrip("#")
    if dialect not in _DIALECTS:
        raise SchemaUnsupported(f"{place}: {dialect!r} is no dialect of JSON Schema that is known here.")
    beside = part.keys() - _ANNOTATIONS - {"$ref", "$defs", "definitions", "$id"}
    if dialect.startswith(_ALONE) and "$ref" in part and beside:
        raise SchemaUnsupported(
            f"{place}: in {dialect!r} nothing counts beside $ref, and in 2020-12 {min(beside)} does."
        )


def _change_patterns(part: dict[str, Any], place: str, prepared: Prepared) -> None:
    try:
        if "pattern" in part:
            part["pattern"] = _changed(part["pattern"], prepared)
        if "patternProperties" in part:
            properties = part["patternProperties"].items()
            part["patternProperties"] = {_changed(written, prepared): inner for written, inner in properties}
    except ValueError as error:
        raise SchemaUnsupported(f"{place}: {error}.") from error


def _changed(written: str, prepared: Prepared) -> str:
    pattern = read_pattern(written)
    prepared.patterns[pattern.python] = pattern
    return pattern.python


def _follow_references(prepared: Prepared, places: Mapping[int, str]) -> None:
    """Resolve every reference within the schema, and refuse a circle of them that leads nowhere."""
    leads_to: dict[int, list[int]] = {}
    waiting = [(prepared.schema, META.resolver_with_root(DRAFT202012.create_resource(prepared.schema)), "#")]
    meta = {id(META.contents(uri)) for uri in META}
    while waiting:
        part, resolver, place = waiting.pop()
        if not isinstance(part, dict) or id(part) in leads_to:
            continue
        place = places.get(id(part), place)
        if part is not prepared.schema:
            resolver = resolver.in_subresource(DRAFT202012.create_resource(part))
        following = leads_to[id(part)] = []
        for keyword in _REFERENCES:
            if keyword in part:
                prepared.dynamic |= keyword == "$dynamicRef"
                resolved = _resolved(resolver, part[keyword], place)
                target = resolved.contents
                if id(target) in places:
                    following.append(id(target))
                    waiting.append((target, resolved.resolver, place))
                elif id(target) in meta:
                    # A meta-schema refers to itself dynamically.
                    prepared.dynamic = True
                elif target is not True:
                    raise SchemaUnsupported(
                        f"{place}: the reference {part[keyword]!r} leads to what no keyword has as a schema."
                    )
        for keyword, inner, _ in _inside(part):
            waiting.append((inner, resolver, place))
            if keyword in _SAME_VALUE:
                following.append(id(inner))
    _refuse_circles(leads_to, places)


def _resolved(resolver: Any, reference: str, place: str) -> Any:
    try:
        return resolver.lookup(reference)
    except (Unresolvable, CannotDetermineSpecification) as error:
        raise SchemaUnsupported(
            f"{place}: the reference {reference!r} leads to nothing within the schema. References are never fetched: "
            "put what it refers to under $defs."
        ) from error


def _refuse_circles(leads_to: Mapping[int, list[int]], places: Mapping[int, str]) -> None:
    clear: set[int] = set()
    for start in leads_to:
        trail, stack = [start], [iter(leads_to[start])]
        while stack:
            following = next(stack[-1], None)
            if following is None:
                stack.pop()
                clear.add(trail.pop())
            elif following in trail:
                raise SchemaUnsupported(f"{places[following]}: the schema refers to itself without an end.")
            elif following not in clear and following in leads_to:
                trail.append(following)
                stack.append(iter(leads_to[following]))
