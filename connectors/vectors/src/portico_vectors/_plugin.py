"""What portico-vectors registers."""

from portico.registration import Registration


def portico_text_searches() -> list[Registration]:
    """Register the search of a vector store."""
    return [
        Registration(
            name="vectors",
            factory="portico_vectors.search:configured",
            settings="portico_vectors.config:VectorsSettings",
            summary="Search what an application keeps in a vector store, by meaning.",
        )
    ]
