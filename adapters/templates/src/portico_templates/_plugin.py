"""What portico-templates registers."""

from portico.plugins import Registration


def portico_template_languages() -> list[Registration]:
    """Register the two languages."""
    return [
        Registration(
            name="handlebars",
            factory="portico_templates.handlebars.language:factory",
            settings="portico_templates.handlebars.config:HandlebarsSettings",
            summary="Prompts in Handlebars: loops, conditions and partials, with functions as helpers.",
        ),
        Registration(
            name="jinja2",
            factory="portico_templates.jinja2.language:factory",
            settings="portico_templates.jinja2.config:Jinja2Settings",
            summary="Prompts in Jinja2, in a sandbox; functions are called as Plugin.function(...).",
        ),
    ]


def portico_planners() -> list[Registration]:
    """Register the planner `handlebars`."""
    return [
        Registration(
            name="handlebars",
            factory="portico_templates.planner.planner:HandlebarsPlanner",
            settings="portico_templates.planner.config:HandlebarsPlannerSettings",
            summary="The plan is one Handlebars template that a model writes; its helpers are the functions.",
        )
    ]
