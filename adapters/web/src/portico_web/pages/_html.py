"""The main text of an HTML page; runs in its own process."""

from __future__ import annotations

from lxml import etree
from trafilatura import bare_extraction, load_html

from portico_web.pages._wire import text_without_tags, title_in

_LONG = 300_000
_MOST_TITLE = 300


def main_text(html: str) -> tuple[str, str | None]:
    """Return the main text of a page, empty if it has none, and its title.

    trafilatura finds it; where it finds nothing (a page of a few words, tags nested deeper than its parser goes)
    or fails, all text that a reader would see is taken. Long pages go through its quicker half.
    """
    tree = _tree(html)
    title = _title(tree, html)
    text = _found(tree, fast=len(html) > _LONG) if tree is not None else ""
    return text or text_without_tags(html), title


def _found(tree: etree._Element, *, fast: bool) -> str:
    try:
        found = bare_extraction(tree, include_comments=False, fast=fast)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - whatever a page makes of it costs the quality of the text, not the text
        return ""
    return str(getattr(found, "text", None) or "").strip()


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
        candidates.append(title_in(html))
    if tree is not None and not any(map(str.strip, candidates)):
        candidates += ["".join(each.itertext()) for each in tree.xpath("//h1")[:1]]
    words = next((" ".join(text.split()) for text in candidates if text.strip()), "")
    return words[:_MOST_TITLE] or None
