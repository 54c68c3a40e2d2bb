"""What portico-wordllama registers."""

from portico.plugins import Registration


def portico_embedding_generators() -> list[Registration]:
    """Register the embedded generator."""
    return [
        Registration(
            name="wordllama",
            factory="portico_wordllama.embeddings:WordllamaEmbeddings",
            settings="portico_wordllama.config:WordllamaSettings",
            summary="Embeddings on this machine: no key, no network, the weights come with the package.",
        )
    ]
