"""What portico-httpx registers."""

from portico.registration import Registration


def portico_http_clients() -> list[Registration]:
    """Register the client on httpx."""
    return [
        Registration(
            name="httpx",
            factory="portico_httpx.client:HttpxHttpClient",
            settings="portico_httpx.config:HttpxSettings",
            summary="HTTP for connectors on httpx: bounded, patient with services that ask for it, discreet with keys.",
        )
    ]
