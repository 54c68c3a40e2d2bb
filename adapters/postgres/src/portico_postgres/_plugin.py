"""What portico-postgres registers."""

from portico.plugins import Registration


def portico_run_stores() -> list[Registration]:
    """Offer the journal as ``postgres``."""
    return [
        Registration(
            name="postgres",
            factory="portico_postgres.run_store:PostgresRunStore",
            settings="portico_postgres.config:PostgresRunSettings",
            summary="The journal of runs in PostgreSQL, which processes on many machines share.",
        )
    ]


def portico_vector_stores() -> list[Registration]:
    """Offer the vectors as ``postgres``."""
    return [
        Registration(
            name="postgres",
            factory="portico_postgres.vector_store:PostgresVectorStore",
            settings="portico_postgres.config:PostgresVectorSettings",
            summary="Vectors in PostgreSQL by pgvector, exactly or along a graph, with hybrid search.",
        )
    ]
