"""The TextSearch port over other sources of the configuration."""

from __future__ import annotations

from portico.plugins import Services
from portico.ports import TextSearch
from portico.search import FusedSearch
from portico_basics.config import FusedSettings


class FusedTextSearch(FusedSearch):
    """Ask the sources of the settings; see `portico.search.FusedSearch`.

    >>> from portico_testkit.fakes.services import FixedServices
    >>> from portico_testkit.fakes.text_search import ListEntry, ListSearch
    >>> docs, web = ListSearch([ListEntry("a red door")]), ListSearch([ListEntry("a blue door")])
    >>> services = FixedServices({(TextSearch, "docs"): docs, (TextSearch, "web"): web})
    >>> sorted(FusedTextSearch(FusedSettings(sources=("docs", "web")), services).searches)
    ['docs', 'web']

    Raises what the services raise for a source that is missing or needs this one.
    """

    def __init__(self, settings: FusedSettings, services: Services) -> None:
        searches = {name: services.get(TextSearch, name) for name in settings.sources}
        super().__init__(searches, depth=settings.depth, timeout=settings.timeout)
