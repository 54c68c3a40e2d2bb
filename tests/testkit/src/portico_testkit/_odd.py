"""Odd names and values with which stores, queues and runners are tried."""

from __future__ import annotations

from typing import Any

__all__ = ["NOT_JSON", "ODD_ENTRIES", "ODD_NAMES", "short"]

ODD_NAMES = (
    *("a", "A", "a b", " a", "a-b", "a/b", "a:b", "../up", "C:\\x", ".", "-", "ключ", "e\u0301", "\u00e9", "🧦"),
    *("run\nline", "%s'; DROP TABLE runs; --", '"quoted" \\ $1 :name {x} ?', "x" * 200),
)
ODD_ENTRIES: tuple[dict[str, Any], ...] = (
    {},
    {"type": "plan", "big": 2**200, "small": -(2**63) - 1, "float": 0.1, "tiny": 5e-324},
    {"whole": 1.0, "below": -0.0, "large": 1e300, "one": 1, "true": True},
    {"": {"nested": [[[]], {"a": None, "b": [True, False]}]}},
    {"text": "é\u0000\u2028\U0001f600 'quoted' \"twice\" \\", "ключ": "значение"},
    {"long": "x" * 200_000},
    {"deep": [[[[[[[[[["down"]]]]]]]]]]},
)
NOT_JSON: tuple[Any, ...] = ({"a": object()}, {"a": float("nan")}, {"a": {1, 2}}, {"a": [{"b": b"bytes"}]})


def short(value: object) -> str:
    """Return a value as people are shown it."""
    text = repr(value)
    return text if len(text) < 300 else f"{text[:200]}… ({len(text):,} characters)"
