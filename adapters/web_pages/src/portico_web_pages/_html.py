"""The main text of an HTML page; runs in a process of its own."""

from __future__ import annotations

import re
from html import unescape

from lxml import etree
from trafilatura import bare_extraction, load_html

__all__ = ["main_text"]

_LONG = 300_000
_MOST_TITLE = 300
# What is left out, in one pass; an unclosed one takes the rest of the page, as in a browser. Each of the patterns
# below matches to the end of the page where its own end is missing, so that all take linear time.
_UNSEEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|template|svg|title)\b[^>]*+(?:>|\Z).*?(?:</\1\s*+>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_BREAK = re.compile(r"</?(?:p|div|br|li|tr|h[1-6]|table|ul|ol|section|article|pre|blockquote|dt|dd)\b[^>]*+>?", re.I)
_TAG = re.compile(r"<[!/?a-zA-Z][^>]*+>?")
_SPACES = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\s*\n\s*")
_TITLE = re.compile(r"<title\b[^>]*+>([^<]{1,2000})", re.IGNORECASE)


def main_text(html: str) -> tuple[str, str | None]:
    """Return the main text of a page, empty if it has none, and its title.

    trafilatura finds it; where it finds nothing (a page of a few words, tags nested deeper than its parser goes),
    all text that a reader would see is taken. Long pages go through its quicker half.
    """
    text = ""
    tree = _tree(html)
    title = _title(tree, html)
    if tree is not None:
        found = bare_extraction(tree, include_comments=False, fast=len(html) > _LONG)
        text = str(getattr(found, "text", None) or "").strip()
    return text or _all_text(html), title


def _tree(html: str) -> etree._Element | None:
    try:
        tree: etree._Element | None = load_html(html)
    except (ValueError, etree.LxmlError, AssertionError):
        return None
    return tree


def _title(tree: etree._Element | None, html: str) -> str | None:
    candidates: list[str] = []
    if tree is not None:
        candidates += [str(each) for each in tree.xpath("//meta[@property='og:title']/@content")[:1]]
        candidates += [each.text or "" for each in tree.xpath("//title")[:1]]
    if not any(map(str.strip, candidates)):
        match = _TITLE.search(html[:200_000])
        candidates.append(unescape(match[1]) if match else "")
    if tree is not None and not any(map(str.strip, candidates)):
        candidates += ["".join(each.itertext()) for each in tree.xpath("//h1")[:1]]
    words = next((" ".join(text.split()) for text in candidates if text.strip()), "")
    return words[:_MOST_TITLE] or None


def _all_text(html: str) -> str:
    r"""Return what is left of a page without its tags, a line for each block.

    >>> _all_text("<head><title>T</title></head><p>One &lt;two&gt;<script>x</script></p><p>Three")
    'One <two>\nThree'
    """
    text = _BREAK.sub("\n", _UNSEEN.sub(" ", html))
    text = unescape(_TAG.sub("", text))
    return _LINES.sub("\n", _SPACES.sub(" ", text)).strip()
