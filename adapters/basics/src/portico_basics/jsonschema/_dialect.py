"""JSON Schema 2020-12 as the vendor has it, with Portico's settings."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from portico.plugins import Fault
from portico_basics.jsonschema._patterns import read_pattern
from portico_basics.jsonschema._run import Run, Runs, TooMuch
from portico_basics.jsonschema._schema import META, NOTHING, prepare
from portico_basics.jsonschema.config import JsonschemaSettings

_SHOWN = 60
_KINDS = {str: "string", bool: "boolean", int: "integer", list: "array", dict: "object", type(None): "null"}


def kind(value: Any) -> str:
    """Return the kind of a JSON value; a number without a fraction is an integer."""
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    return _KINDS.get(type(value), type(value).__name__)


def shown(value: Any) -> str:
    """Return a value for a sentence, in a line at most."""
    if isinstance(value, int) and abs(value) >= 10**_SHOWN:
        return f"a number of more than {_SHOWN} digits"
    text = repr(value[: _SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def frozen(value: Any) -> Any:
    """Make a value hashable, so that 1 and 1.0 are equal and 1 and true are not, as JSON Schema has it."""
    if isinstance(value, list):
        return ("array", tuple(map(frozen, value)))
    if isinstance(value, dict):
        return ("object", frozenset((key, frozen(element)) for key, element in value.items()))
    return (isinstance(value, bool), value)


@dataclass(frozen=True, slots=True)
class Assertion:
    """A keyword that speaks of some kinds of value; ``holds`` and ``says`` take its argument and the value."""

    kinds: tuple[type, ...]
    holds: Callable[[Any, Any], bool]
    says: Callable[[Any, Any], str]

    def speaks_of(self, value: Any) -> bool:
        """Tell whether the keyword says anything of a value."""
        return isinstance(value, self.kinds) and (not isinstance(value, bool) or object in self.kinds)


_ANYTHING = (object,)
_NUMBERS = (int, float)


def _count(bound: str, unit: str) -> Callable[[Any, Any], str]:
    return lambda argument, value: f"expected at {bound} {argument} {unit}, got {len(value)}"


def _number(bound: str) -> Callable[[Any, Any], str]:
    return lambda argument, value: f"expected {bound} {argument}, got {shown(value)}"


def _is_multiple(argument: Any, value: Any) -> bool:
    """Compare as the numbers are written: 0.3 is three times 0.1, though not to a processor."""
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return (_written(value) / _written(argument)).denominator == 1


def _written(number: float) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


ASSERTIONS: Mapping[str, Assertion] = {
    "const": Assertion(
        _ANYTHING,
        lambda argument, value: bool(frozen(value) == frozen(argument)),
        lambda argument, value: f"expected one of {shown(argument)}",
    ),
    "enum": Assertion(
        _ANYTHING,
        lambda argument, value: frozen(value) in map(frozen, argument),
        lambda argument, value: f"expected one of {', '.join(map(shown, argument))}",
    ),
    "exclusiveMaximum": Assertion(_NUMBERS, lambda argument, value: value < argument, _number("less than")),
    "exclusiveMinimum": Assertion(_NUMBERS, lambda argument, value: value > argument, _number("more than")),
    "maxItems": Assertion((list,), lambda argument, value: len(value) <= argument, _count("most", "elements")),
    "maxLength": Assertion((str,), lambda argument, value: len(value) <= argument, _count("most", "characters")),
    "maxProperties": Assertion((dict,), lambda argument, value: len(value) <= argument, _count("most", "keys")),
    "maximum": Assertion(_NUMBERS, lambda argument, value: value <= argument, _number("at most")),
    "minItems": Assertion((list,), lambda argument, value: len(value) >= argument, _count("least", "elements")),
    "minLength": Assertion((str,), lambda argument, value: len(value) >= argument, _count("least", "characters")),
    "minProperties": Assertion((dict,), lambda argument, value: len(value) >= argument, _count("least", "keys")),
    "minimum": Assertion(_NUMBERS, lambda argument, value: value >= argument, _number("at least")),
    "multipleOf": Assertion(_NUMBERS, _is_multiple, _number("a multiple of")),
    "uniqueItems": Assertion(
        (list,),
        lambda argument, value: not argument or len({frozen(element) for element in value}) == len(value),
        lambda argument, value: "the elements are not all different",
    ),
}


_TAGS = ("const", "enum")
_EXPECTED = "expected "


def alternatives_faults(tried: Sequence[list[ValidationError]], value: Any) -> Iterator[ValidationError]:
    """Yield the faults of the one alternative that may be meant, or one that tells of them all.

    Alternatives for another kind of value are not meant, nor those whose tag (a property with given values) is
    another.
    """
    fitting = [errors for errors in tried if not any(_of_another_kind(error) for error in errors)]
    if not fitting:
        names = dict.fromkeys(name for errors in tried for error in errors for name in _names(error))
        if names and all(any(_names(error) for error in errors) for errors in tried):
            # `type` still says it to an alternative further out.
            yield ValidationError(f"{_EXPECTED}{' or '.join(names)}, got {kind(value)}", validator="type")
            return
    likely = [errors for errors in fitting if not any(_is_tag(error) for error in errors)]
    meant = likely or fitting or list(tried)
    if len(meant) == 1:
        yield from meant[0]
        return
    nearest = min(meant, key=len)
    yield ValidationError(f"none of {len(tried)} alternatives fits; the nearest", context=nearest)


def _of_another_kind(error: ValidationError) -> bool:
    return error.validator == "type" and not error.relative_path


def _names(error: ValidationError) -> list[str]:
    """Return the kinds of value that an error says were expected in its place."""
    if not _of_another_kind(error) or not error.message.startswith(_EXPECTED):
        return []
    names: list[str] = error.message.removeprefix(_EXPECTED).rpartition(", got ")[0].split(" or ")
    return names


def _is_tag(error: ValidationError) -> bool:
    return error.validator in _TAGS and len(error.relative_path) == 1


class Matching:
    """Matches with patterns that `prepare` has put in Python's words."""

    def __init__(self, runs: Runs, maximum_text: int) -> None:
        self._runs = runs
        self._maximum_text = maximum_text

    def is_too_long(self, pattern: str, text: str) -> bool:
        """Tell whether matching might take too long."""
        known = self._runs.now.patterns.get(pattern)
        return len(text) > self._maximum_text and (known is None or known.repeats)

    def problem(self, pattern: str, text: str) -> str | None:
        """Return why a text does not match, None where it does."""
        if self.is_too_long(pattern, text):
            return f"too long for a pattern: {len(text)} characters, more than {self._maximum_text}"
        if re.search(pattern, text):
            return None
        known = self._runs.now.patterns.get(pattern)
        return f"expected a string that matches {known.written if known else pattern!r}"


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


_LABEL = r"[0-9A-Za-z](?:[0-9A-Za-z-]{0,61}[0-9A-Za-z])?"
_HOSTNAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_DURATION = re.compile(
    r"P(?:\d+W|(?=\d|T\d)(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:[.,]\d+)?S)?)?)"
)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_POINTER = re.compile(r"(?:/(?:[^/~]|~[01])*)*")
_RELATIVE_POINTER = re.compile(rf"(?:0|[1-9]\d*)(?:#|{_POINTER.pattern})")
_TEMPLATE = re.compile(r"(?:[^{}\s]|\{[^{}\s]+\})*")
_NOT_IN_URI = re.compile(r"[^!-~]|[\"<>\\^`{|}]|%(?![0-9A-Fa-f]{2})")
_NOT_IN_IRI = re.compile(r"[\x00-\x20\x7f\"<>\\^`{|}]|%(?![0-9A-Fa-f]{2})")


def _parsed(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except (ValueError, ArithmeticError):
            return False
        return True

    return check


def _matched(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


def _email(text: str) -> bool:
    local, _, host = text.rpartition("@")
    return 0 < len(local) <= 64 and not re.search(r"\s", local) and bool(re.fullmatch(r"[^\s@]+", host))


def _is_reference(text: str, strange: re.Pattern[str], *, whole: bool) -> bool:
    if strange.search(text):
        return False
    try:
        scheme = urlsplit(text).scheme
    except ValueError:
        return False
    return bool(scheme) or not whole


FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date": _parsed(date.fromisoformat),
    "date-time": _parsed(datetime.fromisoformat),
    "decimal": _parsed(Decimal),
    "duration": _matched(_DURATION),
    "email": lambda text: text.isascii() and _email(text),
    "hostname": _matched(_HOSTNAME),
    "idn-email": _email,
    "idn-hostname": _parsed(lambda text: text.encode("idna") or 1 / 0),
    "ipv4": _parsed(ipaddress.IPv4Address),
    "ipv6": lambda text: "%" not in text and _parsed(ipaddress.IPv6Address)(text),
    "iri": lambda text: _is_reference(text, _NOT_IN_IRI, whole=True),
    "iri-reference": lambda text: _is_reference(text, _NOT_IN_IRI, whole=False),
    "json-pointer": _matched(_POINTER),
    "regex": _parsed(read_pattern),
    "relative-json-pointer": _matched(_RELATIVE_POINTER),
    "time": _parsed(time.fromisoformat),
    "uri": lambda text: _is_reference(text, _NOT_IN_URI, whole=True),
    "uri-reference": lambda text: _is_reference(text, _NOT_IN_URI, whole=False),
    "uri-template": _matched(_TEMPLATE),
    "uuid": _matched(_UUID),
}


class Dialect:
    """Compiles schemas, all by one class of the vendor's with keywords of ours."""

    def __init__(self, settings: JsonschemaSettings) -> None:
        self._settings = settings
        self._runs = Runs()
        self._annotations = frozenset(settings.annotations)
        self._formats = FORMATS if settings.formats else None
        own = keywords(Draft202012Validator.VALIDATORS, self._runs, self._formats, settings.maximum_pattern_text)
        self._kind: Any = extend(Draft202012Validator, own)

    def compile(self, schema: Any) -> Callable[[Any], list[str]]:
        """Return what checks values against a schema, which must be a copy of the caller's own."""
        prepared = prepare(schema, self._annotations, self._formats)
        runs, limit = self._runs, self._settings.maximum_steps
        validator = self._kind(prepared.schema, registry=META)

        def validate(value: Any) -> list[str]:
            # What a dynamic reference means depends on the way to it, so that nothing may be taken as known.
            runs.now = Run(limit, None if prepared.dynamic else {}, prepared.patterns)
            try:
                told = (sentence for error in validator.iter_errors(value) for sentence in _sentences(error))
                return list(dict.fromkeys(told))
            except RecursionError:
                return ["$: nested too deeply to be checked"]
            except TooMuch:
                return [f"$: too large or too entangled to be checked: it takes more than {limit:,} steps"]
            finally:
                del runs.now

        return validate


def _sentences(error: ValidationError) -> Iterator[str]:
    where = Fault.place(list(error.absolute_path))
    if error.context:
        inner = "; ".join(sentence for child in error.context for sentence in _sentences(child))
        yield f"{where}: {error.message}: {inner}"
    else:
        yield f"{where}: {error.message}"
