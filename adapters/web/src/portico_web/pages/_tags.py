"""All text of an HTML page, by taking its tags away: crude, and quick whatever the page is made of."""

from __future__ import annotations

import re
from html import unescape

__all__ = ["text_without_tags", "title_in"]

_MOST_SEARCHED = 200_000
# What is left out, in one pass; an unclosed one takes the rest of the page, as in a browser. Each of the patterns
# below matches to the end of the page where its own end is missing, so that all take linear time.
_UNSEEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|template|svg|title)\b[^>]*+(?:>|\Z).*?(?:</\1\s*+>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_BREAK = re.compile(r"</?(?:p|div|br|li|tr|h[1-6]|table|ul|ol|section|article|pre|blockquote|dt|dd)\b[^>]*+>?", re.I)
_CELL = re.compile(r"<t[dh]\b[^>]*+>?", re.I)
_TAG = re.compile(r"<[!/?a-zA-Z][^>]*+>?")
_SPACES = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\s*\n\s*")
_TITLE = re.compile(r"<title\b[^>]*+>([^<]{1,2000})", re.IGNORECASE)


def text_without_tags(html: str) -> str:
    r"""Return what is left of a page without its tags, a line for each block.

    >>> text_without_tags("<head><title>T</title></head><p>One &lt;two&gt;<script>x</script></p><p>Three")
    'One <two>\nThree'
    """
    text = _CELL.sub(" ", _BREAK.sub("\n", _UNSEEN.sub(" ", html)))
    text = unescape(_TAG.sub("", text))
    return _LINES.sub("\n", _SPACES.sub(" ", text)).strip()


def title_in(html: str) -> str:
    """Return what stands between the tags of the title, empty for none near the beginning."""
    match = _TITLE.search(html[:_MOST_SEARCHED])
    return " ".join(unescape(match[1]).split()) if match else ""
