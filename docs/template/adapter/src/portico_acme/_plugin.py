"""What the package registers. It imports nothing else: `portico plugins` reads it for the list."""

from portico.plugins import Registration


def portico_chat_services() -> list[Registration]:
    """Register the chat service."""
    return [
        Registration(
            name="acme",
            factory="portico_acme.chat:AcmeChat",
            settings="portico_acme.config:AcmeSettings",
            summary="Quotes the sentence that fits the question best; needs no key.",
        )
    ]
