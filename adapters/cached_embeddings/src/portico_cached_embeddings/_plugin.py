"""What portico-cached-embeddings registers."""

from portico.registration import Registration


def portico_embedding_generators() -> list[Registration]:
    """Offer the cache as ``cached``."""
    return [
        Registration(
            name="cached",
            factory="portico_cached_embeddings.embeddings:from_services",
            settings="portico_cached_embeddings.config:CachedEmbeddingsSettings",
            summary="Another embedding generator, whose vectors are kept on disk so that none is paid for twice.",
        )
    ]
