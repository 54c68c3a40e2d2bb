"""What portico-retrieval-planner registers."""

from portico.registration import Registration


def portico_planners() -> list[Registration]:
    """Register the planner `retrieval`."""
    return [
        Registration(
            name="retrieval",
            factory="portico_retrieval_planner.planner:RetrievalPlanner",
            settings="portico_retrieval_planner.config:RetrievalSettings",
            summary="Search every source at once, fuse, answer with citations; needs no model.",
        )
    ]
