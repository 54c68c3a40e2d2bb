"""What portico-sequential-planner registers."""

from portico.plugins import Registration


def portico_planners() -> list[Registration]:
    """Register the planner `sequential`."""
    return [
        Registration(
            name="sequential",
            factory="portico_sequential_planner.planner:SequentialPlanner",
            settings="portico_sequential_planner.config:SequentialSettings",
            summary="A model writes the whole plan at once, in the XML of Semantic Kernel's sequential planner.",
        )
    ]
