"""Paths that select many values, beside an implementation of RFC 9535."""

from __future__ import annotations

from typing import Any

import jsonpath_rfc9535
from hypothesis import given, strategies as st

from portico._schema.paths import JsonPath, Many, is_many, print_path, read_path

_NAMES = st.sampled_from("abc")
_BOUNDS = st.none() | st.integers(-5, 5)
_SEVERAL = st.none() | st.tuples(_BOUNDS, _BOUNDS, _BOUNDS)
_ONE = _NAMES | st.integers(-3, 3)
_MANY = st.builds(Many, st.tuples(_SEVERAL) | st.lists(_ONE | _SEVERAL, min_size=2, max_size=3).map(tuple))
_PATHS = st.lists(_ONE | _MANY | _MANY, min_size=1, max_size=3).map(tuple).filter(is_many)
_VALUES = st.recursive(
    st.integers(),
    lambda inner: st.lists(inner, min_size=2, max_size=5) | st.dictionaries(_NAMES, inner, min_size=1),
    max_leaves=30,
)


@given(st.lists(_VALUES, min_size=2, max_size=5) | _VALUES, _PATHS)
def test_a_path_that_selects_many_gives_what_rfc_9535_says(value: Any, path: JsonPath) -> None:
    assert read_path(value, path) == jsonpath_rfc9535.find(print_path(path), value).values()
