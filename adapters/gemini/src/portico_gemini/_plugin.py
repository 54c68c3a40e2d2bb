"""What portico-gemini registers."""

from portico.plugins import Registration


def portico_chat_services() -> list[Registration]:
    """Register the chat service."""
    return [
        Registration(
            name="gemini",
            factory="portico_gemini.chat:GeminiChat",
            settings="portico_gemini.config:GeminiChatSettings",
            summary="Chat with Google's Gemini, at the Gemini API or at Vertex.",
        )
    ]


def portico_embedding_generators() -> list[Registration]:
    """Register the embedding generator."""
    return [
        Registration(
            name="gemini",
            factory="portico_gemini.embeddings:GeminiEmbeddings",
            settings="portico_gemini.config:GeminiEmbeddingsSettings",
            summary="Embeddings of Google's Gemini, at the Gemini API or at Vertex.",
        )
    ]
