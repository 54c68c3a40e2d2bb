"""What a page asks for: values, operators and days that the service understands, and nothing else."""

from __future__ import annotations

from datetime import UTC, date, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico._plugins.registration import ValueForm
from portico._search.filters import And, AnyOf, Equal, Filter, FilterSupport, Not, Range, split_filter
from portico._search.results import SearchCapabilities
from portico._search.web import AskedPage, FoundPage
from portico.errors import UnsupportedOption

TWO = ValueForm("..", "two letters")


def page(filter: Filter | None = None, query: str = "door", **more: Any) -> AskedPage:
    return AskedPage(query, 0, 10, 0, split_filter(filter), source="Text search 'acme'", **more)


def test_a_value_is_the_filters_or_the_default() -> None:
    asked = page(AnyOf("site", ("a.example", "b.example")))
    assert asked.value("site") == "a.example"
    assert asked.values("site") == ("a.example", "b.example")
    assert (asked.value("language"), asked.value("language", "en"), asked.values("language")) == (None, "en", ())


@pytest.mark.parametrize("value", ["weekly", "", "day|week", 7, True])
def test_a_value_that_the_service_does_not_know_is_refused_with_those_it_knows(value: Any) -> None:
    asked = page(Equal("age", value))
    for read in (asked.value, asked.values):
        with pytest.raises(UnsupportedOption, match=r"Text search 'acme'.*'age'.*'day' or 'week'"):
            read("age", form=ValueForm.one_of("day", "week"))


def test_a_setting_is_what_the_filter_does_not_say() -> None:
    settings = SimpleNamespace(country="US", language="en")
    asked = page(Equal("country", "DE"))
    assert asked.chosen(settings, country=TWO, language=TWO, age=ValueForm(".+", "anything")) == {
        "country": "DE",
        "language": "en",
        "age": None,
    }
    with pytest.raises(UnsupportedOption, match=r"'Germany' for 'country'\. It takes two letters\."):
        page(Equal("country", "Germany")).chosen(settings, country=TWO)


DAYS = st.dates(date(1990, 1, 1), date(2090, 1, 1))
BOUNDS = st.sampled_from(["at_least", "above", "at_most", "below"])


@given(st.dictionaries(BOUNDS, DAYS, min_size=1), DAYS)
def test_the_days_that_are_left_are_those_that_the_range_keeps(bounds: dict[str, date], day: date) -> None:
    filter = Range("date", **{bound: edge.isoformat() for bound, edge in bounds.items()})
    try:
        first, last = page(filter).days("date")
    except UnsupportedOption:
        assert not FilterSupport.matches(filter, {"date": day.isoformat()})
        return
    kept = (first is None or first <= day) and (last is None or day <= last)
    assert kept == FilterSupport.matches(filter, {"date": day.isoformat()})


@pytest.mark.parametrize("value", ["soon", "2026", "2026-02-30", "01/02/2026", 2026, 1.5, "9999-12-31", ""])
def test_what_is_no_day_is_refused_with_an_example(value: Any) -> None:
    with pytest.raises(UnsupportedOption, match="'2026-01-31'"):
        page(Range("date", above=value)).days("date")


def test_two_ways_to_say_when_are_refused_together_and_fine_alone() -> None:
    both = page(And((Equal("age", "week"), Range("date", at_least="2026-01-01"))))
    with pytest.raises(UnsupportedOption, match=r"Text search 'acme' filters by 'date' or by 'age', not by both"):
        both.days("date", instead_of="age")
    assert page(Equal("age", "week")).period("date", "{}", instead_of="age") is None


def test_a_period_has_two_ends_whatever_the_range() -> None:
    today = datetime.now(UTC).date()
    assert page().period("date", "{}to{}") is None
    assert page(Range("date", at_most="2026-01-31")).period("date", "{}..{}") == "1970-01-01..2026-01-31"
    assert page(Range("date", above="2026-01-31")).period("date", "{}to{}") in {
        f"2026-02-01to{today}",
        f"2026-02-01to{datetime.now(UTC).date()}",
    }
    assert page(Range("date", at_least="2999-01-01")).period("date", "{}to{}") == "2999-01-01to2999-01-01"


def test_operators_come_after_the_query() -> None:
    asked = page(And((Equal("site", "a.example"), Equal("intitle", "two words"))))
    assert asked.query_with("site", "intitle", "other") == 'door site:a.example intitle:"two words"'
    assert page().query_with("site") == "door"


def test_what_the_filter_leaves_out_is_an_operator_with_a_minus() -> None:
    asked = split_filter(And((Equal("site", "a.example"), Not(AnyOf("language", ("en", "-x"))))))
    assert AskedPage("door", 0, 10, 0, asked).query_with("site") == 'door site:a.example -language:en -language:"-x"'
    assert AskedPage("door -", 0, 10, 0, split_filter(Not(Equal("site", "b")))).query_with() == "door -site:b"


@pytest.mark.parametrize("query", ["cats OR dogs", "cats |", 'say "door', "door NOT", "door -", "cats | dogs"])
def test_a_query_cannot_reach_over_the_operators_of_a_filter(query: str) -> None:
    written = page(Equal("site", "a.example"), query).query_with("site")
    before, _, after = written.rpartition(" ")
    assert after == "site:a.example"
    assert " OR " not in written
    assert "|" not in written
    assert before.count('"') % 2 == 0
    assert before.split()[-1] not in {"NOT", "-"}


def test_the_limits_of_a_query_hold_with_its_operators() -> None:
    ten, two = SearchCapabilities(query_characters=10), SearchCapabilities(query_words=2)
    assert page(query="x" * 10, capabilities=ten).query_with("site") == "x" * 10
    with pytest.raises(UnsupportedOption, match=r"'acme'.*10 characters.*25"):
        page(Equal("site", "a.example"), "x" * 10, capabilities=ten).query_with("site")
    with pytest.raises(UnsupportedOption, match=r"2 words.*3"):
        page(Equal("site", "a.example"), "a b", capabilities=two).query_with("site")


@pytest.mark.parametrize("count", ["7", 7.0, True, [7]])
def test_a_count_is_a_whole_number(count: Any) -> None:
    with pytest.raises(TypeError, match="total_count"):
        FoundPage([], total_count=count)


@pytest.mark.fuzz
@given(st.text(max_size=20))
def test_an_operator_is_one_value_whatever_the_value(value: str) -> None:
    operator = page(Equal("site", value), "").query_with("site")
    name, _, quoted = operator.partition(":")
    assert name == "site"
    plain = not set(quoted) & set(" \t\n\"'()|") and not quoted.startswith("-")
    in_quotes = quoted[0] == quoted[-1] == '"' and '"' not in quoted[1:-1] and len(quoted) >= 2
    assert plain or in_quotes, operator
    operator.encode()
