"""What portico-handlebars-planner registers."""

from portico.registration import Registration


def portico_planners() -> list[Registration]:
    """Register the planner `handlebars`."""
    return [
        Registration(
            name="handlebars",
            factory="portico_handlebars_planner.planner:HandlebarsPlanner",
            settings="portico_handlebars_planner.config:HandlebarsPlannerSettings",
            summary="The plan is one Handlebars template that a model writes; its helpers are the functions.",
        )
    ]
