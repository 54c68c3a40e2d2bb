"""Records are read from a service's JSON by what their fields are."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Annotated, Any

import pytest
from hypothesis import given

from portico.web_search.records import Verbatim, WebAddress, read_record
from portico_testkit.strategies import json_values, near


@dataclass(frozen=True, slots=True)
class Article:
    title: str
    url: WebAddress
    body: Verbatim = ""
    date_published: datetime | None = None
    day: date | None = None
    score: float = 0.0
    rank: int | None = None
    open: bool = False
    tags: tuple[str, ...] = ()
    extra: Any = None
    upper: Annotated[str, str.upper] = ""
    own: list[str] = field(default_factory=list, init=False)


ITEM = {
    "title": "Ports <b>&amp;</b> more",
    "url": " https://a.example/b c ",
    "body": "  List<str>\n&amp; ",
    "datePublished": "2026-01-31T10:00:00",
    "day": "2026-01-31",
    "score": 1,
    "rank": 3,
    "open": True,
    "tags": ["a", "<b>b</b>"],
    "extra": {"any": ["thing"]},
    "upper": "up",
    "unknown": {"is": "left out"},
}


def test_each_field_is_read_by_its_kind() -> None:
    assert read_record(Article, ITEM) == Article(
        "Ports & more",
        "https://a.example/b%20c",
        "List<str>\n&amp;",
        datetime(2026, 1, 31, 10, tzinfo=UTC),
        date(2026, 1, 31),
        1.0,
        3,
        True,
        ("a", "b"),
        {"any": ["thing"]},
        "UP",
    )


def test_what_is_missing_or_null_is_the_default() -> None:
    least = Article("t", "https://a.example")
    item = {"title": "t", "url": "https://a.example"}
    assert read_record(Article, item) == least
    assert read_record(Article, {**dict.fromkeys(ITEM), **item}) == least


def test_what_has_to_be_there_may_be_null_and_not_missing() -> None:
    assert read_record(Article, {"title": None, "url": None}) == Article("", None)
    with pytest.raises(KeyError, match="url"):
        read_record(Article, {"title": "t"})


def test_a_name_in_snake_case_goes_before_one_in_camel_case() -> None:
    both = {"title": "t", "url": None, "date_published": "2026-01-01", "datePublished": "2025-01-01"}
    read = read_record(Article, both)
    assert read.date_published == datetime(2026, 1, 1, tzinfo=UTC)


def test_a_date_that_cannot_be_read_is_none_and_breaks_nothing() -> None:
    read = read_record(Article, {**ITEM, "datePublished": "3 days ago", "day": 7})
    assert (read.date_published, read.day) == (None, None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"title": 1},
        {"title": ["t"]},
        {"url": 1},
        {"body": {}},
        {"score": "1"},
        {"score": True},
        {"rank": 1.5},
        {"rank": True},
        {"open": 1},
        {"open": "yes"},
        {"tags": "ab"},
        {"tags": [1]},
        {"tags": {"a": 1}},
    ],
)
def test_a_member_of_another_kind_is_another_form(wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        read_record(Article, {**ITEM, **wrong})


@pytest.mark.parametrize("item", [None, [], "x", 1, [ITEM]])
def test_what_is_no_object_is_another_form(item: Any) -> None:
    with pytest.raises(TypeError, match="Article"):
        read_record(Article, item)


@pytest.mark.fuzz
@given(near(ITEM) | json_values())
def test_any_json_is_a_record_or_another_form(item: Any) -> None:
    try:
        read = read_record(Article, item)
    except (LookupError, TypeError, ValueError):
        return
    assert isinstance(read.title, str)
    assert isinstance(read.url, str | None)
    assert isinstance(read.tags, tuple)


def test_a_field_that_cannot_be_read_is_a_mistake_of_the_author() -> None:
    @dataclass
    class Odd:
        what: set[str]

    with pytest.raises(TypeError, match=r"set\[str\]"):
        read_record(Odd, {"what": []})
