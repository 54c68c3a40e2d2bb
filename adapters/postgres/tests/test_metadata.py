"""Metadata come back as they were, and PostgreSQL keeps by a filter what `portico.search.matches` keeps."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import example, given, strategies as st
from tests.support.postgres_server import PostgresServer

from portico.errors import StoreDamaged
from portico.search import AnyOf, Equal, Filter, FilterSupport, Range, VectorRecord
from portico_postgres._metadata import comparable, condition_of, decode, encode
from portico_testkit.vector_strategies import filters

strings = st.text(st.characters(codec=None) | st.sampled_from("\x00\x01\ud800\ue000'\"\\%$"), max_size=6)
numbers = (
    st.integers() | st.integers(-3, 3) | st.floats() | st.sampled_from([2**53 + 1, 2.0**53, 1e300, 10**300, 5e-324])
)
scalars = strings | numbers | st.booleans()
fields = strings | st.sampled_from(["a", "b"])
records = st.dictionaries(fields, scalars | st.lists(scalars, max_size=3), max_size=4)


@st.composite
def clauses(draw: st.DrawFn) -> tuple[dict[str, Any], Filter]:
    """A record, and a filter of a field that it has: often by a value of it, or one near it."""
    record = draw(records.filter(bool))
    field = draw(st.sampled_from(sorted(record)))
    value = record[field]
    own = st.sampled_from([*value, "x"] if isinstance(value, list) else [value])
    any_value = own | scalars
    bound = st.none() | (own | strings | numbers).filter(lambda drawn: not isinstance(drawn, bool))
    ranges = st.lists(bound, min_size=4, max_size=4).filter(lambda drawn: any(part is not None for part in drawn))
    return record, draw(
        st.builds(Equal, st.just(field), any_value)
        | st.builds(AnyOf, st.just(field), st.lists(any_value, max_size=3).map(tuple))
        | ranges.map(lambda drawn: Range(field, *drawn))
    )


@pytest.fixture(scope="module")
def connection(server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(server.uri, autocommit=True) as connection:
        yield connection


def kept(connection: psycopg.Connection[Any], filter: Filter, record: dict[str, Any]) -> bool:
    """Return whether PostgreSQL keeps a record."""
    condition = condition_of(filter)
    statement = f"SELECT {condition.sql} FROM (SELECT %(record)s::jsonb AS fields) AS one"
    _, compared = encode(VectorRecord("r", record))
    cursor = connection.execute(statement.encode(), {**condition.values, "record": compared})
    [[answer]] = cursor.fetchall()
    assert answer in (True, False), "null is neither, and NOT would keep it so"
    return bool(answer)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and (one == other or (one != one and other != other))


@pytest.mark.fuzz
@given(records)
def test_metadata_come_back_as_they_were(record: dict[str, Any]) -> None:
    came = decode(encode(VectorRecord("r", record))[0])
    assert list(came) == list(record)
    for field, value in record.items():
        assert same(came[field], tuple(value) if isinstance(value, list) else value)


@pytest.mark.fuzz
@given(clauses())
@example(({"a": math.nan}, Equal("a", math.nan)))
@example(({"a": math.inf}, Range("a", above=10**3_000)))
@example(({"a": 2**53 + 1}, Equal("a", 2.0**53)))
@example(({"a": True}, Range("a", at_least=0)))
def test_a_clause_keeps_what_matches_keeps(connection: psycopg.Connection[Any], drawn: tuple[dict[str, Any], Filter]):
    record, filter = drawn
    assert kept(connection, filter, record) == FilterSupport.matches(filter, record)


@pytest.mark.fuzz
@given(records, filters())
def test_a_filter_keeps_what_matches_keeps(connection: psycopg.Connection[Any], record: dict[str, Any], filter: Filter):
    assert kept(connection, filter, record) == FilterSupport.matches(filter, record)


def test_a_filter_may_ask_for_a_number_longer_than_a_record_has(connection: psycopg.Connection[Any]) -> None:
    long = 10**5_000
    assert not kept(connection, Equal("a", long), {"a": math.inf})
    assert kept(connection, Range("a", above=long), {"a": math.inf})
    assert not kept(connection, Range("a", above=long), {"a": 10**3_000})
    assert kept(connection, Range("a", above=-long), {"a": -(10**3_000)})


@pytest.mark.fuzz
@given(
    st.floats(allow_nan=False, allow_infinity=False), st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
def test_numbers_compare_as_they_do_in_python(connection: psycopg.Connection[Any], one: float, other: float) -> None:
    cursor = connection.execute(
        "SELECT %(one)s::jsonb < %(other)s::jsonb, %(one)s::jsonb = %(other)s::jsonb",
        {"one": comparable(one), "other": comparable(other)},
    )
    assert cursor.fetchone() == (one < other, one == other)


@pytest.mark.parametrize("value", [None, {"a": 1}, b"x", [None], [["a"]]], ids=repr)
def test_metadata_of_other_kinds_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="the metadata field 'field' holds a"):
        encode(VectorRecord("r", {"field": value}))
    with pytest.raises(TypeError, match="strings, not 1"):
        encode(VectorRecord("r", {1: "a"}))  # type: ignore[dict-item]


def test_a_number_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="record 'r': the metadata field 'a' holds a whole number of 16,610 bits"):
        encode(VectorRecord("r", {"a": 10**5_000}))


def test_enumerations_are_kept_as_what_they_are_worth() -> None:
    class Kind(enum.StrEnum):
        NOTE = "note"

    class Size(enum.IntEnum):
        LARGE = 3

    text, compared = encode(VectorRecord("r", {"kind": Kind.NOTE, "sizes": [Size.LARGE]}))
    assert json.loads(text) == {"kind": "note", "sizes": [3]}
    assert json.loads(compared) == {"kind": ["note"], "sizes": [3]}


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "{} {}", '"a"'])
def test_what_is_no_metadata_is_damaged(text: str) -> None:
    with pytest.raises(StoreDamaged, match="cannot be read"):
        decode(text)
