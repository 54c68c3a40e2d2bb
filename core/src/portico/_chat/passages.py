"""The passages that searches found, with the numbers by which an answer cites them."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from portico._chat.citations import SHORTEST_QUOTE, Citations, place_of
from portico._chat.messages import Citation, Source, ToolResult
from portico._search.results import TextSearchResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

    from portico._chat.messages import ChatReply
    from portico._functions.middleware import ToolCallInvocation
    from portico._kernel_like import KernelLike

_MOST = 999
"""Passages that one result may give, and pieces of JSON in a text."""
_MOST_VALUES = 20_000
"""Values of a result among which passages are looked for."""
_MOST_FAILED = 8
"""Places of a text where JSON seems to begin and does not: each may take as long as the text."""
_DEEPEST = 20
"""Levels of a value that are looked at."""
_JSON = re.compile(r'\[\s*[\[{"\]]|\{\s*"')
_TEXTS = ("value", "text", "content", "snippet", "extract", "description")
_NAMES = ("name", "title", "path")
_LINKS = ("link", "url")
_PASSAGE = {"value", "name", "link"}


class Passages:
    """Number what searches find in one conversation; a passage that is found again keeps its number.

    >>> passages = Passages()
    >>> first = passages.add([TextSearchResult("Ports are protocols.", "Ports"), TextSearchResult("Plans are data.")])
    >>> again = passages.add([TextSearchResult("Plans are data."), TextSearchResult("Turns end.")])
    >>> [source.number for source in again], passages.sources[0].name
    ([2, 3], 'Ports')

    So the marks in answers of earlier turns stay clear.
    """

    def __init__(self, *, first: int = 1, sources: Iterable[Source] = ()) -> None:
        """Begin with ``first``, or go on after ``sources`` that have their numbers."""
        self._by_number: dict[int, Source] = {}
        self._next = first
        self._numbers: dict[tuple[str | None, str], int] = {}
        self._by_text: dict[str, Source] = {}
        for source in sources:
            self._next = max(self._next, source.number + 1)
            self._by_number[source.number] = source
            self._numbers[source.link, source.text] = source.number
            self._by_text.setdefault(source.text, source)

    @property
    def sources(self) -> tuple[Source, ...]:
        """All that were numbered, in the order of their numbers."""
        return tuple(self._by_number.values())

    def add(self, results: Iterable[TextSearchResult | Mapping[str, Any]]) -> tuple[Source, ...]:
        """Give numbers to passages as a search gives them, or in the JSON form of functions; each comes once."""
        found = {(source.link, source.text): source for source in Citations.number(results)}
        made = []
        for key, source in found.items():
            number = self._numbers.get(key)
            if number is None:
                number, self._next = self._next, self._next + 1
                self._numbers[key] = number
                self._by_number[number] = replace(source, number=number)
                self._by_text.setdefault(source.text, self._by_number[number])
            made.append(self._by_number[number])
        return tuple(made)

    def take(self, result: Any, *, found: bool = True, name: str | None = None) -> tuple[Source, ...]:
        """Give numbers to the passages in a JSON result, in its order.

        Passages are objects with ``value``, ``name`` and ``link``. In what a search ``found`` texts and the records of
        a source are passages too; ``name`` is for texts. A text of a passage that is known is that passage.
        """
        if isinstance(result, str):
            written, around = _json_in(result)
            result = list(filter(self._holds, written)) or ([result] if "".join(around).strip() else written)
        taken: dict[int, Source] = {}
        for each in islice(_read(result, found, name), _MOST):
            known = None if each.link else self._by_text.get(each.value)
            source = known or self.add([each])[0]
            taken[source.number] = source
        return tuple(taken.values())

    def show(self, result: Any, *, depth: int = _DEEPEST) -> Any:
        """Return a JSON result with the numbers of its passages, for a model to cite them by."""
        if isinstance(result, str):
            known = self._by_text.get(result)
            return result if known is None else f"[{known.number}] {result}"
        if isinstance(result, list) and depth:
            return [self.show(part, depth=depth - 1) for part in result]
        if not isinstance(result, dict) or not depth:
            return result
        record = self._find_record(result)
        if record is not None:
            return {"number": record.number, **result}
        return {name: self.show(part, depth=depth - 1) for name, part in result.items()}

    def around(self, value: Any, *, empty: bool = False) -> tuple[str, str] | None:
        """Return what stands around the known passages of a result; None for others. ``empty`` takes empty ones too."""
        written, around = _json_in(value) if isinstance(value, str) else ([value], ["", ""])
        known = [each for each in written if not _is_empty(each)]
        found = all(map(self._holds, known)) if known else empty and written and not "".join(around).strip()
        return (around[0], around[-1]) if found else None

    def check(self, reply: ChatReply | str) -> Citations:
        """Check what an answer cites, by marks or a passage's whole text; a service that cites knows its own marks.

        Pages that the service found itself are cited too, with the numbers after those of the passages.
        """
        text, own = (reply, ()) if isinstance(reply, str) else (reply.text, reply.citations)
        if not all(map(self._has, own)):
            return self._check_with_pages(text, own)
        check = Citations.check("" if own else text, self.sources)
        whole = [each for each in check.uncited if len(each.text) >= SHORTEST_QUOTE and each.text.strip() in text]
        quoted = own or [Citation(each.number, each.name, each.link, each.text) for each in whole]
        cited = tuple(dict.fromkeys((*check.cited, *quoted)))
        numbers = {each.number for each in cited}
        return replace(check, cited=cited, uncited=tuple(each for each in check.uncited if each.number not in numbers))

    def _has(self, citation: Citation) -> bool:
        source = self._by_number.get(citation.number)
        return source is not None and (citation.link is None or _place(source.link) == _place(citation.link))

    def _check_with_pages(self, text: str, found: Iterable[Citation]) -> Citations:
        numbers = {_place(source.link): source.number for source in reversed(self.sources) if source.link}
        for each in found:
            numbers.setdefault(_place(each.link), max(self._next, *(number + 1 for number in numbers.values()), 1))
        quoted = [replace(each, number=numbers[_place(each.link)]) for each in found]
        pages = {each.number: Source(each.number, each.quote, each.name, each.link) for each in reversed(quoted)}
        check = Citations.check(text, [*({**pages, **self._by_number}).values()])
        cited = tuple(dict.fromkeys((*check.cited, *quoted)))
        known = {each.number for each in cited}
        return replace(check, cited=cited, uncited=tuple(each for each in self.sources if each.number not in known))

    def _holds(self, value: Any, depth: int = _DEEPEST) -> bool:
        if isinstance(value, str):
            return value in self._by_text
        if isinstance(value, dict) and self._find_record(value) is not None:
            return True
        parts = list(value.values()) if isinstance(value, dict) else value
        full = [part for part in parts if not _is_empty(part)] if isinstance(parts, list) and depth else []
        return bool(full) and all(self._holds(part, depth - 1) for part in full)

    def _find_record(self, value: dict[str, Any]) -> Source | None:
        record = _record(value)
        return None if record is None else self._by_number.get(self._numbers.get((record.link, record.value), 0))

    @staticmethod
    def of_run() -> Passages:
        """Return the passages of the run that the calling function runs for; new ones outside of a run."""
        return CURRENT.get() or Passages()

    @staticmethod
    def number_results(
        kernel: KernelLike, passages: Callable[[], Passages | None]
    ) -> Callable[[ToolCallInvocation, Callable[[], Awaitable[ToolResult]]], Awaitable[ToolResult]]:
        """Return a tool call filter that numbers the passages which search functions give to a model, for it to cite.

        Where a function with the search tag returns passages as ``GetTextSearchResults`` does, each gets the ``number``
        that it has among ``passages``, those of the conversation. Anything else stays as it is, and so does everything
        where there is no conversation (None).
        """

        async def filter(context: ToolCallInvocation, proceed: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
            result = await proceed()
            spec = kernel.specs.get(context.call.name)
            with suppress(ValueError):
                found = json.loads(result.content) if spec is not None and spec.is_search and not result.error else None
                if (known := passages()) is not None and known.take(found, found=False):
                    return replace(result, content=json.dumps(known.show(found), ensure_ascii=False))
            return result

        return filter


def _read(result: Any, found: bool, name: str | None) -> Iterator[TextSearchResult]:
    """Yield the passages in a JSON result, in its order."""
    waiting = [result]
    for _ in range(_MOST_VALUES):
        if not waiting:
            return
        value = waiting.pop()
        if isinstance(value, TextSearchResult):
            yield value
        elif isinstance(value, list):
            waiting += reversed(value)
        elif isinstance(value, str):
            if found and value.strip():
                yield TextSearchResult(value, name)
        elif isinstance(value, dict):
            record = _record(value)
            if record is not None and (found or ("link" in value and value.keys() <= _PASSAGE)):
                yield record
            else:
                waiting += reversed([part for part in value.values() if isinstance(part, list | dict)])


def _place(link: str | None) -> str:
    return place_of(link or "")[0]


def _is_empty(value: Any) -> bool:
    return value in ([], {}) or (isinstance(value, list) and all(part == [] for part in value))


def _record(value: dict[str, Any]) -> TextSearchResult | None:
    """Return a passage, or what is one in a source's own record."""
    text, name, link = (
        next((said for key in keys if isinstance(said := value.get(key), str) and said.strip()), None)
        for keys in (_TEXTS, _NAMES, _LINKS)
    )
    return None if text is None else TextSearchResult(text, name, link)


def _json_in(text: str) -> tuple[list[Any], list[str]]:
    """Return the lists and objects that are written as JSON in a text, and what stands around them."""
    decoder, end, failed = json.JSONDecoder(), 0, 0
    values, around = [], []
    for match in islice(_JSON.finditer(text), _MOST):
        if match.start() >= end:
            try:
                value, after = decoder.raw_decode(text, match.start())
            except (ValueError, RecursionError):
                failed += 1
                if failed == _MOST_FAILED:
                    break
                continue
            values.append(value)
            around.append(text[end : match.start()])
            end = after
    return values, [*around, text[end:]]


CURRENT: ContextVar[Passages | None] = ContextVar("portico_passages", default=None)
"""The passages of the run whose step runs now; functions read them with `Passages.of_run`."""
