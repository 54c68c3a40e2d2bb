"""A JSON text read piece by piece shows what has come, and ends as the value that it is."""

from __future__ import annotations

import gc
import json
import time
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico._tool_loop.partial_json import NOTHING, PartialJson

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def pieces_of(text: str, cuts: list[int]) -> list[str]:
    places = sorted({min(cut, len(text)) for cut in cuts})
    return [text[start:stop] for start, stop in zip([0, *places], [*places, len(text)], strict=True)]


def is_beginning(part: Any, whole: Any) -> bool:
    """Tell whether a partial value may grow into the whole one."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return list(part) == list(whole)[: len(part)] and all(is_beginning(part[key], whole[key]) for key in part)
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(is_beginning, part, whole))
    if isinstance(part, str) and isinstance(whole, str):
        return whole.startswith(part)
    return type(part) is type(whole) and part == whole


@given(VALUES, st.lists(st.integers(0, 200), max_size=30), st.booleans(), st.sampled_from([None, 1]))
def test_any_value_in_any_pieces_is_read_as_json_reads_it(value, cuts, ascii_only, indent):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    reader = PartialJson()
    for piece in pieces_of(text, cuts):
        part = reader.feed(piece)
        # A lone half of a pair may still become one with what follows.
        assert part is NOTHING or ascii_only or is_beginning(part, value), f"after {piece!r}: {part!r}"
    value = reader.feed(" " * (len(text) // 64 + 1))
    assert value == json.loads(text)
    assert repr(value) == repr(json.loads(text)), "1, 1.0 and true are told apart"
    assert reader.complete


@given(st.text(alphabet='{}[]",:\\u0123dD8c/n truefalsn.-e ', max_size=60), st.lists(st.integers(0, 60), max_size=10))
def test_what_is_no_json_raises_value_error_or_shows_no_whole_value(text, cuts):
    reader = PartialJson()
    try:
        for piece in pieces_of(text, cuts):
            reader.feed(piece)
        value = reader.feed(" ")
    except ValueError:
        with pytest.raises(ValueError):
            json.loads(text, parse_constant=_refuse)
        return
    if reader.complete:
        assert value == json.loads(text, strict=False)


def _refuse(text: str) -> None:
    raise ValueError(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", NOTHING),
        ('"', ""),
        ('{"a', {}),
        ('{"a":', {}),
        ('{"a": tr', {}),
        ('{"a": 12', {}),
        ('{"a": 12 ', {"a": 12}),
        ('{"a": "x\\', {"a": "x"}),
        ('{"a": "x\\u00e', {"a": "x"}),
        ('{"a": "x\\ud83d', {"a": "x"}),
        ('{"a": "x\\ud83d\\ude00', {"a": "x\N{GRINNING FACE}"}),
        ('[["a"], ["b', [["a"], ["b"]]),
        ('["a", "', ["a", ""]),
    ],
)
def test_what_has_come_is_shown(text, shown):
    whole, letters = PartialJson(), PartialJson()
    assert whole.feed(text) == shown
    for letter in text:
        letters.feed(letter)
    assert letters.feed("") == shown


@pytest.mark.parametrize("text", ["{1:", '{"a" 1 ', "[1 2 ", "[1}", "]", "nul ", '"\\x"', '"\\uzzzz"', "1 2"])
def test_what_can_be_no_json_any_more_is_refused(text):
    with pytest.raises(ValueError):
        PartialJson().feed(text)


def test_words_around_the_value_are_passed_over_when_asked():
    reader = PartialJson(search=True)
    assert reader.feed("Here you are:\n```json\n") is NOTHING
    assert reader.feed('{"a": [1, 2]}') == {"a": [1, 2]}
    assert reader.feed("\n```\nThat is {all}.") == {"a": [1, 2]}


def test_nesting_is_bounded():
    with pytest.raises(ValueError, match="200 levels"):
        PartialJson().feed("[" * 201)


def test_time_is_linear_in_the_text():
    def seconds(count: int) -> float:
        text = json.dumps([{"name": "x" * 20, "values": [1, 2, 3]}] * count)
        reader = PartialJson()
        gc.disable()  # The objects of all other tests would be looked through.
        try:
            started = time.process_time()
            for start in range(0, len(text), 16):
                reader.feed(text[start : start + 16])
            return time.process_time() - started
        finally:
            gc.enable()

    # Ten times the text may take thirty times as long, and would take 100 times where time is quadratic. Five
    # tries, since a machine may be busy.
    seconds(100)
    assert any(seconds(2_000) < 30 * seconds(200) + 0.1 for _ in range(5)), "time is not linear in the text"


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        ' {"a": 1}\n',
        'Sure!\n```json\n{"a": 1}\n```',
        'I [think] it is {"a": 1}, you see.',
        '{"a": 1} {"b": 2}',
    ],
)
def test_the_json_of_a_talkative_reply_is_found(text):
    assert next(PartialJson.values_in(text)) == {"a": 1}


@pytest.mark.parametrize("text", ["", "no", "{", "[1, 2", "{" * 1000])
def test_a_reply_without_json_is_refused(text):
    with pytest.raises(ValueError):
        next(PartialJson.values_in(text))
