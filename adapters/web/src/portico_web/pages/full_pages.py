"""The text search that gives whole pages: core's `FullPages` as a registered source."""

from __future__ import annotations

from portico.full_pages import FullPages
from portico.ports.page_reader import PageReader
from portico.ports.text_search import TextSearch
from portico.registration import Services
from portico_web.pages.config import FullPagesSettings

__all__ = ["full_pages"]


def full_pages(settings: FullPagesSettings, services: Services) -> FullPages:
    """Wrap the source that the settings name in `FullPages`, over the configured page reader."""
    return FullPages(
        services.get(TextSearch, settings.source),
        services.get(PageReader),
        max_pages=settings.max_pages,
        seconds=settings.seconds,
        max_characters=settings.max_characters,
        concurrency=settings.concurrency,
    )
