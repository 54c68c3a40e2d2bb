"""What portico-function-calling-planner registers."""

from portico.plugins import Registration


def portico_planners() -> list[Registration]:
    """Register the planner `function_calling`."""
    return [
        Registration(
            name="function_calling",
            factory="portico_function_calling_planner.planner:FunctionCallingPlanner",
            settings="portico_function_calling_planner.config:FunctionCallingSettings",
            summary="The chat service's own tool calls: those of one reply run side by side, each as a checked step.",
        )
    ]
