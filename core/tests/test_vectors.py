"""Vectors: one buffer with a shape, shared and never copied."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.vectors import Vectors

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


def test_vectors_of_other_shape_or_kind_are_not_equal() -> None:
    flat = Vectors(bytes(16), 1, 4)
    assert flat != Vectors(bytes(16), 2, 2)
    assert flat != [0.0] * 4
