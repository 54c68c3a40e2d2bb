"""Vectors: one buffer with a shape, shared and never copied."""

from __future__ import annotations

import enum
from array import array
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from portico._search.filters import Scalar
from portico._search.vectors import VectorRecord, Vectors

numbers = st.floats(width=32, allow_nan=False)


@st.composite
def matrices(draw: st.DrawFn) -> list[list[float]]:
    dimensions = draw(st.integers(1, 5))
    return draw(st.lists(st.lists(numbers, min_size=dimensions, max_size=dimensions), max_size=5))


def rows_of(vectors: Vectors) -> list[list[float]]:
    return [row.buffer.tolist() for row in vectors]


@given(matrices())
def test_rows_come_back_as_they_were(rows: list[list[float]]) -> None:
    vectors = Vectors.from_rows(rows, dimensions=None if rows else 3)
    assert rows_of(vectors) == rows
    assert len(vectors) == vectors.rows == len(rows)
    assert vectors == Vectors(array("f", [number for row in rows for number in row]), len(rows), vectors.dimensions)


@given(matrices(), st.integers(-7, 7), st.integers(-7, 7))
def test_a_slice_is_what_a_list_would_give(rows: list[list[float]], start: int, stop: int) -> None:
    vectors = Vectors.from_rows(rows, dimensions=None if rows else 2)
    assert rows_of(vectors.slice(start, stop)) == rows[start:stop]


def test_nothing_is_copied() -> None:
    buffer = bytearray(16)
    vectors = Vectors(buffer, 2, 2)
    row = vectors[-1]
    buffer[8:12] = array("f", [7.0]).tobytes()
    assert row.buffer[0] == vectors.buffer[2] == 7.0


def test_nothing_can_be_written() -> None:
    vectors = Vectors(bytearray(8), 1, 2)
    assert vectors.buffer.readonly
    with pytest.raises(TypeError):
        vectors.buffer[0] = 1.0
    with pytest.raises(TypeError):
        hash(vectors)


@pytest.mark.parametrize(
    ("buffer", "rows", "dimensions"),
    [
        (b"", 0, 0),
        (b"", -1, 3),
        (bytes(7), 1, 2),
        (bytes(12), 1, 2),
        (array("d", [1.0]), 1, 2),
        (array("i", [1, 2]), 1, 2),
        (memoryview(array("f", range(4)))[::2], 1, 2),
    ],
)
def test_a_buffer_that_does_not_fit_is_refused(buffer: Any, rows: int, dimensions: int) -> None:
    with pytest.raises(ValueError):
        Vectors(buffer, rows, dimensions)


def test_rows_of_unequal_length_and_rows_without_a_width_are_refused() -> None:
    with pytest.raises(ValueError, match="row 1 has 1"):
        Vectors.from_rows([[1, 2], [3]])
    with pytest.raises(ValueError, match="dimensions"):
        Vectors.from_rows([])
    with pytest.raises(IndexError):
        Vectors.from_rows([[1.0]])[1]


scalars = st.text() | st.integers() | st.floats(allow_nan=False) | st.booleans()


@given(st.dictionaries(st.text(), scalars | st.lists(scalars, max_size=4)))
def test_metadata_stay_as_they_are_and_nobody_else_can_change_them(given: dict[str, Scalar | list[Scalar]]) -> None:
    plain = VectorRecord("a", given).plain_metadata()
    expected = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    assert repr(plain) == repr(expected), "1 is not 1.0, True is not 1, and fields keep their order"
    given["another"] = 1
    for value in given.values():
        if isinstance(value, list):
            value.append("more")
    assert repr(plain) == repr(expected)


def test_what_counts_as_a_text_or_a_number_becomes_one() -> None:
    class Kind(enum.StrEnum):
        NOTE = "note"

    class Size(enum.IntEnum):
        LARGE = 3

    class Share(float):
        pass

    metadata: dict[str, Scalar | Sequence[Scalar]] = {Kind.NOTE: Kind.NOTE, "sizes": [Size.LARGE, True], "f": Share(2)}
    plain = VectorRecord("a", metadata).plain_metadata()
    assert repr(plain) == "{'note': 'note', 'sizes': (3, True), 'f': 2.0}"
    assert type(next(iter(plain))) is str


@pytest.mark.parametrize("value", [None, {"a": 1}, b"x", [None], [["a"]], {1}], ids=repr)
def test_metadata_of_other_kinds_are_refused_with_record_and_field(value: Any) -> None:
    with pytest.raises(TypeError, match="record 'r': the metadata field 'field' holds a"):
        VectorRecord("r", {"field": value}).plain_metadata()
    with pytest.raises(TypeError, match="record 'r': metadata fields are strings, not 1"):
        VectorRecord("r", {1: "a"}).plain_metadata()  # type: ignore[dict-item]
