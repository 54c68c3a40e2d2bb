"""What is written can be read again: an independent reader of each style gets the value back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import assume, example, given, strategies as st

from portico_openapi import _styles
from portico_openapi._bodies import write_form

# A value as text: single values lose their kind on the wire, so their text is what must come back.
WORDS = st.text(max_size=8)
FILLED = st.text(min_size=1, max_size=8)
SINGLES = WORDS | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
ARRAYS = st.lists(SINGLES, min_size=1, max_size=4)
OBJECTS = st.dictionaries(FILLED, SINGLES, min_size=1, max_size=4)


def text_of(value: Any) -> Any:
    """Return what stands on the wire for a single value, as OpenAPI has it."""
    if isinstance(value, list):
        return [text_of(part) for part in value]
    if isinstance(value, dict):
        return {key: text_of(part) for key, part in value.items()}
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(int(value) if float(value).is_integer() and abs(value) < 2**53 else value)


def is_writable(value: Any) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in json.dumps(value, ensure_ascii=False))


def pairs(parts: list[str]) -> dict[str, str]:
    return dict(zip(map(unquote, parts[::2]), map(unquote, parts[1::2]), strict=True))


def equations(parts: list[str]) -> dict[str, str]:
    return {unquote(key): unquote(value) for key, _, value in (part.partition("=") for part in parts)}


def read_list(text: str, delimiter: str) -> list[str]:
    return [unquote(part) for part in text.split(delimiter)]


PathReader = Callable[[str], Any]
PATHS: Mapping[tuple[str, bool, str], PathReader] = {
    ("simple", False, "array"): lambda text: read_list(text, ","),
    ("simple", True, "array"): lambda text: read_list(text, ","),
    ("simple", False, "object"): lambda text: pairs(text.split(",")),
    ("simple", True, "object"): lambda text: equations(text.split(",")),
    ("simple", False, "single"): unquote,
}
VALUES = {"single": SINGLES, "array": ARRAYS, "object": OBJECTS}


@pytest.mark.parametrize(("style", "explode", "kind"), PATHS)
@given(data=st.data())
def test_in_a_path(style, explode, kind, data):
    value = data.draw(VALUES[kind].filter(is_writable))
    written = _styles.simple(value, explode=explode)
    assert written.isascii()
    assert not set(written) & set("/?#[]@ "), "it would end its segment"
    assert PATHS[style, explode, kind](written) == text_of(value)


def split(written: list[str]) -> list[tuple[str, str]]:
    """Read a query as servers do that know nothing of styles."""
    return [(unquote(key), unquote(value)) for key, _, value in (part.partition("=") for part in written)]


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("style", ["form", "spaceDelimited", "pipeDelimited"])
@given(data=st.data())
def test_exploded_in_a_query(style, kind, data):
    value = data.draw(VALUES[kind].filter(is_writable))
    written = _styles.query(style, "näme&=", value, explode=True)
    assert not set("".join(written)) & set("&# +"), "it would end its parameter"
    read = split(written)
    expected = text_of(value)
    if kind == "object":
        assert dict(read) == expected
    else:
        assert {key for key, _ in read} == {"näme&="}
        assert [text for _, text in read] == (expected if kind == "array" else [expected])
    assert parse_qsl("&".join(written), keep_blank_values=True) == read, "a form's reader reads something else"


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize(("style", "delimiter"), [("form", ","), ("spaceDelimited", "%20"), ("pipeDelimited", "%7C")])
@given(data=st.data())
def test_joined_in_a_query(style, delimiter, kind, data):
    # What delimits cannot be told from what is delimited: such styles are not invertible for it.
    letter = unquote(delimiter)
    value = data.draw(VALUES[kind].filter(is_writable))
    told = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assume(style == "form" or kind == "single" or letter not in told)
    (written,) = _styles.query(style, "n", value, explode=False)
    assert not set(written) & set("&# +")
    text = written.removeprefix("n=")
    if kind == "single":
        assert unquote(text) == text_of(value)
    elif kind == "array":
        assert read_list(text, delimiter) == text_of(value)
    else:
        assert pairs(text.split(delimiter)) == text_of(value)


NESTED = st.recursive(
    SINGLES, lambda inner: st.dictionaries(st.text("abcü", min_size=1, max_size=3), inner, min_size=1, max_size=3)
)


@given(NESTED.filter(lambda value: isinstance(value, dict)).filter(is_writable))
def test_deep_objects(value):
    read: dict[str, Any] = {}
    for name, text in split(_styles.query("deepObject", "n", value, explode=True)):
        assert name.startswith("n[")
        *outer, last = name[2:-1].split("][")
        place = read
        for key in outer:
            place = place.setdefault(key, {})
        place[last] = text
    assert read == text_of(value)


@pytest.mark.parametrize("explode", [True, False])
@given(data=st.data())
def test_in_a_cookie(explode, data):
    value = data.draw((ARRAYS | OBJECTS | SINGLES).filter(is_writable))
    written = _styles.query("form", "n", value, explode=explode)
    for one in written:
        assert one.isascii()
        assert not set(one) & set('; "\\\r\n'), "it would end its cookie"
    if explode and isinstance(value, dict):
        assert equations(written) == text_of(value)
    elif explode and isinstance(value, list):
        assert [unquote(one.removeprefix("n=")) for one in written] == text_of(value)


@given(st.dictionaries(FILLED, SINGLES | ARRAYS, max_size=4).filter(is_writable))
@example({"a": "~*-._ +&=%\r\n"})
def test_forms(value):
    read: dict[str, list[str]] = {}
    for name, text in parse_qsl(write_form(value, {}).decode("ascii"), keep_blank_values=True):
        read.setdefault(name, []).append(text)
    assert read == {name: text_of(part) if isinstance(part, list) else [text_of(part)] for name, part in value.items()}


@given(WORDS.filter(is_writable))
def test_reserved_characters_stay_inside_their_parameter(value):
    (written,) = _styles.query("form", "n", value, explode=True, reserved=True)
    assert not set(written) & set("&#+ []")
    if "%" not in value:
        assert unquote(written.removeprefix("n=")) == value
