"""Filters: their meaning, and that no source is ever asked for what it cannot do."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.support.strategies import filters, records

from portico._search.filters import And, AnyOf, Equal, Filter, FilterSupport, Not, Or, Range
from portico.errors import UnsupportedOption


@given(filters(), filters(), records())
def test_combinations_mean_what_logic_says(left: Filter, right: Filter, record: dict[str, Any]) -> None:
    assert FilterSupport.matches(And((left, right)), record) == (
        FilterSupport.matches(left, record) and FilterSupport.matches(right, record)
    )
    assert FilterSupport.matches(Or((left, right)), record) == (
        FilterSupport.matches(left, record) or FilterSupport.matches(right, record)
    )
    assert FilterSupport.matches(Not(left), record) == (not FilterSupport.matches(left, record))
    assert FilterSupport.matches(Not(And((left, right))), record) == FilterSupport.matches(
        Or((Not(left), Not(right))), record
    )


@given(st.lists(st.sampled_from(["a", 1, True, 2.5]), max_size=3), records())
def test_any_of_is_one_of_several_equals(values: list[Any], record: dict[str, Any]) -> None:
    either = Or(tuple(Equal("topic", value) for value in values))
    assert FilterSupport.matches(AnyOf("topic", tuple(values)), record) == FilterSupport.matches(either, record)


@given(st.integers(0, 3), st.integers(0, 3), st.integers(-1, 4))
def test_a_range_means_its_bounds(low: int, high: int, value: int) -> None:
    record = {"year": value}
    assert FilterSupport.matches(Range("year", at_least=low, at_most=high), record) == (low <= value <= high)
    assert FilterSupport.matches(Range("year", above=low, below=high), record) == (low < value < high)


@pytest.mark.parametrize(
    ("filter", "record", "kept"),
    [
        (None, {}, True),
        (And(()), {}, True),
        (Or(()), {}, False),
        (AnyOf("a", ()), {"a": 1}, False),
        (Equal("a", 1), {"a": 1.0}, True),
        (Equal("a", 1), {"a": True}, False),
        (Equal("a", True), {"a": 1}, False),
        (Equal("a", "1"), {"a": 1}, False),
        (Equal("a", 1), {"a": "1"}, False),
        (Equal("a", 1), {"a": Decimal(1)}, False),
        (Equal("a", "x"), {"a": ["w", "x"]}, True),
        (Not(Equal("a", "x")), {}, True),
        (Not(Equal("a", "x")), {"a": ["w", "x"]}, False),
        (Range("a", at_least=1), {"a": True}, False),
        (Range("a", at_least=1), {"a": "2"}, False),
        (Range("a", at_least="2024-01-01"), {"a": "2024-06-01"}, True),
        (Range("a", at_least=float("nan")), {"a": 1}, False),
        (Range("a", below=3, above=1), {"a": [0, 5]}, False),
        (Range("a", at_most=2**53), {"a": 2**53 + 1}, False),
        (Equal("a", 1), {"a": None}, False),
    ],
    ids=str,
)
def test_what_is_kept(filter: Filter | None, record: dict[str, Any], kept: bool) -> None:
    assert FilterSupport.matches(filter, record) is kept


def test_a_range_without_bounds_is_a_mistake() -> None:
    with pytest.raises(ValueError, match=r"^a Range needs at_least, at_most, above or below$"):
        Range("a")


def test_a_field_may_leave_values_out_where_nothing_else_can_be_negated() -> None:
    support = FilterSupport.fields_of("year", site=("Equal", "Not"), language=("Equal", "AnyOf", "Not"))
    support.check(And((Not(Equal("site", "a")), Equal("year", 1), Not(AnyOf("language", ("en", "de"))))), "Bing")
    for part in (Equal("year", 1), AnyOf("site", ("a",)), Not(Equal("site", "a")), And((Equal("site", "a"),))):
        with pytest.raises(UnsupportedOption, match=r"cannot (combine filters with|apply).* site \(Equal, Not\)"):
            support.check(Not(part), "Bing")


SUPPORT = FilterSupport({"site": frozenset({"Equal"}), "year": frozenset({"Equal", "Range"})})


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        (Equal("sit", "a"), "Brave cannot filter by 'sit'. It supports site (Equal), year"),
        (AnyOf("site", ("a",)), "Brave cannot apply AnyOf to 'site'"),
        (Or((Equal("site", "a"), Equal("site", "b"))), "(Equal, Range), combined with And."),
        (And((Equal("year", 1), Not(Equal("site", "a")))), "Brave cannot combine filters with Not"),
        (And((Equal("year", 1), And((Range("site", above="a"),)))), "Brave cannot apply Range to 'site'"),
    ],
)
def test_what_a_source_cannot_do_is_refused_with_what_it_can(filter: Filter, message: str) -> None:
    with pytest.raises(UnsupportedOption) as caught:
        SUPPORT.check(filter, "Brave")
    assert message in str(caught.value)


@pytest.mark.fuzz
@given(filters())
def test_a_refusal_is_of_something_that_the_filter_has(filter: Filter) -> None:
    used: set[tuple[str, str]] = set()
    stack: list[Filter] = [filter]
    while stack:
        clause = stack.pop()
        if isinstance(clause, And | Or):
            stack.extend(clause.parts)
        elif isinstance(clause, Not):
            stack.append(clause.part)
        else:
            used.add((clause.field, type(clause).__name__))
    wide = {field: frozenset(kind for other, kind in used if other == field) for field, _ in used}
    FilterSupport(wide, frozenset({"And", "Or", "Not"})).check(filter, "source")
    for field, kind in used:
        narrow = {**wide, field: wide[field] - {kind}}
        with pytest.raises(UnsupportedOption, match=kind):
            FilterSupport(narrow, frozenset({"And", "Or", "Not"})).check(filter, "source")


def test_a_filter_without_end_is_refused_with_the_bound() -> None:
    deep: Filter = Equal("a", 1)
    for _ in range(100_000):
        deep = Not(deep)
    for huge in (deep, And(tuple(Equal("a", number) for number in range(1001)))):
        with pytest.raises(UnsupportedOption, match="1000 clauses or deeper than 20"):
            FilterSupport.everything().check(huge, "source")


def test_support_describes_itself() -> None:
    assert FilterSupport.everything().describe() == "any field"
    assert FilterSupport.nothing().describe() == "no filters"
    assert SUPPORT.describe() == "site (Equal), year (Equal, Range)"
