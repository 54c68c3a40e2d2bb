"""Checking arguments against their schemas with jsonschema; a validator is made when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from itertools import islice
from typing import Any

from portico.plugins import Compiled, Fault, Mismatch
from portico_openapi._schemas import compiled_pattern
from portico_openapi._wrong import shortened


class _NotGiven:
    """The default of a parameter that has none, although null would be one of its values."""

    def __repr__(self) -> str:
        return "not given"


NOT_GIVEN = _NotGiven()


class _Enough(Exception):
    """A check has taken all the steps that it may."""


_steps: ContextVar[list[int]] = ContextVar("steps left to the check that runs")

_CLASSES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_SAYING_NOTHING = frozenset({"type", "title", "description", "default", "examples", "format", "deprecated"})
_MOST_FAULTS = 20
_MOST_ERRORS = 100
_MOST_STEPS = 20_000
_MOST_EXACT = 2**53
_MOST_SHOWN = 200


def checked(schema: Mapping[str, Any]) -> Compiled:
    """Return a schema with a function that checks JSON values, and gives them as they are.

    Formats annotate only. Numbers without a fraction become integers, which they are in JSON.
    """
    check: Callable[[Any], list[Fault]] | None = None
    kinds = _kinds(schema)
    kind_is_all = kinds is not None and set(schema) <= _SAYING_NOTHING

    def structure(value: Any) -> Any:
        nonlocal check
        if value is NOT_GIVEN:
            Mismatch.refuse("a value", value)
        if kinds is not None and not any(_is_of(value, kind) for kind in kinds):
            Mismatch.refuse(" or ".join(kinds), value)
        if kind_is_all:
            return settled(value)
        if check is None:
            check = _compile(schema)
        faults = check(value)
        if faults:
            raise Mismatch(faults)
        return settled(value)

    return Compiled(schema, structure, _same)


def unchecked(schema: Mapping[str, Any]) -> Compiled:
    """Return a schema that only tells what is to be expected: values are given as they are."""
    return Compiled(schema, _same, _same)


def not_given(schema: Mapping[str, Any]) -> Any:
    """Return what stands for the default that a parameter does not have; null itself where that is no value."""
    kinds = _kinds(schema)
    return NOT_GIVEN if kinds is None or "null" in kinds else None


def _kinds(schema: Mapping[str, Any]) -> list[str] | None:
    """Return the types that a schema's values have; None where it does not say."""
    definitions = schema.get("$defs", {})
    for _ in range(len(definitions) + 1):
        if "type" in schema:
            kinds = schema["type"]
            return [kinds] if isinstance(kinds, str) else list(kinds)
        reference = schema.get("$ref")
        behind = definitions.get(reference.removeprefix("#/$defs/")) if isinstance(reference, str) else None
        if not isinstance(behind, Mapping):
            return None
        schema = behind
    return None


def _is_of(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, _CLASSES.get(kind, ()))


def _same(value: Any) -> Any:
    return value


def settled(value: Any) -> Any:
    """Return a JSON value with each number that has no fraction as an integer."""
    kind = type(value)
    if kind is float:
        return int(value) if value.is_integer() and abs(value) < _MOST_EXACT else value
    if kind is list:
        return [settled(part) for part in value]
    if kind is dict:
        return {key: settled(part) for key, part in value.items()}
    return value


@cache
def _validator_class() -> Any:
    """Return jsonschema's validator of 2020-12, with patterns as they are compiled here."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError
    from jsonschema.validators import extend

    def pattern(validator: Any, wanted: str, instance: Any, schema: Any) -> Iterator[Any]:
        compiled = compiled_pattern(wanted)
        if isinstance(instance, str) and compiled and not compiled.search(instance):
            yield ValidationError("does not match")

    def counted(keyword: Any) -> Any:
        def check(validator: Any, wanted: Any, instance: Any, schema: Any) -> Any:
            steps = _steps.get()
            steps[0] -= 1
            if steps[0] < 0:
                raise _Enough
            return keyword(validator, wanted, instance, schema)

        return check

    keywords = {**Draft202012Validator.VALIDATORS, "pattern": pattern}
    return extend(Draft202012Validator, {name: counted(keyword) for name, keyword in keywords.items()})


def _compile(schema: Mapping[str, Any]) -> Callable[[Any], list[Fault]]:
    from referencing import Registry

    # An empty registry: whatever a schema names, nothing is fetched.
    validator = _validator_class()(schema, registry=Registry())
    definitions = schema.get("$defs", {})

    def check(value: Any) -> list[Fault]:
        faults: dict[tuple[tuple[str | int, ...], str], Fault] = {}
        token = _steps.set([_MOST_STEPS])
        try:
            for fault in _faults(islice(validator.iter_errors(value), _MOST_ERRORS), definitions):
                faults.setdefault((fault.path, fault.expected), fault)
                if len(faults) >= _MOST_FAULTS:
                    break
        except _Enough:
            # Alternatives of alternatives can take for ever; what is not found by now is the service's to find.
            pass
        finally:
            _steps.reset(token)
        return list(faults.values())

    return check


def _faults(errors: Iterable[Any], definitions: Mapping[str, Any]) -> Iterator[Fault]:
    for error in errors:
        path = tuple(error.absolute_path)
        keyword, wanted, value = error.validator, error.validator_value, error.instance
        if keyword == "required":
            for name in wanted:
                if name not in value:
                    yield Fault((*path, name), "a value", "nothing")
        elif keyword == "additionalProperties":
            known = error.schema.get("properties", {})
            patterns = [compiled_pattern(pattern) for pattern in error.schema.get("patternProperties", {})]
            for key in value:
                if key not in known and not any(pattern and pattern.search(key) for pattern in patterns):
                    names = shortened(", ".join(islice(known, _MOST_FAULTS)), _MOST_SHOWN)
                    yield Fault((*path, key), f"one of {names}" if known else "no keys", "an unknown key")
        elif keyword in ("anyOf", "oneOf"):
            yield from _of_alternatives(error, path, definitions)
        else:
            yield _fault(path, _expected(keyword or "", wanted), value)


def _of_alternatives(error: Any, path: tuple[str | int, ...], definitions: Mapping[str, Any]) -> Iterator[Fault]:
    """Tell what is wrong with the alternative that was meant, or with the one that is nearest."""
    if not error.context:
        yield _fault(path, "a value that fits one alternative only", error.instance)
        return
    meant = Compiled.likely(error.validator_value, error.instance, definitions)
    for_each = [[part for part in error.context if part.schema_path[0] == index] for index in meant]
    inner = [list(_faults(parts, definitions)) for parts in for_each]
    words = dict.fromkeys(fault.expected for faults in inner for fault in faults if fault.path == path)
    if words and all(any(fault.path == path for fault in faults) for faults in inner):
        yield _fault(path, " or ".join(words), error.instance)
    else:
        yield from min(inner, key=len)


def _expected(keyword: str, wanted: Any) -> str:
    if keyword == "type":
        return " or ".join([wanted] if isinstance(wanted, str) else wanted)
    if keyword in ("enum", "const"):
        options = ", ".join(map(repr, wanted if keyword == "enum" else [wanted]))
        return shortened(f"one of {options}" if ", " in options else options, _MOST_SHOWN)
    if not keyword:
        return "nothing here"  # A schema that is false has no keyword.
    if isinstance(wanted, dict | list):
        return f"a value that the rule {keyword!r} allows"
    return f"{keyword} {shortened(str(wanted), _MOST_SHOWN)}"


def _fault(path: tuple[str | int, ...], expected: str, value: Any) -> Fault:
    """Make a fault whose value is described as core describes values."""
    try:
        Mismatch.refuse(expected, value)
    except Mismatch as mismatch:
        return Fault(path, expected, mismatch.faults[0].got)
