"""JSON as models write it: Python's words and quotes, bare line breaks, a last comma; strict JSON is read as ever."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico._schema.values import parse_json, read_json

TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\"'\\\n\t ,]}{[:"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


def last_commas(value: Any) -> str:
    """Write JSON with a comma after the last element of everything that has one."""
    match value:
        case dict() if value:
            return "{" + "".join(f"{json.dumps(key)}: {last_commas(each)}," for key, each in value.items()) + "\n}"
        case list() if value:
            return "[" + "".join(f"{last_commas(each)}," for each in value) + " ]"
    return json.dumps(value)


def bare_lines(value: Any) -> str:
    r"""Write JSON with line breaks and tabs in texts as they are, not as ``\n``."""
    match value:
        case dict():
            return "{" + ",".join(f"{bare_lines(key)}: {bare_lines(each)}" for key, each in value.items()) + "}"
        case list():
            return "[" + ",".join(map(bare_lines, value)) + "]"
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return json.dumps(value)


@pytest.mark.parametrize("write", [repr, last_commas, bare_lines])
@given(value=VALUES)
def test_a_value_is_read_as_python_writes_it_with_bare_line_breaks_and_with_last_commas(write: Any, value: Any) -> None:
    text = write(value)
    assert json.dumps(read_json(text)) == json.dumps(value)


@pytest.mark.parametrize("write", [repr, last_commas, bare_lines, json.dumps])
@given(value=st.dictionaries(TEXTS, VALUES), after=st.text())
def test_the_value_with_which_a_text_begins_is_read_whatever_follows(write: Any, value: Any, after: str) -> None:
    assert json.dumps(read_json(f"\n {write(value)}{after}", more=True)) == json.dumps(value)


@given(value=VALUES, indent=st.none() | st.integers(0, 2), escaped=st.booleans())
def test_strict_json_reads_as_strict_json(value: Any, indent: int | None, escaped: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=escaped)
    assert json.dumps(read_json(text)) == json.dumps(parse_json(text)) == json.dumps(value)


@given(text=st.text("{}[]\"'\\,: x1Truen\n"))
def test_no_text_crashes_the_reader_and_no_half_text_is_a_value(text: str) -> None:
    try:
        read_json("{'a': 'x" + text.replace("'", ""))
    except ValueError:
        return
    raise AssertionError(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "say "no" to it"}',
        "{'a': 'it's'}",
        "{'a': 1, 'a': 2}",
        "{True: 1}",
        "[,]",
        "[1,,]",
        "{'a': nan}",
        '{"a": NaN}',
        "{'a' 'b'}",
        "{'path': 'C:\\docs'}",
        r"['\UFFFFFFFF']",
        "forecast('Oslo')",
        "{'a': 1} {'a': 2}",
        "",
    ],
)
def test_what_has_no_reading_or_two_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_json(text)
