"""What portico-searxng registers."""

from portico.plugins import Registration


def portico_text_searches() -> list[Registration]:
    """Register the search of the web through a SearXNG."""
    return [
        Registration(
            name="searxng",
            factory="portico_searxng.search:SearxngTextSearch",
            settings="portico_searxng.config:SearxngSettings",
            summary="The web, through your own SearXNG; no key.",
        )
    ]
