"""What portico-prompts registers."""

from portico.registration import Registration


def portico_function_plugins() -> list[Registration]:
    """Register the functions of a directory of prompts."""
    return [
        Registration(
            name="prompts",
            factory="portico_prompts.functions:PromptFiles",
            settings="portico_prompts.config:PromptFilesSettings",
            summary="The prompts of a directory, each a function with its settings beside it.",
        )
    ]
