"""A source that holds what its settings say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portico.plugins import Secret
from portico.ports import IndexProgress, IndexReport
from portico.search import (
    FilterSupport,
    SearchCapabilities,
    SearchConnector,
    SearchResults,
    TextSearchOptions,
    TextSearchResult,
)


@dataclass(frozen=True)
class ShelfSettings:
    passages: tuple[str, ...] = ("Retry is set in settings.py.",)
    link: str | None = "file:///shelf/book.md#L7"
    name: str = "book.md › Chapter"
    path: Path | None = None
    seconds: float = 0.0
    marker: Path | None = None
    failure: str = ""
    suggestion: str = ""
    searching: float = 0.0
    key: Secret | None = None
    documents: int = 3
    indexed: bool = True


class ShelfIndex:
    def __init__(self, settings: ShelfSettings) -> None:
        self.settings = settings

    async def update(self, *, progress: Callable[[IndexProgress], None] | None = None) -> IndexReport:
        settings = self.settings
        if settings.marker is not None:
            settings.marker.write_text("begun")
        for number in range(settings.documents):
            if progress is not None:
                progress(IndexProgress(number, settings.documents, f"a/very/long/path/to/file-{number}.md"))
            await asyncio.sleep(settings.seconds / settings.documents)
        print("a library chatters")
        return IndexReport(
            added=settings.documents,
            passages=settings.documents * 4,
            embedded=settings.documents * 4,
            skipped={"binary": 2},
            problems=("torn.pdf: the file ends too soon.",),
        )


class Shelf(SearchConnector[str]):
    name = "shelf"
    capabilities = SearchCapabilities(filter=FilterSupport({"book": frozenset({"Equal", "AnyOf"})}))

    def __init__(self, settings: ShelfSettings, services: Any) -> None:
        self.settings = settings
        self.index = ShelfIndex(settings) if settings.indexed else None

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[str]:
        await asyncio.sleep(self.settings.searching)
        if self.settings.failure:
            raise RuntimeError(self.settings.failure)
        kept = [
            passage
            for passage in self.settings.passages
            if FilterSupport.matches(options.filter, {"book": passage[:1]})
        ]
        about = {"suggestion": self.settings.suggestion, "raw": {"shelf": [*kept]}} if self.settings.suggestion else {}
        return SearchResults(kept[options.skip :], metadata=about)

    def to_text(self, record: str) -> str:
        return record

    def to_result(self, record: str) -> TextSearchResult:
        return TextSearchResult(record, self.settings.name, self.settings.link)


def bare_shelf(settings: None, services: Any) -> Shelf:
    return Shelf(ShelfSettings(indexed=False), services)
