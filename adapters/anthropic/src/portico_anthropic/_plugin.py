"""What portico-anthropic registers."""

from portico.plugins import Registration


def portico_chat_services() -> list[Registration]:
    """Register the chat service."""
    return [
        Registration(
            name="anthropic",
            factory="portico_anthropic.chat:AnthropicChat",
            settings="portico_anthropic.config:AnthropicChatSettings",
            summary="Chat with Claude, at Anthropic, on Amazon Bedrock and on Google's Vertex AI.",
        )
    ]
