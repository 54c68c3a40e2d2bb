"""What the package registers. It imports nothing else: `portico plugins` reads it for the list."""

from portico.plugins import Registration


def portico_text_searches() -> list[Registration]:
    """Register the text search."""
    return [
        Registration(
            name="acme",
            factory="portico_acme.search:AcmeSearch",
            settings="portico_acme.config:AcmeSettings",
            summary="Pages about anvils and rocket skates.",
        )
    ]
