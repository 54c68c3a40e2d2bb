"""What portico-milvus registers."""

from portico.plugins import Registration


def portico_vector_stores() -> list[Registration]:
    """Offer the store as ``milvus``."""
    return [
        Registration(
            name="milvus",
            factory="portico_milvus.store:MilvusVectorStore",
            settings="portico_milvus.config:MilvusSettings",
            summary="Vectors on a Milvus server, or on Milvus Lite in a folder.",
        )
    ]
