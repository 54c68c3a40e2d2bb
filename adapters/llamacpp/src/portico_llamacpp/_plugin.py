"""What portico-llamacpp registers."""

from portico.plugins import Registration


def portico_chat_services() -> list[Registration]:
    """Register the model on this machine."""
    return [
        Registration(
            name="llamacpp",
            factory="portico_llamacpp.chat:LlamaCppChat",
            settings="portico_llamacpp.config:LlamaCppSettings",
            summary="A language model on this machine: no key, no server to install, weights from a GGUF file.",
        )
    ]
