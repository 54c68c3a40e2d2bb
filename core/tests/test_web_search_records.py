"""Records are read from a service's JSON by what their fields are."""

from __future__ import annotations

import html
import time
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Annotated, Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, strategies as st

from portico._search.web import FoundPage, Verbatim, WebAddress, read_record
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


@dataclass(frozen=True, slots=True)
class Link:
    url: WebAddress = None
    when: datetime | None = None


def address(url: Any) -> str | None:
    return read_record(Link, {"url": url}).url


def moment(written: Any) -> datetime | None:
    return read_record(Link, {"when": written}).when


WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20).map(lambda text: " ".join(text.split()))


@pytest.mark.fuzz
@given(WORDS, st.sampled_from(["b", "strong", "em", "mark", "span class='searchmatch'", "B"]))
def test_text_that_was_escaped_and_marked_comes_back(text: str, tag: str) -> None:
    name = tag.partition(" ")[0]
    marked = f"<{tag}>{html.escape(text)}</{name}>"
    assert FoundPage.plain_text(marked) == " ".join(text.split())


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        (None, ""),
        ("", ""),
        ("a<br>b<br/>c<p>d</p>", "a b c d"),
        ("<strong>a</strong>b", "ab"),
        ("a &amp;lt; b", "a &lt; b"),
        ("&lt;b&gt; is a tag", "<b> is a tag"),
        ("List<int> and Dict<str, list<T>>", "List<int> and Dict<str, list<T>>"),
        ("1 < 2 > 0", "1 < 2 > 0"),
        ("caf&eacute;\u00a0&nbsp;\n\tau lait", "café au lait"),
        ("<bold>", "<bold>"),
        ("a <b", "a <b"),
    ],
)
def test_markup_goes_and_text_stays(markup: str | None, text: str) -> None:
    assert FoundPage.plain_text(markup) == text


@pytest.mark.parametrize("markup", ["<b " * 50_000, "<" * 100_000, "&" * 100_000, "&#x1" * 50_000, "<a <a" * 30_000])
def test_odd_markup_takes_no_time(markup: str) -> None:
    begun = time.perf_counter()
    FoundPage.plain_text(markup)
    address(f"https://a.example/{markup}")
    assert time.perf_counter() - begun < 20


@pytest.mark.fuzz
@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=30))
def test_an_address_is_one_that_opens_or_none(tail: str) -> None:
    for url in (tail, f"https://a.example/{tail}"):
        found = address(url)
        if found is not None:
            assert urlsplit(found).scheme in {"http", "https"}
            assert not set(found) & set(' \n\t<>"')
            assert address(found) == found, "an address that is clean changes no more"
            found.encode()


@pytest.mark.parametrize(
    ("url", "found"),
    [
        (None, None),
        ("", None),
        ("https://a.example/b?c=d&e=%20#f", "https://a.example/b?c=d&e=%20#f"),
        ("HTTPS://A.example", "HTTPS://A.example"),
        ("https://en.wikipedia.org/wiki/Tür_(Möbel)", "https://en.wikipedia.org/wiki/Tür_(Möbel)"),
        (' https://a.example/"two words" ', "https://a.example/%22two%20words%22"),
        ("javascript:alert(1)", None),
        ("data:text/html,<script>", None),
        ("ftp://a.example/", None),
        ("//a.example/b", None),
        ("/b", None),
        ("https:///b", None),
        ("https://[", None),
    ],
)
def test_addresses_as_they_come(url: str | None, found: str | None) -> None:
    assert address(url) == found


@pytest.mark.parametrize(
    ("written", "when"),
    [
        ("2025-04-05T06:44:24", datetime(2025, 4, 5, 6, 44, 24, tzinfo=UTC)),
        ("2024-07-25", datetime(2024, 7, 25, tzinfo=UTC)),
        ("2023-08-01T00:00:00.0000000Z", datetime(2023, 8, 1, tzinfo=UTC)),
        ("2023-08-01T02:00:00+02:00", datetime(2023, 8, 1, 2, tzinfo=timezone(timedelta(hours=2)))),
        ("Tue, 11 Mar 2025 18:00:00 GMT", datetime(2025, 3, 11, 18, tzinfo=UTC)),
        ("11 Mar 2025 18:00:00 -0000", datetime(2025, 3, 11, 18, tzinfo=UTC)),
        ("3 days ago", None),
        ("", None),
        ("2026-02-30", None),
        (None, None),
        (1700000000, None),
        (date(2025, 1, 1), None),
    ],
)
def test_dates_as_services_write_them(written: Any, when: datetime | None) -> None:
    found = moment(written)
    assert found == when
    assert found is None or found.tzinfo is not None, "dates with and without a time zone do not compare"
