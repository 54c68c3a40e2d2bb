"""What the source finds: a passage with its place, its scores and a link that opens it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote_from_bytes

from portico.search import TextSearchResult


@dataclass(frozen=True, slots=True)
class DocumentHit:
    """A passage found. ``path`` is relative to the folder, with ``/``; lines count from 1, as do pages.

    ``score`` decides the order: ``lexical`` (the part of the query's weight that the words reach) and
    ``vector`` (the cosine), weighed. All three are about 0 for nothing in common and at most 1.
    ``line`` and ``end_line`` are the page where there are pages only.
    """

    text: str
    path: str
    headings: tuple[str, ...]
    line: int
    end_line: int
    page: int | None
    score: float
    lexical: float
    vector: float
    link: str

    @property
    def name(self) -> str:
        """What to call it: the path, then the headings that it stands under."""
        return " › ".join((self.path, *self.headings))

    def to_result(self) -> TextSearchResult:
        """Return it as any source's result."""
        return TextSearchResult(self.text, name=self.name, link=self.link)


def link_to(path: Path, line: int, page: int | None) -> str:
    """Return the ``file:`` address of a place in a file.

    Every byte of the name survives, whatever its encoding: what is not plain is percent-encoded.

    >>> link_to(Path("/docs/a b.md"), 12, None)
    'file:///docs/a%20b.md#L12'
    >>> link_to(Path("/docs/a.pdf"), 3, 3)
    'file:///docs/a.pdf#page=3'
    """
    name = os.fsencode(path.as_posix())
    # A Windows drive ("C:/docs") has no slash in front.
    slash = "" if name.startswith(b"/") else "/"
    place = f"page={page}" if page is not None else f"L{line}"
    return f"file://{slash}{quote_from_bytes(name, safe='/:')}#{place}"


def shown(relative: str) -> str:
    """Return a path as it can be printed and stored: bytes that are no UTF-8 become U+FFFD."""
    return relative.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
