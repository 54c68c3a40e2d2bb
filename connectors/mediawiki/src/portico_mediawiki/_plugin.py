"""What portico-mediawiki registers."""

from portico.plugins import Registration


def portico_text_searches() -> list[Registration]:
    """Register the search of a wiki."""
    return [
        Registration(
            name="mediawiki",
            factory="portico_mediawiki.search:MediaWikiTextSearch",
            settings="portico_mediawiki.config:MediaWikiSettings",
            summary="Wikipedia, and every other wiki on MediaWiki; no key.",
        )
    ]
