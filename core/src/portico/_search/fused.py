"""Several sources searched as one, and their rankings fused."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from portico._chat.citations import place_of
from portico._ports.search_index import IndexProgress, IndexReport, SearchIndex
from portico._search.filters import FilterSupport
from portico._search.results import (
    SearchCapabilities,
    SearchConnector,
    SearchResults,
    TextSearchOptions,
    TextSearchResult,
)
from portico.errors import PorticoError, ServiceError, ServiceTimeout

if TYPE_CHECKING:
    from portico._ports.text_search import TextSearch


T = TypeVar("T")
H = TypeVar("H", bound=Hashable)


def fuse_by_rank(rankings: Iterable[Iterable[H]]) -> list[H]:
    """Merge rankings, best first, by reciprocal ranks.

    The score of a thing is the sum of ``1 / (60 + rank)`` over the rankings that have it (Cormack, Clarke and Büttcher,
    SIGIR 2009). Equal scores keep the order in which they came.

    >>> fuse_by_rank([["a", "b"], ["b", "c"]])
    ['b', 'a', 'c']
    """
    scores: dict[H, float] = {}
    for ranking in rankings:
        seen: set[H] = set()
        for rank, thing in enumerate(ranking, 1):
            if thing not in seen:
                seen.add(thing)
                scores[thing] = scores.get(thing, 0.0) + 1.0 / (60 + rank)
    return sorted(scores, key=scores.__getitem__, reverse=True)


@dataclass(frozen=True, slots=True)
class FusedResult:
    """A passage with the names of the sources that found it."""

    value: str
    name: str | None
    link: str | None
    sources: tuple[str, ...]


class FusedSearch(SearchConnector[FusedResult]):
    """Ask several text searches at the same time and merge their rankings into one.

    >>> class Words(SearchConnector[str]):
    ...     def __init__(self, name, *words):
    ...         self.name, self.words = name, words
    ...     async def fetch(self, query, options):
    ...         return SearchResults([word for word in self.words if query in word][: options.top])
    ...     def to_text(self, record):
    ...         return record
    ...     def to_result(self, record):
    ...         return TextSearchResult(record)
    >>> both = FusedSearch([Words("one", "red", "dark red"), Words("two", "dark red", "blue")])
    >>> async def find(query):
    ...     return [(found.value, found.sources) async for found in await both.get_search_results(query)]
    >>> asyncio.run(find("d"))
    [('dark red', ('one', 'two')), ('red', ('one',))]

    Scores of sources do not compare, so ranks decide. Passages with one link are one (see
    `FusedSearch.fuse`). Sources go by their names, or by the keys of a mapping. ``skip`` and ``top`` count
    in the merged ranking. The best ``depth`` results of each source are ranked, or a multiple where more are asked for,
    so that pages of one query fit together. ``timeout`` is in seconds for each source; None leaves it to the source.

    Every source must support the filter. There is no total count. Where a source fails, the others answer, and
    ``metadata["failures"]`` gives its name and the reason. ``metadata["sources"]`` has the metadata of the sources.
    Where all fail, the error of the first is raised, with notes on the others. The owner of the searches closes them.
    Raises ``ValueError`` for no searches, and for two of one name.
    """

    def __init__(
        self,
        searches: Iterable[TextSearch] | Mapping[str, TextSearch],
        *,
        name: str = "fused",
        depth: int = 20,
        timeout: float | None = None,
    ) -> None:
        self.name = name
        named = list(searches.items() if isinstance(searches, Mapping) else ((each.name, each) for each in searches))
        self.searches = dict(named)
        if len(self.searches) < len(named):
            raise ValueError("two searches have the same name: give a mapping with other names")
        if not self.searches:
            raise ValueError("there are no searches to fuse")
        if depth < 1:
            raise ValueError(f"depth is {depth}; it must be at least 1")
        self._depth = depth
        self._timeout = timeout
        self.capabilities = _shared_capabilities(self.searches)
        indexes = [search.index for search in self.searches.values() if search.index is not None]
        self.index = _Indexes(indexes) if indexes else None

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[FusedResult]:
        """Ask every source, and merge the answers."""
        wanted = options.skip + options.top
        # So that pages of one query fit together; the ranking of one source is the same in any depth.
        depth = wanted if len(self.searches) == 1 else -(-wanted // self._depth) * self._depth
        asked = TextSearchOptions(top=depth, filter=options.filter)
        found = await asyncio.gather(
            *(self._ask(name, search, query, asked) for name, search in self.searches.items()), return_exceptions=True
        )
        failures: dict[str, BaseException] = {}
        rankings: dict[str, list[TextSearchResult]] = {}
        details: dict[str, Mapping[str, Any]] = {}
        for name, answer in zip(self.searches, found, strict=True):
            if isinstance(answer, BaseException):
                failures[name] = answer
            else:
                rankings[name], details[name] = answer
        if not rankings:
            (name, failure), *others = failures.items()
            if not isinstance(failure, PorticoError):
                cause, failure = failure, ServiceError(f"The source {name!r} failed: {_describe(failure)}")
                failure.__cause__ = cause
            for other, error in others:
                failure.add_note(f"The source {other!r} failed too: {_describe(error)}")
            raise failure
        metadata: dict[str, Any] = {}
        if failures:
            metadata["failures"] = {name: _describe(error) for name, error in failures.items()}
        if any(details.values()):
            metadata["sources"] = {name: said for name, said in details.items() if said}
        names = tuple(rankings)
        fused = FusedSearch.fuse(rankings.values(), link=lambda one: one.link, text=lambda one: one.value)
        records = [
            FusedResult(one.value, one.name, one.link, tuple(names[number] for number in finders))
            for one, finders in fused[options.skip : wanted]
        ]
        return SearchResults(records, metadata=metadata)

    def to_text(self, record: FusedResult) -> str:
        """Return the passage's text."""
        return record.value

    def to_result(self, record: FusedResult) -> TextSearchResult:
        """Return the passage without its sources."""
        return TextSearchResult(record.value, record.name, record.link)

    async def _ask(
        self, name: str, search: TextSearch, query: str, options: TextSearchOptions
    ) -> tuple[list[TextSearchResult], Mapping[str, Any]]:
        try:
            async with asyncio.timeout(self._timeout) as limit:
                results = await search.get_text_search_results(query, options)
                try:
                    return await results.list(), results.metadata
                finally:
                    await results.aclose()
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ServiceTimeout(f"Text search {name!r} gave no answer within {self._timeout:g} seconds.") from error

    @staticmethod
    def fuse(
        rankings: Iterable[Sequence[T]], *, link: Callable[[T], str | None], text: Callable[[T], str]
    ) -> list[tuple[T, tuple[int, ...]]]:
        """Merge rankings of passages by `fuse_by_rank`; each comes with the numbers of its rankings, from 0.

        Passages with one link are one, and the longest text stays, because each service cuts its own snippet. Links are
        equal if they lead to one place (`place_of`, with the fragment). Where a ranking has several texts of
        one link, as passages of a document, and where there is no link, passages with different texts are different.

        >>> brave = [("https://a.example/door", "A door is"), ("https://a.example/hinge", "A hinge")]
        >>> google = [("http://a.example/door/", "A door is a lid.")]
        >>> FusedSearch.fuse([brave, google], link=lambda found: found[0], text=lambda found: found[1])
        [(('http://a.example/door/', 'A door is a lid.'), (0, 1)), (('https://a.example/hinge', 'A hinge'), (0,))]
        """
        placed = [
            [(place_of(url) if (url := link(thing)) else None, text(thing), thing) for thing in ranking]
            for ranking in rankings
        ]
        several: set[Hashable] = {None}
        for passages in placed:
            texts: dict[Hashable, str] = {}
            several.update(place for place, words, _ in passages if texts.setdefault(place, words) != words)
        best: dict[Hashable, T] = {}
        finders: dict[Hashable, dict[int, None]] = {}
        keys: list[list[Hashable]] = []
        for number, passages in enumerate(placed):
            keys.append([])
            for place, words, thing in passages:
                key = (place, words if place in several else None)
                keys[-1].append(key)
                if key not in best or len(words) > len(text(best[key])):
                    best[key] = thing
                finders.setdefault(key, {})[number] = None
        return [(best[key], tuple(finders[key])) for key in fuse_by_rank(keys)]


class _Indexes:
    """The indexes of several sources as one."""

    def __init__(self, indexes: list[SearchIndex]) -> None:
        self._indexes = indexes

    async def update(self, *, progress: Callable[[IndexProgress], None] | None = None) -> IndexReport:
        """Update one after the other, and return one report."""
        reports = [await index.update(progress=progress) for index in self._indexes]
        counts = ("added", "changed", "renamed", "removed", "unchanged", "passages", "embedded")
        return IndexReport(
            **{count: sum(getattr(report, count) for report in reports) for count in counts},
            skipped=sum((Counter(report.skipped) for report in reports), Counter()),
            problems=tuple(problem for report in reports for problem in report.problems),
            repaired=tuple(sentence for report in reports for sentence in report.repaired),
            revision="".join(report.revision for report in reports),
        )


def _shared_capabilities(searches: Mapping[str, TextSearch]) -> SearchCapabilities:
    """Return what every search supports; ``most`` is the sum."""
    capabilities = [search.capabilities for search in searches.values()]
    supports = [each.filter for each in capabilities]
    fields: dict[str, frozenset[str]] | None = None
    for known in (support.fields for support in supports if support.fields is not None):
        shared = known if fields is None else {name: fields[name] & known[name] for name in fields if name in known}
        fields = {name: kinds for name, kinds in shared.items() if kinds}
    most = [each.most for each in capabilities if each.most is not None]
    return SearchCapabilities(
        FilterSupport(
            fields,
            frozenset.intersection(*(support.combine for support in supports)),
            offered=tuple(
                name
                for name in dict.fromkeys(name for support in supports for name in support.offered)
                if fields is None or name in fields
            ),
        ),
        most=sum(most) if len(most) == len(capabilities) else None,
        local=all(each.local for each in capabilities),
    )


def _describe(error: BaseException) -> str:
    words = str(error) if isinstance(error, PorticoError) else f"{type(error).__name__}: {error}"
    return " ".join([words, *getattr(error, "__notes__", ())])
