"""The words that functions are compared by: inside of names, in any script, and never a crash."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico._functions.functions import FunctionSpec
from portico._selection.words import spaced, words
from portico_basics.contextual.lexical import function_text


@given(st.text())
def test_any_text_has_words_that_are_not_blank_and_the_same_each_time(text: str) -> None:
    found = words(text)
    assert found == words(text)
    assert all(word and not word.isspace() for word in found)


@given(st.lists(st.text(), max_size=5))
def test_texts_side_by_side_have_the_words_of_each(texts: list[str]) -> None:
    assert words("\n".join(texts)) == [word for text in texts for word in words(text)]


@given(st.text(alphabet="abcDEF ,._-é", max_size=30))
def test_case_counts_only_where_a_name_has_humps(text: str) -> None:
    assert words(text.lower()) == words(text.lower().upper())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserById", ["get", "user", "by", "id"]),
        ("snake_case-and.dots", ["snake", "case", "and", "dot"]),
        ("HTTPServer openURLs", ["http", "server", "open", "url"]),
        ("Cities, boxes and movies; the address of a bus", "city box and movy the address of a bus"),
        ("a city, one box, a movie, some addresses", "a city one box a movy some address"),
        ("this status is chess", "this status is chess"),
        ("Café ZÜRICH Straße", ["cafe", "zurich", "strasse"]),
        ("textÜbersetzen", ["text", "ubersetzen"]),
        ("天气预报 API", ["天气", "气预", "预报", "api"]),
        ("查X", ["查", "x"]),
        ("날씨가", ["날씨", "씨가"]),
        ("मौसम की जानकारी।", ["मौसम", "की", "जानकारी"]),
        ("السَّلَام", ["السلام"]),
        ("", []),
        ("?! \ud800", []),
    ],
)
def test_words_of(text: str, expected: list[str] | str) -> None:
    assert words(text) == (expected.split() if isinstance(expected, str) else expected)


def test_forms_of_one_english_noun_are_one_word() -> None:
    for one, many in (
        ("city", "cities"),
        ("movie", "movies"),
        ("box", "boxes"),
        ("date", "dates"),
        ("class", "classes"),
    ):
        assert words(one) == words(many), f"{one} and {many}"


@given(st.from_regex(r"[A-Za-z0-9_.-]{0,20}", fullmatch=True))
def test_a_name_spaced_has_the_same_words(name: str) -> None:
    assert words(spaced(name)) == words(name)


def test_a_functions_text_is_its_name_description_and_parameters() -> None:
    properties = {"toCity": {"description": "Where to."}, "day": {"type": "string"}, "odd": True}
    spec = FunctionSpec("Travel-findFlights", "Find flights.", {"type": "object", "properties": properties}, {})
    assert function_text(spec) == ("Travel find Flights. Travel find Flights. Find flights. to City: Where to. day odd")


@pytest.mark.parametrize("parameters", [{}, {"properties": None}, {"properties": []}, {"properties": {"a": None}}])
def test_a_schema_that_is_no_schema_of_an_object_is_no_error(parameters: dict[str, Any]) -> None:
    assert function_text(FunctionSpec("f", "", parameters, {})).startswith("f. f.")
