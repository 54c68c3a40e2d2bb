"""What portico-recorded-planner registers."""

from portico.registration import Registration


def portico_planners() -> list[Registration]:
    """Register the planner `recorded`."""
    return [
        Registration(
            name="recorded",
            factory="portico_recorded_planner.planner:RecordedPlanner",
            settings="portico_recorded_planner.config:RecordedSettings",
            summary="Replay a plan from a file, or a run of the journal, without a model.",
        )
    ]
