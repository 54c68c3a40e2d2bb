"""Search results for people: where, and the words around what was asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from portico.search import TextSearchResult
from portico_cli.answer_text import Hanging
from portico_cli.output import plain
from portico_cli.places import linked, place_of

__all__ = ["result_lines", "snippet"]

_LENGTH = 280
_WORD = re.compile(r"\w+")


def result_lines(query: str, results: Sequence[TextSearchResult], *, first: int = 1) -> Iterator[RenderableType]:
    """Yield the results, numbered from ``first``, with the query's words marked."""
    if not results:
        yield Text("Nothing was found.")
        return
    width = len(str(first + len(results) - 1)) + 2
    for number, result in enumerate(results, first):
        if number > first:
            yield Text()
        place = place_of(result.name, result.link)
        head = Text()
        if place.shown:
            head.append_text(linked(Text(place.shown, style="cyan"), place.link))
        if place.title:
            head.append(("  " if place.shown else "") + place.title, style="bold")
        yield Hanging(head, str(number).ljust(width), " " * width, "bold green")
        yield Hanging(snippet(query, result.value), " " * width, " " * width)


def snippet(query: str, passage: str) -> Text:
    r"""Return the part of a passage in which most of the query's words stand, with those words marked.

    >>> snippet("retry", "First this.\nThen retry it.").plain
    'First this. Then retry it.'
    """
    text = " ".join(plain(passage).split())
    marks = [found.span() for found in _WORD.finditer(text) if _wanted(found[0], _words(query))]
    start = _best_start(marks) if len(text) > _LENGTH else 0
    if start:
        # Some words before the first mark, from the start of a word.
        start = max(0, min(start - 40, len(text) - _LENGTH))
        start = text.find(" ", start) + 1 if start else 0
    end = len(text)
    if end - start > _LENGTH:
        space = text.rfind(" ", start, start + _LENGTH)
        end = space if space > start else start + _LENGTH
    made = Text(text[start:end])
    for first, last in marks:
        if start <= first and last <= end:
            made.stylize("bold yellow", first - start, last - start)
    if start:
        made = Text("… ").append_text(made)
    if end < len(text):
        made.append(" …")
    return made


def _best_start(marks: Sequence[tuple[int, int]]) -> int:
    best, most = 0, 0
    for index, (start, _) in enumerate(marks):
        within = sum(end <= start + _LENGTH - 40 for _, end in marks[index : index + 60])
        if within > most:
            best, most = start, within
    return best


def _words(query: str) -> tuple[str, ...]:
    words = [word.casefold() for word in _WORD.findall(query)]
    # Short words are mostly grammar; they count only where there are no others.
    return tuple(word for word in words if len(word) > 3) or tuple(words)


def _wanted(word: str, words: Sequence[str]) -> bool:
    folded = word.casefold()
    # One form of a word marks the others: what begins alike but for the ending.
    return any(
        folded == wanted or (len(wanted) > 3 and folded[: max(4, len(wanted) - 2)] == wanted[: max(4, len(wanted) - 2)])
        for wanted in words
    )
