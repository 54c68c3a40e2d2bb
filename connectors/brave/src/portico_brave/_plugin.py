"""What portico-brave registers."""

from portico.plugins import Registration


def portico_text_searches() -> list[Registration]:
    """Register the search of the web."""
    return [
        Registration(
            name="brave",
            factory="portico_brave.search:BraveTextSearch",
            settings="portico_brave.config:BraveSettings",
            summary="The web and its news, from Brave's own index; needs a key.",
        )
    ]
