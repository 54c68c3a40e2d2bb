"""What the package registers. It imports nothing else: `portico plugins` reads it for the list."""

from portico.plugins import Registration


def portico_planners() -> list[Registration]:
    """Register the planner."""
    return [
        Registration(
            name="acme",
            factory="portico_acme_planner.planner:AcmePlanner",
            settings="portico_acme_planner.config:AcmeSettings",
            summary="Ask every function that fits the goal's words, and put together what they say; needs no model.",
        )
    ]
