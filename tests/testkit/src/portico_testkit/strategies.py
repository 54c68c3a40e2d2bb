"""Hypothesis strategies for JSON values. Those for chat are in `portico_testkit.chat_strategies`."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

__all__ = ["json_values", "near"]

# Making a strategy costs more than drawing from it: those that are drawn from again and again are made once.
_TEXT = st.text(max_size=8)
_KEYS = st.sampled_from(["a", "b", "c", "date", "max temp", "ключ", ""])
_NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False, width=32)


def json_values(max_leaves: int = 10) -> st.SearchStrategy[Any]:
    """Draw any JSON value."""
    return _json_values(max_leaves)


@cache
def _json_values(max_leaves: int) -> st.SearchStrategy[Any]:
    return st.recursive(
        st.none() | st.booleans() | _NUMBERS | _TEXT,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4),
        max_leaves=max_leaves,
    )


@st.composite
def near(draw: st.DrawFn, value: Any) -> Any:
    """Draw a JSON value that differs from ``value`` in one place, or in none."""
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        changed = {**value, key: draw(near(value[key]))}
        match draw(st.sampled_from(["inside", "lost", "added"])):
            case "lost":
                del changed[key]
            case "added":
                changed[draw(_KEYS)] = draw(json_values(2))
        return changed
    if isinstance(value, list) and value and draw(st.booleans()):
        index = draw(st.integers(0, len(value) - 1))
        before, element, after = value[:index], value[index], value[index + 1 :]
        return draw(
            st.sampled_from([[*before, draw(near(element)), *after], [*before, *after], [*before, element, *value]])
        )
    return draw(st.just(value) | json_values(3) | _look_alikes(value))


def _look_alikes(value: Any) -> st.SearchStrategy[Any]:
    """Draw what Python takes for the same and JSON does not, or the other way round."""
    if isinstance(value, bool):
        return st.sampled_from([int(value), str(value).lower()])
    if isinstance(value, int):
        return st.sampled_from([float(value), str(value), value + 0.5, bool(value)])
    if isinstance(value, float):
        return st.sampled_from([int(value), str(value), [value]])
    return st.sampled_from([[value], {"a": value}, repr(value)])
