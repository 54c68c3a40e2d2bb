"""A filter split by field says the same as the filter."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico._search.filters import And, AnyOf, Equal, Filter, FilterSupport, Not, Or, Range, Scalar, split_filter

FIELDS = st.sampled_from(["a", "b"])
SCALARS = st.sampled_from(["", "x", "y", "1", 0, 1, 2, 1.0, 2.5, True, False, float("nan")])
BOUNDS = st.none() | st.sampled_from(["x", "y", 0, 1, 2.5])
CLAUSES = (
    st.builds(Equal, FIELDS, SCALARS)
    | st.builds(AnyOf, FIELDS, st.lists(SCALARS, max_size=4).map(tuple))
    | st.tuples(FIELDS, BOUNDS, BOUNDS, BOUNDS, BOUNDS)
    .filter(lambda drawn: drawn[1:] != (None,) * 4)
    .map(lambda drawn: Range(*drawn))
)
CONJUNCTIONS: st.SearchStrategy[Filter] = st.recursive(
    CLAUSES | CLAUSES.filter(lambda clause: not isinstance(clause, Range)).map(Not),
    lambda parts: st.lists(parts, max_size=4).map(lambda drawn: And(tuple(drawn))),
    max_leaves=6,
)


def passes(filter: Filter | None, record: dict[str, Any]) -> bool:
    told = split_filter(filter)
    parts: list[Filter] = [AnyOf(field, values) for field, values in told.values.items()]
    parts += [bound for bounds in told.ranges.values() for bound in bounds]
    parts += [Not(AnyOf(field, values)) for field, values in told.unwanted.items()]
    return FilterSupport.matches(And(tuple(parts)), record)


@pytest.mark.fuzz
@given(CONJUNCTIONS, st.dictionaries(FIELDS, SCALARS))
def test_what_passes_field_by_field_is_what_the_filter_keeps(filter: Filter, record: dict[str, Any]) -> None:
    assert passes(filter, record) == FilterSupport.matches(filter, record)


@given(CONJUNCTIONS, st.dictionaries(FIELDS, SCALARS))
def test_where_nothing_can_pass_the_filter_keeps_nothing(filter: Filter, record: dict[str, Any]) -> None:
    if split_filter(filter).nothing:
        assert not FilterSupport.matches(filter, record)


@given(SCALARS, st.builds(Range, st.just("a"), st.sampled_from(["", "x", 0, 1]), BOUNDS))
def test_a_value_and_a_range_contradict_each_other_where_the_range_leaves_it_out(value: Scalar, bounds: Range) -> None:
    both = And((Equal("a", value), bounds))
    assert split_filter(both).nothing is not FilterSupport.matches(both, {"a": value})


@pytest.mark.parametrize(
    "filter",
    [
        And((Equal("a", "x"), Equal("a", "y"))),
        And((Equal("a", 1), Equal("a", True))),
        AnyOf("a", ()),
        And((AnyOf("a", ("x", "y")), And((Equal("a", "z"),)))),
        And((Equal("a", "2025"), Range("a", at_least="2026"))),
        And((AnyOf("a", ("x", "y")), Not(Equal("a", "x")), Not(Equal("a", "y")))),
    ],
)
def test_a_contradiction_is_found(filter: Filter) -> None:
    assert split_filter(filter).nothing


@pytest.mark.parametrize(
    "filter",
    [
        None,
        And(()),
        Not(AnyOf("a", ())),
        And((Equal("a", 1), Not(Equal("a", True)))),
        Range("a", at_least=1, at_most=1),
        Equal("a", ""),
        Range("a", above=1, below=2),
    ],
)
def test_what_can_pass_is_no_contradiction(filter: Filter | None) -> None:
    assert not split_filter(filter).nothing


def test_values_keep_their_order_and_their_kind() -> None:
    told = split_filter(And((AnyOf("a", ("y", 1, True, "x", "y")), AnyOf("a", ("x", "y", True, 1)))))
    assert [*map(repr, told.values["a"])] == ["'y'", "1", "True", "'x'"]


def test_many_values_are_told_in_a_moment() -> None:
    values = tuple(f"{number}.example" for number in range(100_000))
    assert len(split_filter(And((AnyOf("site", values), AnyOf("site", values[::-1])))).values["site"]) == 100_000


@pytest.mark.parametrize(
    ("filter", "kind"),
    [(Or((Equal("a", 1),)), "Or"), (Not(Range("a", above=1)), "Not"), (And((Not(Not(Equal("a", 1))),)), "Not")],
)
def test_what_is_no_conjunction_is_a_mistake_of_the_source(filter: Filter, kind: str) -> None:
    with pytest.raises(ValueError, match=f"^{kind} cannot be split by field$"):
        split_filter(filter)
