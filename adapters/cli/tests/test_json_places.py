"""Where the values of a JSON text stand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico_cli.plan_files import JsonPlaces

VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> Any:
    yield path, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, each in inner:
        yield from paths(each, (*path, part))


@given(value=VALUES, indent=st.sampled_from([None, 0, 2]), ascii=st.booleans())
def test_every_value_is_where_its_place_says(value: Any, indent: int | None, ascii: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii)
    places = JsonPlaces(text)
    lines = text.split("\n")
    for path, inner in paths(value):
        line, column = places.of(path)
        rest = "\n".join([lines[line - 1][column - 1 :], *lines[line:]])
        decoded, _ = json.JSONDecoder().raw_decode(rest)
        assert decoded == inner, f"{path} is not at line {line}, column {column}"


PLAN = """{"steps": [
 {"id": "a.b", "arguments": {
   "x.y": {"list": [{"value": 1},
     {"value": 2}]}}},
 {"id": "s2", "function": {"steps": [
   {"id": "inner", "arguments": {"q": {"value": 3}}}]}}],
 "result": {"from": "s1"}}"""


@pytest.mark.parametrize(
    ("step", "place", "line"),
    [
        ("a.b", "arguments.x.y", 3),
        ("a.b", "arguments.x.y.list[1]", 4),
        ("s2", "inner arguments.q", 6),
        ("s2/inner", "arguments.q", 6),
        (None, "result", 7),
        ("a.b", "after", 2),
        ("nowhere", "nothing", 1),
    ],
)
def test_a_finding_is_found_or_what_it_would_be_in(step: str | None, place: str, line: int) -> None:
    assert JsonPlaces(PLAN).of_finding(step, place)[0] == line
