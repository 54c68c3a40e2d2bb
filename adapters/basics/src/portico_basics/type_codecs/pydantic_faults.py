"""What pydantic says of a value, as faults with core's paths and words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from portico.plugins import Fault
from portico_basics.type_codecs._faults import got, line

Path: TypeAlias = tuple[str | int, ...]

_EXPECTED: Mapping[str, str] = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_parsing": "an integer",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "none_required": "null",
    "list_type": "an array",
    "tuple_type": "an array",
    "set_type": "an array",
    "frozen_set_type": "an array",
    "iterable_type": "an array",
    "dict_type": "an object",
    "mapping_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dataclass_type": "an object",
    "date_type": "a date (ISO 8601)",
    "date_parsing": "a date (ISO 8601)",
    "date_from_datetime_parsing": "a date (ISO 8601)",
    "time_type": "a time of day (ISO 8601)",
    "time_parsing": "a time of day (ISO 8601)",
    "datetime_type": "a date and time (ISO 8601)",
    "datetime_parsing": "a date and time (ISO 8601)",
    "datetime_from_date_parsing": "a date and time (ISO 8601)",
    "time_delta_type": "a duration (ISO 8601)",
    "time_delta_parsing": "a duration (ISO 8601)",
    "uuid_type": "a UUID",
    "uuid_parsing": "a UUID",
    "decimal_type": "a decimal number",
    "decimal_parsing": "a decimal number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "multiple_of": "a multiple of {multiple_of}",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
    "string_pattern_mismatch": "a text that matches {pattern!r}",
    "too_short": "at least {min_length} elements",
    "too_long": "at most {max_length} elements",
    "literal_error": "{expected}",
    "enum": "{expected}",
}
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_WAYS = 64
_OWN = ("value_error", "assertion_error")


@dataclass(frozen=True, slots=True)
class Located:
    """One of pydantic's errors with its path into the JSON value.

    ``choices`` are the members of unions on the way: the path where each stands, and pydantic's label of it.
    """

    path: Path
    error: Mapping[str, Any]
    choices: tuple[tuple[Path, str], ...] = ()


def located(value: Any, errors: Sequence[Mapping[str, Any]]) -> list[Located]:
    """Find the path of each error: pydantic's own places hold labels of unions and other words too."""
    return [_located(value, error) for error in errors]


def _located(value: Any, error: Mapping[str, Any]) -> Located:
    place = error["loc"]
    if place[-1:] == ("[key]",):
        # The key of an object, not what stands under it.
        way, last, wanted = place[:-2], place[-2:-1], None
    elif error["type"].startswith("missing"):
        way, last, wanted = place[:-1], place[-1:], error["input"]
    else:
        way, last, wanted = place, (), error["input"]
    for path, choices, reached in _ways(value, way):
        if (wanted is None and last and last[0] in reached) or _equal(reached, wanted):
            return Located((*path, *last), error, choices)
    return Located((), error)


def _ways(value: Any, place: Sequence[str | int]) -> list[tuple[Path, tuple[tuple[Path, str], ...], Any]]:
    """Return the ways of reading a place: a word may be a key, or the label of a union's member."""
    ways: list[tuple[Path, tuple[tuple[Path, str], ...], Any]] = [((), (), value)]
    for step in place:
        longer = []
        for path, choices, reached in ways:
            if _leads(reached, step):
                longer.append(((*path, step), choices, reached[step]))
            if isinstance(step, str):
                longer.append((path, (*choices, (path, step)), reached))
        ways = longer[:_WAYS]
    return ways


def _leads(value: Any, step: str | int) -> bool:
    if isinstance(value, dict):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value)


def _equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def faults_of(found: Sequence[Located], name: str, schema: Mapping[str, Any]) -> list[Fault]:
    """Turn errors into faults: of a union's members the one most likely meant, or what all would have taken."""
    faults: dict[Fault, None] = {}
    kept = _most_likely(found)
    for each in kept:
        same = [other for other in kept if other.path == each.path and other.choices]
        fault = _fault(each, name, schema)
        if len(same) > 1 and each in same:
            expected = dict.fromkeys(_fault(other, name, schema).expected for other in same)
            fault = Fault(fault.path, " or ".join(expected), fault.got)
        faults[fault] = None
    return list(faults)


def _most_likely(found: Sequence[Located]) -> list[Located]:
    """Leave out what was found wrong with members of a union that no one meant."""
    kept = list(found)
    for where in dict.fromkeys(where for each in found for where, _ in each.choices):
        by_label: dict[str, list[Located]] = {}
        for each in kept:
            label = next((label for place, label in each.choices if place == where), None)
            if label is not None:
                by_label.setdefault(label, []).append(each)
        deeper = {label: group for label, group in by_label.items() if all(each.path != where for each in group)}
        if deeper:
            best = min(deeper.values(), key=_strangeness)
            losers = [each for group in by_label.values() if group is not best for each in group]
            kept = [each for each in kept if each not in losers]
    return kept


def _strangeness(group: Sequence[Located]) -> tuple[int, int]:
    """Rate a union's member: wrong tags and unknown keys say most that another was meant."""
    telling = ("literal_error", *_UNKNOWN)
    return sum(each.error["type"] in telling for each in group), len(group)


def _fault(each: Located, name: str, schema: Mapping[str, Any]) -> Fault:
    kind, error = each.error["type"], each.error
    context = error.get("ctx", {})
    if kind.startswith("missing"):
        return Fault(each.path, "a value", "nothing")
    if kind in _UNKNOWN:
        known = ", ".join(_keys(schema, each.path[:-1]))
        return Fault(each.path, f"one of {known or 'no keys'}", "an unknown key")
    if kind.startswith("union_tag"):
        key = str(context.get("discriminator", "")).strip("'")
        wanted = context.get("expected_tags")
        told = got(error["input"].get(key)) if "tag" in context and isinstance(error["input"], dict) else "nothing"
        return Fault((*each.path, key), f"one of {wanted}" if wanted else "a value", told)
    if kind in _OWN:
        return Fault(each.path, f"a valid {_noun(each.path, name)}", line(str(context.get("error", error["msg"]))))
    expected = _EXPECTED.get(kind)
    if expected is not None:
        said = re.sub(r"\b1 (character|element)s$", r"1 \1", expected.format_map(_Shown(context)))
        is_key = error["loc"][-1:] == ("[key]",)
        return Fault(each.path, f"a key that is {said}" if is_key else said, got(error["input"]))
    sentence = line(str(error["msg"]))
    wanted = re.fullmatch(r"(\w+) should (be|have) (.+)", sentence)
    if wanted is None:
        return Fault(each.path, f"a valid {_noun(each.path, name)}", sentence)
    noun, verb, what = wanted.groups()
    if noun == "Input" and verb == "be":
        return Fault(each.path, what, got(error["input"]))
    thing = {"Input": "value", "URL": "URL"}.get(noun, noun.lower())
    return Fault(each.path, f"a {thing} {what if verb == 'be' else f'with {what}'}", got(error["input"]))


class _Shown(dict[str, Any]):
    """Context of an error for a sentence; what a later pydantic no longer gives is a question mark."""

    def __missing__(self, key: str) -> str:
        return "?"


def _noun(path: Path, name: str) -> str:
    last = path[-1] if path else None
    return last if isinstance(last, str) else "element" if last is not None else name


def _keys(root: Mapping[str, Any], path: Path) -> list[str]:
    """Return the keys that a schema has for the object at a path."""
    there = _alternatives(root, root)
    for step in path:
        inside: list[Any] = []
        for schema in there:
            if isinstance(step, int):
                first = schema.get("prefixItems", ())
                inside.append(first[step] if step < len(first) else schema.get("items"))
            else:
                inside.append(schema.get("properties", {}).get(step, schema.get("additionalProperties")))
        there = [found for schema in inside for found in _alternatives(root, schema)]
    return list(dict.fromkeys(key for schema in there for key in schema.get("properties", ())))


def _alternatives(root: Mapping[str, Any], schema: Any) -> list[Mapping[str, Any]]:
    """Follow references and unions to what a value may be."""
    if not isinstance(schema, Mapping):
        return []
    reference = schema.get("$ref")
    if reference is not None:
        return _alternatives(root, root.get("$defs", {}).get(reference.removeprefix("#/$defs/")))
    if "anyOf" in schema:
        return [found for option in schema["anyOf"] for found in _alternatives(root, option)]
    return [schema]
