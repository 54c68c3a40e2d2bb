"""Show search results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from portico.search import TextSearchResult
from portico_cli.show.layout import Hanging, place_head
from portico_cli.show.output import plain

_LENGTH = 280
_WORD = re.compile(r"\w+")


def result_lines(query: str, results: Sequence[TextSearchResult], *, first: int = 1) -> Iterator[RenderableType]:
    """Yield the results, numbered from ``first``, with the words of the query marked."""
    if not results:
        yield Text("Nothing was found.")
        return
    width = len(str(first + len(results) - 1)) + 2
    for number, result in enumerate(results, first):
        if number > first:
            yield Text()
        head = place_head(result.name, result.link, "bold")
        yield Hanging(head, str(number).ljust(width), "bold green")
        yield Hanging(snippet(query, result.value), " " * width)


def snippet(query: str, passage: str) -> Text:
    r"""Return a part of a passage around the first word of the query, with the words of the query marked.

    >>> snippet("retry", "First this.\nThen retry it.").plain
    'First this. Then retry it.'

    A word of the query is marked in other forms too: those with the same beginning.
    """
    text = " ".join(plain(passage).split())
    words = _WORD.findall(query)
    # Short words are mostly grammar; they count only if there are no others.
    stems = [re.escape(word[: max(4, len(word) - 2)]) for word in words if len(word) > 3] or map(re.escape, words)
    mark = re.compile(rf"\b(?:{'|'.join(stems)})\w*", re.IGNORECASE) if words else None
    start, end = 0, len(text)
    if end > _LENGTH:
        found = mark.search(text) if mark else None
        near = max(0, min(found.start() - 40 if found else 0, end - _LENGTH))
        start = text.rfind(" ", 0, near) + 1
        end = start + _LENGTH
    made = Text(text[start:end])
    if mark:
        made.highlight_regex(mark, "bold yellow")
    return Text.assemble("… " if start else "", made, " …" if end < len(text) else "")
