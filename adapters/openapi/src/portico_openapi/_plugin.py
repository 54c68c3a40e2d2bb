"""What portico-openapi registers."""

from portico.plugins import Registration


def portico_function_plugins() -> list[Registration]:
    """Register the functions of a document."""
    return [
        Registration(
            name="openapi",
            factory="portico_openapi.functions:OpenAPIFunctions",
            settings="portico_openapi.config:OpenAPISettings",
            summary="The operations of an OpenAPI 3.0 or 3.1 document, called over HTTP.",
        )
    ]
