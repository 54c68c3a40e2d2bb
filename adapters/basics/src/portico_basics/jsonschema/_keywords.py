"""The keywords of 2020-12, with faults in Portico's words and an end to the work.

The vendor's own write the whole value into each message, lose the place where a schema is false, and have texts
matched for however long it takes. References, conditions and what is left unevaluated are the vendor's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from jsonschema.exceptions import ValidationError  # type: ignore[import-untyped]

from portico_basics.jsonschema._alternatives import alternatives_faults
from portico_basics.jsonschema._assertions import ASSERTIONS, Assertion
from portico_basics.jsonschema._matching import Matching
from portico_basics.jsonschema._run import Runs
from portico_basics.jsonschema._schema import NOTHING
from portico_basics.jsonschema._values import kind, shown

Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]
Faults: TypeAlias = Iterator[ValidationError]


def keywords(
    vendor: Mapping[str, Keyword], runs: Runs, formats: Mapping[str, Callable[[str], bool]] | None, maximum_text: int
) -> dict[str, Keyword]:
    """Return all keywords."""
    matching = Matching(runs, maximum_text)
    own: dict[str, Keyword] = {
        **{name: _asserting(assertion) for name, assertion in ASSERTIONS.items()},
        NOTHING: _nothing,
        "$ref": _once(vendor["$ref"], runs),
        "additionalProperties": _additional(matching),
        "anyOf": _any_of,
        "contains": _contains,
        "dependentRequired": _dependent_required,
        "format": _format(formats),
        "items": _items,
        "not": _not,
        "oneOf": _one_of,
        "pattern": _pattern(matching),
        "patternProperties": _pattern_properties(matching),
        "prefixItems": _prefix_items,
        "properties": _properties,
        "propertyNames": _property_names,
        "required": _required,
        "type": _type,
        "unevaluatedItems": _unevaluated_items(vendor["unevaluatedItems"]),
        "unevaluatedProperties": _unevaluated_properties(vendor["unevaluatedProperties"]),
    }
    return {name: _counted(function, runs) for name, function in {**vendor, **own}.items()}


def _counted(function: Keyword, runs: Runs) -> Keyword:
    def counted(validator: Any, argument: Any, value: Any, schema: Any) -> Iterable[ValidationError] | None:
        runs.now.step()
        return function(validator, argument, value, schema)

    return counted


def _once(function: Keyword, runs: Runs) -> Keyword:
    """Follow a reference from one place once for each value: ways through a schema may meet again and again."""

    def once(validator: Any, argument: Any, value: Any, schema: Any) -> Iterable[ValidationError]:
        return runs.now.once((id(schema), id(value)), function(validator, argument, value, schema) or ())

    return once


def _asserting(assertion: Assertion) -> Keyword:
    def asserting(validator: Any, argument: Any, value: Any, schema: Any) -> Faults:
        if assertion.speaks_of(value) and not assertion.holds(argument, value):
            yield ValidationError(assertion.says(argument, value))

    return asserting


def _nothing(validator: Any, argument: Any, value: Any, schema: Any) -> Faults:
    yield ValidationError("nothing is allowed here")


def _fits(validator: Any, value: Any, schema: Any) -> bool:
    return next(iter(validator.descend(value, schema)), None) is None


def _type(validator: Any, argument: Any, value: Any, schema: Any) -> Faults:
    names = [argument] if isinstance(argument, str) else argument
    if not any(validator.is_type(value, name) for name in names):
        yield ValidationError(f"expected {' or '.join(names)}, got {kind(value)}")


def _properties(validator: Any, argument: Any, value: Any, schema: Any) -> Faults:
    if isinstance(value, dict):
        for name, inner in argument.items():
            if name in value:
                yield from validator.descend(value[name], inner, path=name)


def _required(validator: Any, argument: Any, value: Any, schema: Any) -> Faults:
    if isinstance(value, dict):
        for name in argument:
            if name not in value:
                yield ValidationError(f"{shown(name)} is missing")


def _dependent_required(validator: Any, argument: Any, value: Any, schema: Any) -> Faults:
    for name, needed in argument.items() if isinstance(value, dict) else ():
        for other in needed if name in value else ():
            if other not in value:
                yield ValidationError(f"{shown(other)} is missing, which must be there with {shown(name)}")


def _property_names(validator: Any, argument: Any, value: Any, schema: Any) -> Faults:
    for name in value if isinstance(value, dict) else ():
        for error in validator.descend(name, argument):
            error.message = f"the key {shown(name)}: {error.message}"
            yield error


def _pattern(matching: Matching) -> Keyword:
    def pattern(validator: Any, argument: Any, value: Any, schema: Any) -> Faults:
        problem = matching.problem(argument, value) if isinstance(value, str) else None
        if problem is not None:
            yield ValidationError(problem)

    return pattern


def _pattern_properties(matching: Matching) -> Keyword:
    def pattern_properties(validator: Any, argument: Any, value: Any, schema: Any) -> Faults:
        for name, element in value.items() if isinstance(value, dict) else ():
            for pattern, inner in argument.items():
                if matching.is_too_long(pattern, name):
                    yield ValidationError(f"the key {shown(name)}: {matching.problem(pattern, name)}")
                elif matching.problem(pattern, name) is None:
                    yield from validator.descend(element, inner, path=name)

    return pattern_properties


def _additional(matching: Matching) -> Keyword:
    def additional(validator: Any, argument: Any, value: Any, schema: Any) -> Faults:
        properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name, element in value.items() if isinstance(value, dict) else ():
            if name in properties or any(matching.problem(pattern, name) is None for pattern in patterns):
                continue
            if argument is False:
                yield ValidationError(f"{shown(name)} is not a known key")
            else:
                yield from validator.descend(element, argument, path=name)

    return additional


def _prefix_items(validator: Any, argument: Any, value: Any, schema: Any) -> Faults:
    if isinstance(value, list):
        for index, (element, inner) in enumerate(zip(value, argument, strict=False)):
            yield from validator.descend(element, inner, path=index)


def _items(validator: Any, argument: Any, value: Any, schema: Any) -> Faults:
    if isinstance(value, list):
        for index in range(len(schema.get("prefixItems", ())), len(value)):
            yield from validator.descend(value[index], argument, path=index)


def _contains(validator: Any, argument: Any, value: Any, schema: Any) -> Faults:
    if isinstance(value, list):
        least, most = schema.get("minContains", 1), schema.get("maxContains")
        found = sum(_fits(validator, element, argument) for element in value)
        if found < least:
            yield ValidationError(f"expected at least {least} elements as `contains` has them, got {found}")
        elif most is not None and found > most:
            yield ValidationError(f"expected at most {most} elements as `contains` has them, got {found}")


def _format(formats: Mapping[str, Callable[[str], bool]] | None) -> Keyword:
    def check(validator: Any, argument: Any, value: Any, schema: Any) -> Faults:
        if formats is not None and isinstance(value, str) and not formats[argument](value):
            yield ValidationError(f"expected a string of the format {argument}")

    return check


def _not(validator: Any, argument: Any, value: Any, schema: Any) -> Faults:
    if _fits(validator, value, argument):
        yield ValidationError("what the schema under `not` describes is not allowed")


def _any_of(validator: Any, argument: Any, value: Any, schema: Any) -> Faults:
    tried: list[list[ValidationError]] = []
    for option in argument:
        errors = list(validator.descend(value, option))
        if not errors:
            return
        tried.append(errors)
    yield from alternatives_faults(tried, value)


def _one_of(validator: Any, argument: Any, value: Any, schema: Any) -> Faults:
    tried = [list(validator.descend(value, option)) for option in argument]
    fitting = [str(number) for number, errors in enumerate(tried, 1) if not errors]
    if not fitting:
        yield from alternatives_faults(tried, value)
    elif len(fitting) > 1:
        yield ValidationError(f"only one of {len(tried)} alternatives may fit, and {' and '.join(fitting)} do")


def _unevaluated_items(function: Keyword) -> Keyword:
    def unevaluated(validator: Any, argument: Any, value: Any, schema: Any) -> Faults:
        try:
            found = bool(list(function(validator, argument, value, schema) or ()))
        except ValueError:
            # It found some, and could not write a number of many digits into its message.
            found = True
        if found:
            yield ValidationError("there are elements that no part of the schema allows")

    return unevaluated


def _unevaluated_properties(function: Keyword) -> Keyword:
    def unevaluated(validator: Any, argument: Any, value: Any, schema: Any) -> Faults:
        for error in function(validator, argument, value, schema) or ():
            names = error.message.partition("(")[2].rpartition(" w")[0]
            error.message = f"no part of the schema allows {names if len(names) <= 200 else f'{names[:199]}…'}"
            yield error

    return unevaluated
