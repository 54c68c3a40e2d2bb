"""What portico-openai registers."""

from portico.plugins import Registration


def portico_chat_services() -> list[Registration]:
    """Register the chat service."""
    return [
        Registration(
            name="openai",
            factory="portico_openai.chat:OpenAIChat",
            settings="portico_openai.config:OpenAIChatSettings",
            summary="Chat with OpenAI, Azure, llama.cpp, Ollama, vLLM, LM Studio: whoever speaks OpenAI's protocol.",
        )
    ]


def portico_embedding_generators() -> list[Registration]:
    """Register the embedding generator."""
    return [
        Registration(
            name="openai",
            factory="portico_openai.embeddings:OpenAIEmbeddings",
            settings="portico_openai.config:OpenAIEmbeddingsSettings",
            summary="Embeddings of OpenAI, and of every server that speaks its protocol.",
        )
    ]
