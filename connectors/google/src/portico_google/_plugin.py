"""What portico-google registers."""

from portico.plugins import Registration


def portico_text_searches() -> list[Registration]:
    """Register the text search `google`."""
    return [
        Registration(
            name="google",
            factory="portico_google.search:GoogleTextSearch",
            settings="portico_google.config:GoogleSettings",
            summary="Search the web, or your own sites, with Google Custom Search; ends on 2027-01-01.",
        )
    ]
