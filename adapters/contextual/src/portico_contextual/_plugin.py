"""What portico-contextual registers."""

from portico.registration import Registration


def portico_function_selectors() -> list[Registration]:
    """Register the selector that goes by the conversation."""
    return [
        Registration(
            name="contextual",
            factory="portico_contextual.selector:contextual_selector",
            settings="portico_contextual.config:ContextualSettings",
            summary="Offers a model the few functions that its conversation is about, of many.",
        )
    ]
