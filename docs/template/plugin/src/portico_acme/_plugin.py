"""What the package registers. It imports nothing else: `portico plugins` reads it for the list."""

from portico.plugins import Registration


def portico_function_plugins() -> list[Registration]:
    """Register the function plugin."""
    return [
        Registration(
            name="acme",
            factory="portico_acme.functions:AcmeFunctions",
            settings="portico_acme.config:AcmeSettings",
            summary="Explains the words of a glossary.",
        )
    ]
