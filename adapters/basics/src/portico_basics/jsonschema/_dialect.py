"""JSON Schema 2020-12 as the vendor checks it, with bounds, and with sentences for people and models."""

from __future__ import annotations

import ipaddress
import json
import logging
import re
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal, DecimalException
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from typing import Any
from uuid import UUID

import re2
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.validators import extend
from jsonschema_specifications import REGISTRY
from referencing import Registry
from referencing.exceptions import CannotDetermineSpecification, Unresolvable
from referencing.jsonschema import DRAFT202012

from portico.errors import LimitExceeded, SchemaUnsupported
from portico.plugins import Fault, JsonSchema
from portico_basics.config import JsonschemaSettings

_MAXIMUM_DEPTH = 200
_SHOWN = 200

_HERE = "https://json-schema.org/draft/2020-12/"
_DIALECTS = ("https://json-schema.org/", "http://json-schema.org/")
"""How the names of JSON Schema's own dialects begin. All are read as 2020-12."""
_META: Registry[Any] = Registry().with_resources(
    # The vendor takes a `$schema` inside of a schema for a reason to use another class of validators.
    (uri, DRAFT202012.create_resource({key: part for key, part in REGISTRY.contents(uri).items() if key != "$schema"}))
    for uri in REGISTRY
    if uri.startswith(_HERE)
)
"""The meta-schemas of 2020-12, which are all that a schema may refer to outside of itself."""

_SCHEMA = frozenset(
    {"additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAPS = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_SAME_VALUE = frozenset({"allOf", "anyOf", "dependentSchemas", "else", "if", "not", "oneOf", "then"})
"""Keywords whose schemas describe the same value: a circle of these never ends."""
_FALSE_STAYS = ("additionalProperties", "unevaluatedItems", "unevaluatedProperties")
_REFERENCES = ("$ref", "$dynamicRef")
_OTHERS = frozenset(
    {"$anchor", "$comment", "$dynamicAnchor", "$id", "$schema", "$vocabulary", "contentEncoding", "contentMediaType"}
    | {"default", "deprecated", "description", "examples", "format", "readOnly", "title", "writeOnly", *_REFERENCES}
    | {"const", "dependentRequired", "enum", "exclusiveMaximum", "exclusiveMinimum", "maxContains", "maxItems"}
    | {"maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum"}
    | {"multipleOf", "pattern", "required", "type", "uniqueItems"}
    # What OpenAPI's vocabulary adds does not change what is valid.
    | {"discriminator", "example", "externalDocs", "xml"}
)
_KNOWN = _SCHEMA | _LISTS | _MAPS | _OTHERS

_SENTENCES = {
    "const": "expected {argument}",
    "enum": "expected one of {options}",
    "exclusiveMaximum": "expected less than {argument}, got {value}",
    "exclusiveMinimum": "expected more than {argument}, got {value}",
    "format": "expected a string of the format {argument}",
    "maxItems": "expected at most {argument} elements, got {size}",
    "maxLength": "expected at most {argument} characters, got {size}",
    "maxProperties": "expected at most {argument} keys, got {size}",
    "maximum": "expected at most {argument}, got {value}",
    "minItems": "expected at least {argument} elements, got {size}",
    "minLength": "expected at least {argument} characters, got {size}",
    "minProperties": "expected at least {argument} keys, got {size}",
    "minimum": "expected at least {argument}, got {value}",
    "multipleOf": "expected a multiple of {argument}, got {value}",
    "not": "this value is not allowed",
    "pattern": "expected a string that matches {argument}",
    "oneOf": "more than one alternative fits, where only one may",
    "type": "expected {kinds}, got {kind}",
    "uniqueItems": "the elements are not all different",
}
"""Faults by their keyword; for the others the vendor's messages are used."""
_BRIEF = reprlib.Repr()
_BRIEF.maxlist = _BRIEF.maxdict = 20
_BRIEF.maxstring = _BRIEF.maxother = _BRIEF.maxlong = _SHOWN
_KINDS = {str: "string", bool: "boolean", int: "integer", list: "array", dict: "object", type(None): "null"}

_log = logging.getLogger(__name__)


def _flat_meta() -> Any:
    """Return a validator of schemas with all vocabularies in one: the vendor's looks up a dozen references for each."""
    vocabularies = [_META.contents(uri) for uri in _META if "/meta/" in uri]
    flat = {key: {name: part for one in vocabularies for name, part in one.get(key, {}).items()} for key in _MAPS}
    flat["properties"]["definitions"] = flat["properties"]["$defs"]
    text = json.dumps({"type": ["object", "boolean"], **flat})
    return Draft202012Validator(json.loads(text.replace('"$dynamicRef": "#meta"', '"$ref": "#"')))


BOUNDED = JsonSchema.Bounded(Draft202012Validator.VALIDATORS, ValidationError, re2)


class Dialect:
    """Compiles schemas, all by one class of the vendor's."""

    def __init__(self, settings: JsonschemaSettings) -> None:
        self._settings = settings
        self._meta = _flat_meta()
        own: dict[str, Any] = {"multipleOf": _multiple_of, **({"format": _format} if settings.formats else {})}
        bounded = {name: BOUNDED.bound(name, keyword) for name, keyword in own.items()}
        self._kind: Any = extend(Draft202012Validator, {**BOUNDED.keywords, **bounded})

    def compile(self, schema: Any) -> Callable[[Any], list[str]]:
        """Return a function that checks values against a schema, which must be a copy of the caller's own."""
        self._prepare(schema)
        plain = BOUNDED.is_plain(schema)
        definitions = schema.get("$defs", {}) if isinstance(schema, dict) else {}
        validator = self._kind({"not": {}} if schema is False else schema, registry=_META)

        def validate(value: Any) -> list[str]:
            try:
                BOUNDED.begin(value, plain=plain, definitions=definitions)
                sentences = (sentence for error in validator.iter_errors(value) for sentence in _sentences(error))
                return list(dict.fromkeys(sentences))
            except RecursionError:
                return ["$: nested too deeply to be checked"]
            except ValueError:
                # The vendor cannot write a number of thousands of digits into its message.
                return ["$: it has a number of too many digits to be checked"]
            except LimitExceeded as error:
                return [f"$: {error}"]

        return validate

    def _prepare(self, schema: Any) -> None:
        """Check a schema, and note its patterns that are not checked.

        Raises ``SchemaUnsupported`` with the place of what cannot be used.
        """
        level = [schema]
        for _ in range(_MAXIMUM_DEPTH):
            level = [inner for part in level for inner in _contents(part)]
        if level:
            raise SchemaUnsupported(f"The schema is deeper than {_MAXIMUM_DEPTH} levels.")
        error = best_match(self._meta.iter_errors(schema))
        if error is not None:
            place = "/".join(["#", *map(str, error.absolute_path)])
            raise SchemaUnsupported(f"The schema is malformed at {place}: {_short(error.message)}.")
        parts = list(_parts(schema, "#"))
        for part, place in parts:
            self._check_keywords(part, place)
        _note_unchecked([part for part, _ in parts], schema)
        _check_references(schema, {id(part): place for part, place in parts})

    def _check_keywords(self, part: dict[str, Any], place: str) -> None:
        for keyword in part:
            if keyword not in _KNOWN and keyword not in self._settings.annotations and not keyword.startswith("x-"):
                raise SchemaUnsupported(
                    f"{place}: {keyword!r} is not a keyword of JSON Schema 2020-12. Name it in `annotations` of "
                    "[schemas.jsonschema] to ignore it."
                )
        dialect = part.pop("$schema", _HERE)
        if not dialect.startswith(_DIALECTS):
            raise SchemaUnsupported(f"{place}: {dialect!r} is not a dialect of JSON Schema.")
        name = part.get("format")
        if self._settings.formats and name is not None and name not in FORMATS:
            raise SchemaUnsupported(f"{place}: the format {name!r} cannot be checked. Known: {', '.join(FORMATS)}.")


def _note_unchecked(parts: Sequence[Mapping[str, Any]], schema: Any) -> None:
    """Compile all patterns, and tell of those that are not checked."""
    patterns = [pattern for part in parts for pattern in (part.get("pattern"), *part.get("patternProperties", ()))]
    try:
        BOUNDED.begin(schema)
        unchecked = [pattern for pattern in dict.fromkeys(patterns) if pattern and not BOUNDED.compile(pattern)]
    except LimitExceeded as error:
        raise SchemaUnsupported("The patterns of the schema are too many or too large.") from error
    if not BOUNDED.is_plain(schema) and any("unevaluatedProperties" in part for part in parts):
        unchecked.append("unevaluatedProperties beside patternProperties with repetitions")
    if unchecked:
        told = [_short(pattern) for pattern in unchecked[:5]]
        _log.warning("RE2 does not have %d patterns of a schema, so they are not checked: %s", len(unchecked), told)


def _contents(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _parts(schema: Any, place: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield a schema and all schemas inside of it, with their places.

    A schema that is false becomes an object: the vendor loses the place of a fault where it is not one.
    """
    if not isinstance(schema, dict):
        return
    yield schema, place
    for keyword, container, key in _inside(schema):
        if container[key] is False and key not in _FALSE_STAYS:
            container[key] = {"not": {}}
        yield from _parts(container[key], f"{place}/{keyword}" if container is schema else f"{place}/{keyword}/{key}")


def _inside(schema: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield the places of the schemas inside of a schema: the keyword, and what holds the schema under which key."""
    for keyword, argument in schema.items():
        if keyword in _SCHEMA:
            yield keyword, schema, keyword
        elif keyword in _LISTS:
            yield from ((keyword, argument, index) for index in range(len(argument)))
        elif keyword in _MAPS:
            yield from ((keyword, argument, name) for name in argument)


def _check_references(schema: Any, places: Mapping[int, str]) -> None:
    """Resolve every reference within the schema, and refuse circles of them that never end."""
    leads_to: dict[int, list[int]] = {}
    meta = {id(_META.contents(uri)) for uri in _META}
    waiting = [(schema, _META.resolver_with_root(DRAFT202012.create_resource(schema)))]
    while waiting:
        part, resolver = waiting.pop()
        if not isinstance(part, dict) or id(part) in leads_to:
            continue
        if part is not schema:
            resolver = resolver.in_subresource(DRAFT202012.create_resource(part))
        following = leads_to[id(part)] = []
        for reference in (part[keyword] for keyword in _REFERENCES if keyword in part):
            try:
                target = resolver.lookup(reference)
            except (Unresolvable, CannotDetermineSpecification) as error:
                raise SchemaUnsupported(
                    f"{places[id(part)]}: the reference {reference!r} leads to nothing within the schema. References "
                    "are never fetched: put what it refers to under $defs."
                ) from error
            if id(target.contents) in places:
                following.append(id(target.contents))
                waiting.append((target.contents, target.resolver))
            elif target.contents is not True and id(target.contents) not in meta:
                raise SchemaUnsupported(
                    f"{places[id(part)]}: the reference {reference!r} leads to what no keyword has as a schema."
                )
        for keyword, container, key in _inside(part):
            waiting.append((container[key], resolver))
            if keyword in _SAME_VALUE:
                following.append(id(container[key]))
    try:
        TopologicalSorter(leads_to).prepare()
    except CycleError as error:
        raise SchemaUnsupported(f"{places[error.args[1][0]]}: the schema refers to itself without an end.") from None


def _multiple_of(validator: Any, argument: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    """Compare as the numbers are written: 0.3 is three times 0.1, though not to a processor."""
    if validator.is_type(value, "number"):
        try:
            holds = (_read_fraction(value) / _read_fraction(argument)).denominator == 1
        except ValueError:  # not finite
            holds = False
        if not holds:
            yield ValidationError("")


def _read_fraction(number: float) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


FORMATS: Mapping[str, Callable[[str], object]] = {
    "date": date.fromisoformat,
    "date-time": datetime.fromisoformat,
    "decimal": Decimal,
    "duration": re.compile(r"P(?=\w)(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d+)?S)?)?)").fullmatch,
    "email": re.compile(r"[^\s@]{1,64}@[^\s@]+").fullmatch,
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
    "regex": lambda text: BOUNDED.compile(text) or re.compile(text),
    "time": time.fromisoformat,
    "uri": re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!-~]+").fullmatch,
    "uuid": UUID,
}
"""Functions that raise an error, or return None, for a text of another format."""


def _format(validator: Any, argument: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, str):
        try:
            fits = FORMATS[argument](value) is not None
        except (ValueError, DecimalException, OverflowError, RecursionError, re.error):
            fits = False
        if not fits:
            yield ValidationError("")


def _sentences(error: ValidationError) -> Iterator[str]:
    """Write an error as sentences with their places."""
    if error.context:
        yield from _alternatives(error)
        return
    sentence = _SENTENCES.get(str(error.validator))
    argument, value = error.validator_value, error.instance
    if sentence is None:
        words = _short(error.message or f"the keyword {error.validator} does not hold")
    else:
        words = sentence.format(
            argument=_show(argument),
            value=_show(value),
            size=len(value) if isinstance(value, str | list | dict) else "",
            options=_short(", ".join(map(_show, argument[:20]))) if error.validator == "enum" else "",
            kinds=argument if isinstance(argument, str) else " or ".join(argument) if error.validator == "type" else "",
            kind=_kind(value),
        )
    if "propertyNames" in error.absolute_schema_path:
        words = f"the key {_show(value)}: {words}"
    yield f"{Fault.place(list(error.absolute_path))}: {words}"


def _alternatives(error: ValidationError) -> Iterator[str]:
    """Yield the faults of the alternative that was probably meant: that of the right kind, with the right tag."""
    tried: dict[Any, list[ValidationError]] = {}
    for inner in error.context:
        tried.setdefault(inner.schema_path[0], []).append(inner)
    place = Fault.place(list(error.absolute_path))
    of_kind = [errors for errors in tried.values() if not any(map(_is_of_another_kind, errors))]
    if not of_kind:
        kinds = [each.validator_value for errors in tried.values() for each in errors if _is_of_another_kind(each)]
        names = [name for each in kinds for name in ([each] if isinstance(each, str) else each)]
        yield f"{place}: expected {' or '.join(dict.fromkeys(names))}, got {_kind(error.instance)}"
        return
    meant = [errors for errors in of_kind if not any(map(_is_tag, errors))] or of_kind
    nearest = [sentence for each in min(meant, key=len) for sentence in _sentences(each)]
    if len(meant) == 1:
        yield from nearest
    else:
        yield _short(f"{place}: none of {len(tried)} alternatives fits; the nearest: {'; '.join(nearest)}", 4 * _SHOWN)


def _is_of_another_kind(error: ValidationError) -> bool:
    return error.validator == "type" and not error.relative_path


def _is_tag(error: ValidationError) -> bool:
    return error.validator in ("const", "enum") and len(error.relative_path) == 1


def _kind(value: Any) -> str:
    """Return the kind of a JSON value; a number without a fraction is an integer."""
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    return _KINDS.get(type(value), type(value).__name__)


def _show(value: Any) -> str:
    try:
        return _short(_BRIEF.repr(value), 60)
    except ValueError:
        return "a number of many digits"


def _short(text: str, most: int = _SHOWN) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
