"""What portico-structured-planner registers."""

from portico.plugins import Registration


def portico_planners() -> list[Registration]:
    """Register the planner `structured`."""
    return [
        Registration(
            name="structured",
            factory="portico_structured_planner.planner:StructuredPlanner",
            settings="portico_structured_planner.config:StructuredSettings",
            summary="A plan that cannot be written wrong: each step must match a JSON Schema made for it.",
        )
    ]
