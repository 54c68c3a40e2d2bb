"""A package for the tests of evaluations: a planner that does what the goal says, and a model that judges."""

from portico.plugins import Registration


def portico_planners() -> list[Registration]:
    return [Registration(name="told", factory="portico_examinee.parts:Told", summary="Does what the goal says.")]


def portico_chat_services() -> list[Registration]:
    return [Registration(name="grader", factory="portico_examinee.parts:Grader", summary="Judges by words.")]
