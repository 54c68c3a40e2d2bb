"""How values are written into a prompt."""

from __future__ import annotations

import datetime as dt
import enum
import json
import math
import types
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pytest
from hypothesis import given, strategies as st

from portico import Secret
from portico._prompts.calling import TextForm
from portico._types.compiled import Compiled

write = TextForm()


class Point(NamedTuple):
    x: int
    y: int


class Level(enum.IntEnum):
    HIGH = 3


class Word(enum.StrEnum):
    YES = "yes"


@dataclass(frozen=True)
class Person:
    name: str
    born: dt.date
    home: Point | None = None


class Shouting(str):
    __slots__ = ()


class Version:
    def __str__(self) -> str:
        return "1.2"


ID = uuid.UUID("7ac656b1-c917-41c8-9ff5-e8f0eb51fbac")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        (Shouting("as it is"), "as it is"),
        (None, ""),
        (True, "True"),
        (False, "False"),
        (42, "42"),
        (-1.5, "-1.5"),
        (36.6, "36.6"),
        (1e21, "1e+21"),
        (math.inf, "inf"),
        (Decimal("1.10"), "1.10"),
        (dt.date(2026, 3, 1), "2026-03-01"),
        (dt.datetime(2026, 3, 1, 9, 30, tzinfo=dt.UTC), "2026-03-01T09:30:00+00:00"),
        (dt.time(9, 30), "09:30:00"),
        (ID, str(ID)),
        (Word.YES, "yes"),
        (Level.HIGH, "3"),
        ([], "[]"),
        ([1, "a", None, True, dt.date(2026, 3, 1)], '[1, "a", null, true, "2026-03-01"]'),
        ((1, 2), "[1, 2]"),
        ({"é": {"a": 1}}, '{"é": {"a": 1}}'),
        (OrderedDict(a=Level.HIGH), '{"a": 3}'),
        (types.MappingProxyType({"a": 1}), '{"a": 1}'),
        ({"one"}, '["one"]'),
        (Point(1, 2), '{"x": 1, "y": 2}'),
        (
            Person("Ada", dt.date(1815, 12, 10), Point(1, 2)),
            '{"name": "Ada", "born": "1815-12-10", "home": {"x": 1, "y": 2}}',
        ),
        ([Person("Ada", dt.date(1815, 12, 10))], '[{"name": "Ada", "born": "1815-12-10", "home": null}]'),
        (PurePosixPath("a/b"), "a/b"),
        ([PurePosixPath("a/b")], '["a/b"]'),
        pytest.param(Version(), "1.2", id="an object"),
        (ValueError("wrong"), "wrong"),
        (Secret("sk-123"), "********"),
    ],
    ids=repr,
)
def test_each_kind_of_value_is_written_by_its_rule(value: object, text: str) -> None:
    assert write(value) == text


def circle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (object(), "object"),
        (Path.cwd, "method"),
        (Path, "type"),
        ((number for number in ()), "generator"),
        (b"bytes", "bytes"),
        ([{"a": object()}], "object"),
        ({1: "one"}, "keys of a JSON object are strings, not 1"),
        (circle(), r"^The value is nested too deeply, or contains itself\.$"),
        (10**5000, "limit"),
    ],
    ids=["object", "function", "class", "generator", "bytes", "inside", "keys", "circle", "number"],
)
def test_a_value_that_has_no_text_is_refused_with_the_reason(value: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        write(value)


@given(st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text().filter(lambda key: key[:1] != "_"), inner, max_size=3),
    max_leaves=10,
).filter(lambda value: isinstance(value, list | dict)))  # fmt: skip
def test_lists_and_mappings_are_written_as_json(value: object) -> None:
    assert json.loads(write(value)) == value


def test_codecs_are_asked_for_types_that_core_does_not_know() -> None:
    class Strange:
        """A type of some other package."""

    class Codec:
        name = "strange"

        def compile(self, hint: object, inner: Any) -> Compiled | None:
            return Compiled({"type": "string"}, Strange, lambda _: "strange") if hint is Strange else None

    assert TextForm([Codec()])(Strange()) == "strange"
    assert TextForm([Codec()])([Strange()]) == '["strange"]'
    with pytest.raises(ValueError, match="Strange"):
        write(Strange())
