"""What portico-bing registers."""

from portico.plugins import Registration


def portico_text_searches() -> list[Registration]:
    """Register the text search `bing`."""
    return [
        Registration(
            name="bing",
            factory="portico_bing.search:BingTextSearch",
            settings="portico_bing.config:BingSettings",
            summary="Search the web and the news with a service that speaks the Bing v7 interface.",
        )
    ]
