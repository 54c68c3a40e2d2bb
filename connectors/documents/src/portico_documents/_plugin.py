"""What portico-documents registers."""

from portico.plugins import Registration


def portico_text_searches() -> list[Registration]:
    """Register the search of a folder."""
    return [
        Registration(
            name="documents",
            factory="portico_documents.search:DocumentsSearch",
            settings="portico_documents.config:DocumentsSettings",
            summary="A folder of documents: words and meaning, kept in an index on this machine.",
        )
    ]
