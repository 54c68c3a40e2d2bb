"""What portico-handlebars registers."""

from portico.registration import Registration


def portico_template_languages() -> list[Registration]:
    """Register the language."""
    return [
        Registration(
            name="handlebars",
            factory="portico_handlebars.language:factory",
            settings="portico_handlebars.config:HandlebarsSettings",
            summary="Prompts in Handlebars: loops, conditions and partials, with functions as helpers.",
        )
    ]
