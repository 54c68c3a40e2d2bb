"""What portico-extractive registers."""

from portico.registration import Registration


def portico_chat_services() -> list[Registration]:
    """Register the service that quotes."""
    return [
        Registration(
            name="extractive",
            factory="portico_extractive.chat:ExtractiveChat",
            settings="portico_extractive.config:ExtractiveSettings",
            summary="Answers by quoting the sources of a request word for word; no model, nothing invented.",
        )
    ]
