"""The passages of one conversation: numbered once, so that a mark means the same passage as long as it is talked."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from portico.chat import Citation, Source, ToolResult
from portico.citations import CitationCheck, check_citations, numbered_sources
from portico.search import TextSearchResult
from portico.search_functions import SEARCH_TAG

if TYPE_CHECKING:
    from portico.chat import ChatReply
    from portico.kernel import Kernel
    from portico.middleware import ToolCallInvocation

__all__ = ["Passages", "number_search_results"]

_GREATEST = 999
"""The greatest number that a mark may have; see `portico.citations.cited_numbers`."""


class Passages:
    """Number what searches find in one conversation; a passage that is found again keeps its number.

    >>> passages = Passages()
    >>> first = passages.add([TextSearchResult("Ports are protocols.", "Ports"), TextSearchResult("Plans are data.")])
    >>> again = passages.add([TextSearchResult("Plans are data."), TextSearchResult("Turns end.")])
    >>> [source.number for source in again], passages.find(1).name
    ([2, 3], 'Ports')

    An answer of an earlier turn stands in the conversation with its marks; would a number mean another passage in the
    next turn, nobody could tell which is meant. After 999 the numbers begin anew, and what was numbered is forgotten.
    """

    def __init__(self, *, first: int = 1) -> None:
        self._next = first if 1 <= first <= _GREATEST else 1
        self._by_number: dict[int, Source] = {}
        self._numbers: dict[tuple[str | None, str], int] = {}

    @property
    def sources(self) -> tuple[Source, ...]:
        """All that were numbered, in the order of their numbers."""
        return tuple(self._by_number.values())

    def find(self, number: int) -> Source | None:
        """Return the passage of a number."""
        return self._by_number.get(number)

    def add(self, results: Iterable[TextSearchResult | Mapping[str, Any]]) -> tuple[Source, ...]:
        """Give numbers to passages as a search gives them, or in the JSON form of functions; each comes once."""
        found = {(source.link, source.text): source for source in numbered_sources(results)}
        new = sum(key not in self._numbers for key in found)
        if self._next + new > _GREATEST + 1:
            self._next, self._by_number, self._numbers = 1, {}, {}
        made = []
        for key, source in found.items():
            number = self._numbers.get(key)
            if number is None:
                number, self._next = self._next, self._next + 1
                self._numbers[key] = number
                self._by_number[number] = replace(source, number=number)
            made.append(self._by_number[number])
        return tuple(made)

    def check(self, reply: ChatReply) -> CitationCheck:
        """Check what a reply cites; a service that cites by itself knows its own marks."""
        if not reply.citations:
            return check_citations(reply.text, self.sources)
        numbers = {citation.number for citation in reply.citations}
        uncited = tuple(source for source in self.sources if source.number not in numbers)
        return CitationCheck(_once(reply.citations), uncited=uncited)


def number_search_results(
    kernel: Kernel, passages: Callable[[], Passages]
) -> Callable[[ToolCallInvocation, Callable[[], Awaitable[ToolResult]]], Awaitable[ToolResult]]:
    """Return a tool call filter that numbers the passages which search functions give to a model, for it to cite.

    Where a function with the search tag returns passages with ``value``, ``name`` and ``link``, as
    ``GetTextSearchResults`` does, each gets the ``number`` that it has in the conversation. Anything else stays as
    it is. ``passages`` gives those of the conversation that the call is made in.
    """

    async def filter(context: ToolCallInvocation, proceed: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
        result = await proceed()
        manual = kernel.manuals.get(context.call.name)
        if result.error or manual is None or SEARCH_TAG not in manual.tags:
            return result
        try:
            found = json.loads(result.content)
        except ValueError:
            return result
        if not isinstance(found, list) or not found or not all(map(_is_passage, found)):
            return result
        numbered = [
            {"number": source.number, "name": source.name, "link": source.link, "value": source.text}
            for source in passages().add(found)
        ]
        return replace(result, content=json.dumps(numbered, ensure_ascii=False))

    return filter


def _is_passage(found: object) -> bool:
    return (
        isinstance(found, dict)
        and isinstance(found.get("value"), str)
        and all(found.get(name) is None or isinstance(found[name], str) for name in ("name", "link"))
        and found.keys() <= {"value", "name", "link"}
    )


def _once(citations: Iterable[Citation]) -> tuple[Citation, ...]:
    return tuple(dict.fromkeys(citations))
