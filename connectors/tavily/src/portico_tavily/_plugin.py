"""What portico-tavily registers."""

from portico.plugins import Registration


def portico_text_searches() -> list[Registration]:
    """Register the search of the web."""
    return [
        Registration(
            name="tavily",
            factory="portico_tavily.search:TavilyTextSearch",
            settings="portico_tavily.config:TavilySettings",
            summary="The web by Tavily: passages chosen for language models, with scores; needs a key.",
        )
    ]
