"""Filters become expressions of digests, with nothing from outside. They keep what `FilterSupport.matches` keeps."""

from __future__ import annotations

import json
import re

from hypothesis import assume, given, strategies as st
from milvus_lite.search.filter import parse_expr
from milvus_lite.search.filter.eval.python_backend import _eval_row

from portico.search import And, AnyOf, Equal, Filter, FilterSupport, Not, Or, Range, VectorRecord
from portico_milvus._records import (
    _sort_key,
    _term,
    as_text,
    bounds,
    collection_name,
    decode,
    encode,
    expression,
    from_text,
    key,
    terms,
)
from portico_testkit.vector_strategies import filters, metadata

ANY_TEXT = st.text(st.characters(), max_size=50) | st.text('a\\u0"{\ud83d\ude00\0\n', max_size=12)
NUMBERS = (
    st.integers()
    | st.floats(allow_nan=False)
    | st.integers(2**53 - 3, 2**53 + 3)
    | st.sampled_from([0.0, -0.0, 2**1024, -(2**1024), 2**1024 + 1, 10**400, float("inf"), -float("inf")])
)


def holds(filter: Filter, fields: dict) -> bool:
    """Ask Milvus Lite's own evaluation, without a server."""
    translated = expression(filter)
    if isinstance(translated, bool):
        return translated
    row = {"terms": terms(fields), "bounds": json.dumps(bounds(fields))}
    return _eval_row(parse_expr(translated), row) is True


@given(metadata(), filters())
def test_an_expression_keeps_all_that_the_filter_keeps(fields, filter) -> None:
    fields = VectorRecord("r", fields).plain_metadata()
    assert holds(filter, fields) or not FilterSupport.matches(filter, fields)


@given(st.dictionaries(st.sampled_from("ab"), NUMBERS | st.text(max_size=8) | st.booleans()), filters())
def test_an_expression_keeps_no_more_where_fields_have_one_value_each(fields, filter) -> None:
    assume("Not(" not in repr(filter))
    assert holds(filter, fields) == FilterSupport.matches(filter, fields)


@given(ANY_TEXT, NUMBERS | ANY_TEXT | st.booleans(), NUMBERS | ANY_TEXT)
def test_what_comes_from_outside_is_never_in_an_expression(field, value, bound) -> None:
    both = And((Equal(field, value), Not(Range(field, at_least=bound)), Or((AnyOf(field, (value, "x")),))))
    translated = expression(both)
    names = r"array_contains(_any)?|terms|bounds|and|or|not"
    assert re.fullmatch(rf'(?:\b(?:{names})\b|"[0-9a-f]+[lhg]?"|[][()<>=, ])*', str(translated)), translated


@given(NUMBERS, NUMBERS)
def test_keys_of_numbers_sort_as_numbers_do(one, other) -> None:
    (first, sure), (second, _) = _sort_key(one), _sort_key(other)
    assert (first <= second) if one <= other else (first >= second)
    assert not sure or (first == second) == (one == other)
    assert (_term("f", one) == _term("f", other)) == (one == other)


@given(ANY_TEXT, ANY_TEXT)
def test_keys_of_texts_sort_by_code_point(one, other) -> None:
    (first, sure), (second, _) = _sort_key(one), _sort_key(other)
    assert (first <= second) if one <= other else (first >= second)
    assert not sure or (first == second) == (one == other)


@given(ANY_TEXT, ANY_TEXT)
def test_a_field_and_its_value_cannot_be_taken_for_another_pair(field, value) -> None:
    assume(field)
    assert _term(field, value) != _term(field[:-1], field[-1] + value)
    assert _term(field, "True") != _term(field, True)


@given(ANY_TEXT, st.dictionaries(ANY_TEXT, ANY_TEXT | st.integers() | st.floats() | st.booleans(), max_size=3))
def test_ids_and_metadata_are_valid_unicode_there_and_what_they_were_here(id, fields) -> None:
    as_text(id).encode()
    encode(fields).encode()
    assert from_text(as_text(id)) == id
    # By their representation: a NaN is not equal to itself, and 1 is to True.
    assert repr(decode(encode(fields))) == repr(fields)


@given(ANY_TEXT, ANY_TEXT, st.sampled_from(["p", "p5f"]), st.sampled_from(["p", "p5f"]))
def test_each_namespace_of_each_prefix_has_a_collection_of_its_own(one, other, prefix, another) -> None:
    names = collection_name(prefix, one), collection_name(another, other)
    assert (names[0] == names[1]) == ((prefix, one) == (another, other))
    assert (key(one) == key(other)) == (one == other)
    for name in (*names, collection_name(prefix, one * 40)):
        assert re.fullmatch("[a-z][a-z0-9_]{1,254}", name)
