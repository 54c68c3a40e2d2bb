"""What portico-stepwise-planner registers."""

from portico.plugins import Registration


def portico_planners() -> list[Registration]:
    """Register the planner `stepwise`."""
    return [
        Registration(
            name="stepwise",
            factory="portico_stepwise_planner.planner:StepwisePlanner",
            settings="portico_stepwise_planner.config:StepwiseSettings",
            summary="Thought, action, observation: one call at a time, each chosen after the last one's result.",
        )
    ]
