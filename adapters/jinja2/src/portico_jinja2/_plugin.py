"""What portico-jinja2 registers."""

from portico.registration import Registration


def portico_template_languages() -> list[Registration]:
    """Register the language."""
    return [
        Registration(
            name="jinja2",
            factory="portico_jinja2.language:factory",
            settings="portico_jinja2.config:Jinja2Settings",
            summary="Prompts in Jinja2, in a sandbox; functions are called as Plugin.function(...).",
        )
    ]
