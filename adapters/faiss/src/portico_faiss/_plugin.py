"""What portico-faiss registers."""

from portico.plugins import Registration


def portico_vector_stores() -> list[Registration]:
    """Offer the store as ``faiss``."""
    return [
        Registration(
            name="faiss",
            factory="portico_faiss.store:FaissVectorStore",
            settings="portico_faiss.config:FaissSettings",
            summary="Vectors on FAISS, in memory or in a folder.",
        )
    ]
