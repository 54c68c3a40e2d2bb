"""The contextual selector as the host makes it: core's own, on the configured store and embeddings."""

from __future__ import annotations

from portico.plugins import Services
from portico.ports import EmbeddingGenerator, VectorStore
from portico_basics.contextual.choosing import ContextualSelector, SelectionOptions
from portico_basics.contextual.config import ContextualSettings


def contextual_selector(settings: ContextualSettings, services: Services) -> ContextualSelector:
    """Make the selector. Nothing is opened; with the ranking "lexical" neither store nor embeddings are asked for.

    >>> from typing import cast
    >>> contextual_selector(ContextualSettings(max=3, ranking="lexical"), cast("Services", None)).limit
    3
    """
    options = SelectionOptions(
        limit=settings.max, always=settings.always, minimum_score=settings.minimum_score, ranking=settings.ranking
    )
    if settings.ranking == "lexical":
        return ContextualSelector(options=options)
    return ContextualSelector(
        services.get(VectorStore), services.get(EmbeddingGenerator), namespace=settings.namespace, options=options
    )
