"""A package for the tests of the server: functions that can be watched, and a planner and a chat that obey the goal."""

from portico.plugins import Registration


def portico_function_plugins() -> list[Registration]:
    return [Registration(name="tools", factory="portico_workshop.tools:Tools", summary="Functions for plans.")]


def portico_planners() -> list[Registration]:
    return [Registration(name="obedient", factory="portico_workshop.planner:Obedient", summary="Obeys the goal.")]


def portico_chat_services() -> list[Registration]:
    return [Registration(name="parrot", factory="portico_workshop.parrot:Parrot", summary="Obeys the last message.")]


def portico_text_searches() -> list[Registration]:
    return [Registration(name="shelf", factory="portico_workshop.shelf:Shelf", summary="Passages of the tests.")]
