"""Checking arguments against their schemas with jsonschema; a validator is made when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any

from portico.errors import LimitExceeded
from portico.plugins import Compiled, Fault, JsonSchema, Mismatch
from portico_openapi._errors import shorten

_MOST_FAULTS = 20
_MOST_ERRORS = 100
_MOST_EXACT = 2**53
_MOST_SHOWN = 200


def compile_schema(schema: Mapping[str, Any]) -> Compiled:
    """Return a schema with a function that checks JSON values, and gives them as they are.

    Formats annotate only. Numbers without a fraction become integers, which they are in JSON.
    """
    check: Callable[[Any], list[Fault]] | None = None

    def structure(value: Any) -> Any:
        nonlocal check
        check = check or _compile(schema)
        if faults := check(value):
            raise Mismatch(faults)
        return with_integers(value)

    return Compiled(schema, structure, _same)


def compile_unchecked(schema: Mapping[str, Any]) -> Compiled:
    """Return a schema that only tells what is to be expected: values are given as they are."""
    return Compiled(schema, _same, _same)


def _same(value: Any) -> Any:
    return value


def with_integers(value: Any) -> Any:
    """Return a JSON value with each number that has no fraction as an integer."""
    kind = type(value)
    if kind is float:
        return int(value) if value.is_integer() and abs(value) < _MOST_EXACT else value
    if kind is list:
        return [with_integers(part) for part in value]
    if kind is dict:
        return {key: with_integers(part) for key, part in value.items()}
    return value


@cache
def bounded() -> Any:
    """Return the keywords for jsonschema whose work ends, with the ``validator`` that has them."""
    import re2
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError
    from jsonschema.validators import extend

    made: Any = JsonSchema.Bounded(Draft202012Validator.VALIDATORS, ValidationError, re2)
    made.validator = extend(Draft202012Validator, made.keywords)
    return made


def held(pattern: str) -> Any:
    """Return a pattern as RE2 has it; None for one that it has not, which is not checked."""
    bounded().begin(None)
    return bounded().compile(pattern)


def _compile(schema: Mapping[str, Any]) -> Callable[[Any], list[Fault]]:
    from referencing import Registry

    # An empty registry: whatever a schema names, nothing is fetched.
    validator = bounded().validator(schema, registry=Registry())
    definitions, plain = schema.get("$defs", {}), bounded().is_plain(schema)

    def check(value: Any) -> list[Fault]:
        faults: dict[Fault, None] = {}
        try:
            bounded().begin(value, plain=plain, definitions=definitions)
            for fault in _faults(islice(validator.iter_errors(value), _MOST_ERRORS), definitions):
                faults[fault] = None
                if len(faults) == _MOST_FAULTS:
                    break
        except (LimitExceeded, RecursionError) as error:
            why = str(error) if isinstance(error, LimitExceeded) else "one that nests too deeply"
            return [Fault((), "a value that can be checked", why)]
        return list(faults)

    return check


def _faults(errors: Iterable[Any], definitions: Mapping[str, Any]) -> Iterator[Fault]:
    for error in errors:
        path = tuple(error.absolute_path)
        keyword, wanted, value = error.validator, error.validator_value, error.instance
        if keyword == "required":
            yield from (Fault((*path, name), "a value", "nothing") for name in wanted if name not in value)
        elif keyword == "additionalProperties":
            known = error.schema.get("properties", {})
            names = shorten(", ".join(islice(known, _MOST_FAULTS)), _MOST_SHOWN)
            for key in bounded().others(value, error.schema):
                yield Fault((*path, key), f"one of {names}" if known else "no keys", "an unknown key")
        elif error.context:
            yield from _of_alternatives(error, path, definitions)
        else:
            yield _fault(path, _describe_rule(keyword or "", wanted), value)


def _of_alternatives(error: Any, path: tuple[str | int, ...], definitions: Mapping[str, Any]) -> Iterator[Fault]:
    """Tell what is wrong with the alternative that was meant, or with the one that is nearest."""
    options = error.validator_value
    bounded().spend(len(options) * (len(error.instance) if isinstance(error.instance, dict) else 1) >> 2)
    meant = Compiled.likely(options, error.instance, definitions)
    for_each: dict[Any, list[Any]] = {index: [] for index in meant}
    for part in error.context:
        for_each.setdefault(part.schema_path[0], []).append(part)
    inner = [list(_faults(for_each[index], definitions)) for index in meant]
    words = dict.fromkeys(fault.expected for faults in inner for fault in faults if fault.path == path)
    if words and all(any(fault.path == path for fault in faults) for faults in inner):
        yield _fault(path, " or ".join(words), error.instance)
    else:
        yield from min(inner, key=len)


def _describe_rule(keyword: str, wanted: Any) -> str:
    if keyword == "type":
        return " or ".join([wanted] if isinstance(wanted, str) else wanted)
    if keyword in ("enum", "const"):
        options = ", ".join(map(repr, wanted if keyword == "enum" else [wanted]))
        return shorten(f"one of {options}" if ", " in options else options, _MOST_SHOWN)
    if not keyword:
        return "nothing here"  # A schema that is false has no keyword.
    if isinstance(wanted, dict | list):
        return f"a value that the rule {keyword!r} allows"
    return f"{keyword} {shorten(str(wanted), _MOST_SHOWN)}"


def _fault(path: tuple[str | int, ...], expected: str, value: Any) -> Fault:
    """Make a fault whose value is described as core describes values."""
    try:
        Mismatch.refuse(expected, value)
    except Mismatch as mismatch:
        return Fault(path, expected, mismatch.faults[0].got)
