"""Texts and JSON values from outside, damaged in ways that people, disks and models damage them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

PIECES = (
    *(b"<", b">", b'"', b"'", b"&", b"{", b"}", b"[", b"]", b":", b",", b"\\", b"\n", b"\r", b"\t", b"\0", b"#", b"="),
    *(b"\xff", b"\xed\xa0\x80", "\u2028".encode(), "\U0001f600".encode(), b"0", b"-1", b"1e999", b"null", b"NaN"),
    *(b"{{", b"}}", b"<![CDATA[", b"-->", b"%PDF-", b"data: ", b"\\ud800", b"[" * 2_000, b"a" * 5_000),
)
DEEP: Any = []
for _ in range(200):
    DEEP = [DEEP]
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 2**70, 1e308, float("nan"), "", "x", "ÿ\0\ud800", "x" * 3_000, [], {}, [None]),
    *({"": {}}, {"$ref": "#"}, {"from": "s1"}, [[[]]], DEEP, "2026-99-99", "../..", "s1"),
)


@st.composite
def damaged_bytes(draw: st.DrawFn, samples: Sequence[bytes]) -> bytes:
    """Draw a sample with one to four places deleted, doubled, replaced, filled or cut off."""
    data = draw(st.sampled_from(samples))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(start + draw(st.sampled_from([0, 1, 1, 5, 50])), len(data))
        match draw(st.sampled_from(["delete", "double", "replace", "add", "cut"])):
            case "delete":
                data = data[:start] + data[end:]
            case "double":
                data = data[:end] + data[start:]
            case "replace":
                data = data[:start] + draw(st.sampled_from(PIECES) | st.binary(max_size=4)) + data[end:]
            case "add":
                data = data[:start] + draw(st.sampled_from(PIECES)) + data[start:]
            case _:
                data = data[:start]
    return data


@st.composite
def damaged_json(draw: st.DrawFn, samples: Sequence[Any]) -> Any:
    """Draw a sample in which one to three values, wherever they are, are gone, others, doubled or renamed."""
    value = json.loads(json.dumps(draw(st.sampled_from(samples))))
    for _ in range(draw(st.integers(1, 3))):
        place: Any = value
        path: list[tuple[Any, Any]] = []
        while isinstance(place, dict | list) and place:
            key = draw(st.sampled_from([*place] if isinstance(place, dict) else range(len(place))))
            path.append((place, key))
            place = place[key]
        if not path:
            break
        inside, key = path[draw(st.integers(0, len(path) - 1))]
        match draw(st.sampled_from(["delete", "odd", "odd", "double", "rename"])):
            case "delete":
                del inside[key]
            case "odd":
                inside[key] = deepcopy(draw(st.sampled_from(ODD)))  # what is put in may be damaged too
            case "double" if isinstance(inside, list):
                inside.insert(key, inside[key])
            case _ if isinstance(inside, dict):
                inside[f"{key}x"] = inside.pop(key)
            case _:
                inside.reverse()
    return value
