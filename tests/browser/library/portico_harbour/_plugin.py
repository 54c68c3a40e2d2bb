"""What the package registers."""

from portico.plugins import Registration


def portico_function_plugins() -> list[Registration]:
    return [Registration("harbour", "portico_harbour.functions:Harbour", "Ferries, weather and tickets.")]


def portico_planners() -> list[Registration]:
    return [Registration("pilot", "portico_harbour.planner:Pilot", "Proposes the plans of plans.json.")]


def portico_chat_services() -> list[Registration]:
    return [Registration("clerk", "portico_harbour.clerk:Clerk", "Books what it is asked to.")]
