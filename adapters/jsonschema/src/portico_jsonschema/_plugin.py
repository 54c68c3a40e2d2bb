"""What portico-jsonschema registers."""

from portico.registration import Registration


def portico_schema_validators() -> list[Registration]:
    """Register the validator."""
    return [
        Registration(
            name="jsonschema",
            factory="portico_jsonschema.validator:JsonschemaValidator",
            settings="portico_jsonschema.config:JsonschemaSettings",
            summary="All of JSON Schema 2020-12, without ever fetching a reference.",
        )
    ]
