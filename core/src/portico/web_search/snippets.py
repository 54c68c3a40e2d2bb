"""What search services put into their results, made clean: text with markup, addresses, dates."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import quote, urlsplit

__all__ = ["moment", "plain_text", "web_address"]

# Only tags that there are: what is "List<int>" to a service that does not escape stays.
_INLINE = re.compile(
    r"</?(?:a|abbr|b|bdi|cite|code|em|font|i|kbd|mark|q|s|samp|small|span|strong|sub|sup|time|tt|u|var|wbr)"
    r"(?:\s[^<>]*|/)?>",
    re.IGNORECASE,
)
_BLOCK = re.compile(
    r"</?(?:br|dd|div|dl|dt|h[1-6]|hr|li|ol|p|pre|table|tbody|td|th|tr|ul)(?:\s[^<>]*|/)?>", re.IGNORECASE
)
# What RFC 3986 has in no address, apart from letters of other scripts, which browsers take.
_UNSAFE = re.compile(r"[\x00-\x20\x7f-\xa0\"<>\\^`{|}\u2028\u2029\ud800-\udfff]")


def plain_text(markup: str | None) -> str:
    """Return the text of a snippet that has tags and entities in it; empty for None.

    >>> plain_text("A <strong>port</strong> isn&#x27;t an <b>adapter</b>,<br>but List<int> &amp; 1 &lt; 2 stay.")
    "A port isn't an adapter, but List<int> & 1 < 2 stay."

    Raises ``TypeError`` for what is no text: an answer of another form.
    """
    if markup is None:
        return ""
    if not isinstance(markup, str):
        raise TypeError(f"a text is {type(markup).__name__}")
    return " ".join(html.unescape(_INLINE.sub("", _BLOCK.sub(" ", markup))).split())


def web_address(url: str | None) -> str | None:
    """Return an address that opens in a browser; None for one that is missing, or of another scheme than http(s).

    >>> web_address(" https://example.org/two words "), web_address("javascript:alert(1)")
    ('https://example.org/two%20words', None)

    Raises ``TypeError`` for what is no text: an answer of another form.
    """
    if url is None:
        return None
    if not isinstance(url, str):
        raise TypeError(f"an address is {type(url).__name__}")
    url = _UNSAFE.sub(lambda mark: quote(mark[0], errors="replace"), url.strip())
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return url if parts.scheme in ("http", "https") and parts.netloc else None


def moment(written: object) -> datetime | None:
    """Return a date as services write it, ISO 8601 or RFC 2822, with its time zone; UTC where they leave that out.

    None for what is no date: some services write ``"3 days ago"``, which cannot be compared.

    >>> moment("2026-01-31"), moment("Sat, 31 Jan 2026 12:00:00 GMT") == moment("2026-01-31T13:00:00+01:00")
    (datetime.datetime(2026, 1, 31, 0, 0, tzinfo=datetime.timezone.utc), True)
    """
    if not isinstance(written, str):
        return None
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            read_as = read(written.strip())
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        return read_as if read_as.tzinfo is not None else read_as.replace(tzinfo=UTC)
    return None
