"""The text search: one method asks the source, two say what a record is."""

import re
from dataclasses import dataclass

from portico import SearchConnector, SearchResults, Services, TextSearchOptions, TextSearchResult

from portico_acme.config import AcmeSettings

__all__ = ["AcmePage", "AcmeSearch"]


@dataclass(frozen=True, slots=True)
class AcmePage:
    """One record, as the source has it."""

    title: str
    body: str
    slug: str


# They stand for your source: ask it in `fetch` instead.
_PAGES = [
    AcmePage("Returns", "An anvil can be returned within thirty days.", "returns"),
    AcmePage("Sizes", "The small anvil weighs ten pounds, the big anvil ninety.", "sizes"),
    AcmePage("Delivery", "An anvil comes by train, skates come by themselves.", "delivery"),
    AcmePage("Rocket skates", "Rocket skates need a helmet and a long road.", "skates"),
]


class AcmeSearch(SearchConnector[AcmePage]):
    """Find the pages that share words with the query, those with the most first.

    >>> import asyncio
    >>> async def links(query):
    ...     search = AcmeSearch(AcmeSettings(), None)
    ...     results = await search.get_text_search_results(query)
    ...     return [result.link async for result in results]
    >>> asyncio.run(links("May I return an anvil within a week?"))[0]
    'https://acme.example/returns'
    """

    name = "acme"

    def __init__(self, settings: AcmeSettings, services: Services | None) -> None:
        self._settings = settings

    async def fetch(self, query: str, options: TextSearchOptions) -> SearchResults[AcmePage]:
        """Ask the source. The query is never blank; the filter is one that `capabilities` declare, here none."""
        asked = _words(query)
        scored = [(len(asked & _words(page.body)), page) for page in _PAGES]
        found = [page for score, page in sorted(scored, key=lambda pair: -pair[0]) if score]
        return SearchResults(found[options.skip : options.skip + options.top])

    def to_text(self, record: AcmePage) -> str:
        """Return what a model reads."""
        return record.body

    def to_result(self, record: AcmePage) -> TextSearchResult:
        """Return what an answer cites: the text, with a name and a link."""
        return TextSearchResult(record.body, record.title, f"{self._settings.site}/{record.slug}")


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))
