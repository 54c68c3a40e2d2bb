"""Strings that PostgreSQL's text cannot hold are stored in a form that gives them back, and keeps their order."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from portico_postgres._metadata import LONGEST_KEY, escape, key, unescape
from portico_postgres.vector_store import asked_words, searched_words

# Half surrogates too, which `st.text` leaves out by itself, and often what is escaped.
strings = st.text(st.characters(codec=None) | st.sampled_from("\x00\x01\x02\ud800\udfff\ud7ff\ue000\ue001\uf000"))


@pytest.mark.fuzz
@given(strings)
def test_a_string_comes_back(text: str) -> None:
    assert unescape(escape(text)) == text


@pytest.mark.fuzz
@given(strings)
def test_what_is_stored_is_text_for_postgresql(text: str) -> None:
    form = escape(text)
    assert "\x00" not in form
    form.encode()


@pytest.mark.fuzz
@given(strings, strings)
def test_the_order_of_code_points_is_kept(one: str, other: str) -> None:
    assert (one < other) == (escape(one).encode() < escape(other).encode())
    assert (one == other) == (escape(one) == escape(other))


@given(st.text(max_size=3).map(lambda text: text * 700))
def test_a_key_is_as_long_as_the_index_takes(text: str) -> None:
    size = len(escape(text).encode())
    if size <= LONGEST_KEY:
        assert key(text, "the id") == escape(text)
    else:
        with pytest.raises(ValueError, match=f"the id .* has {size} bytes"):
            key(text, "the id")


@pytest.mark.fuzz
@given(strings)
def test_words_are_letters_and_digits_only(text: str) -> None:
    for word in searched_words(text):
        assert word.isalnum()
        word.encode()
    assert len(asked_words(text)) <= 64


def test_identifiers_are_known_by_their_parts_too() -> None:
    assert searched_words("parseHTTPServer v2Beta plain UPPER") == [
        *("parseHTTPServer", "v2Beta", "plain", "UPPER"),
        *("parse", "HTTP", "Server", "v2", "Beta"),
    ]
