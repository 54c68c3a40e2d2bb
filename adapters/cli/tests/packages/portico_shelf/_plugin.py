"""A package for the tests of the command line: a source with an index, and a planner that says what it is told."""

from portico.plugins import Registration


def portico_text_searches() -> list[Registration]:
    return [
        Registration(
            name="shelf",
            factory="portico_shelf.shelf:Shelf",
            settings="portico_shelf.shelf:ShelfSettings",
            summary="Passages that the test wrote down.",
        ),
        Registration(name="bare", factory="portico_shelf.shelf:bare_shelf", summary="A shelf without settings."),
    ]


def portico_planners() -> list[Registration]:
    return [
        Registration(
            name="scripted",
            factory="portico_shelf.scripted:Scripted",
            settings="portico_shelf.scripted:ScriptedSettings",
            summary="Ends as the test wrote down.",
        )
    ]


def portico_function_plugins() -> list[Registration]:
    return [
        Registration(name="tools", factory="portico_shelf.tools:Tools", summary="Functions for plans."),
        Registration(
            name="errands", factory="portico_shelf.errands:Errands", summary="Functions that take their time."
        ),
    ]


def portico_chat_services() -> list[Registration]:
    return [
        Registration(
            name="parrot",
            factory="portico_shelf.parrot:Parrot",
            settings="portico_shelf.parrot:ParrotSettings",
            summary="Does what the last message says.",
        )
    ]


def portico_runners() -> list[Registration]:
    return [
        Registration(
            name="crew",
            factory="portico_shelf.crew:Crew",
            settings="portico_shelf.crew:CrewSettings",
            summary="Has workers, and a queue in memory.",
        )
    ]
