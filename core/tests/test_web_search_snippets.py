"""What services put into their results becomes clean text, addresses that open, and dates that compare."""

from __future__ import annotations

import html
import time
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico.web_search.snippets import moment, plain_text, web_address

WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20).map(lambda text: " ".join(text.split()))


@pytest.mark.fuzz
@given(WORDS, st.sampled_from(["b", "strong", "em", "mark", "span class='searchmatch'", "B"]))
def test_text_that_was_escaped_and_marked_comes_back(text: str, tag: str) -> None:
    name = tag.partition(" ")[0]
    marked = f"<{tag}>{html.escape(text)}</{name}>"
    assert plain_text(marked) == " ".join(text.split())


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
    assert plain_text(markup) == text


@pytest.mark.parametrize("read", [plain_text, web_address])
@pytest.mark.parametrize("value", [1, True, [], {}, ["x"], b"x"])
def test_what_is_no_text_is_another_form(read: Any, value: Any) -> None:
    with pytest.raises(TypeError):
        read(value)


@pytest.mark.parametrize("markup", ["<b " * 50_000, "<" * 100_000, "&" * 100_000, "&#x1" * 50_000, "<a <a" * 30_000])
def test_odd_markup_takes_no_time(markup: str) -> None:
    begun = time.perf_counter()
    plain_text(markup)
    web_address(f"https://a.example/{markup}")
    assert time.perf_counter() - begun < 20


@pytest.mark.fuzz
@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=30))
def test_an_address_is_one_that_opens_or_none(tail: str) -> None:
    for url in (tail, f"https://a.example/{tail}"):
        found = web_address(url)
        if found is not None:
            assert urlsplit(found).scheme in {"http", "https"}
            assert not set(found) & set(' \n\t<>"')
            assert web_address(found) == found, "an address that is clean changes no more"
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
    assert web_address(url) == found


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_date_in_iso_form_comes_back(when: datetime) -> None:
    assert moment(when.isoformat()) == when
    assert moment(when.isoformat().replace("+00:00", "Z")) == when


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


@pytest.mark.fuzz
@given(st.text(max_size=20))
def test_what_is_no_date_is_none_and_never_an_error(text: str) -> None:
    assert isinstance(moment(text), datetime | None)
