"""Ranking by a vector store that finds by words and by vectors at once."""

from __future__ import annotations

import sqlite3

from portico.errors import ConfigurationError
from portico.ports import HybridSearch, VectorStore
from portico_documents.own_ranking import Question
from portico_documents.ranking import Weights
from portico_documents.rows import Ranked, numbers_allowed, numbers_of
from portico_documents.terms import query_terms
from portico_documents.threads import in_thread
from portico_documents.vector_mirror import VectorMirror

_MORE = 16
_LAST_DEPTH = 6_400


def hybrid_of(store: VectorStore) -> HybridSearch:
    """Return a store's search by words and vectors; ``ConfigurationError`` for one that has none."""
    hybrid = store.hybrid
    if hybrid is None:
        raise ConfigurationError(
            f'The vector store {store.name!r} does not find by words, which `lexical = "store"` asks of it. Leave '
            "`lexical` out of the source: the index then finds words itself. Or set `use` in [vectors] to a store with "
            "hybrid search, such as postgres."
        )
    return hybrid


async def rank_in_store(
    connection: sqlite3.Connection, mirror: VectorMirror, asked: Question, count: int, weights: Weights | None
) -> list[Ranked]:
    """Return the ``count`` best passages as the store ranks them, best first.

    More is asked for where some of what it gives does not count: passages that the catalogue has not, as those of an
    update under way, and those that a filter leaves out which the store cannot apply.
    """
    hybrid = hybrid_of(mirror.store)
    filtered_here = asked.filter is not None and asked.pushed_filter is None
    allowed = None
    if asked.filter is not None and filtered_here:
        allowed = set((await in_thread(numbers_allowed, connection, asked.filter)).tolist())
    depth = count + _MORE
    while True:
        found = await hybrid.search(
            mirror.namespace,
            " ".join(query_terms(asked.text)),
            asked.vector,
            top=depth,
            share=None if weights is None else weights.lexical,
            filter=asked.pushed_filter,
        )
        numbers = await in_thread(numbers_of, connection, [match.id for match in found])
        ranked = [
            Ranked(numbers[match.id], match.score, match.lexical, match.vector)
            for match in found
            if match.id in numbers and match.score > 0.0 and (allowed is None or numbers[match.id] in allowed)
        ]
        if len(ranked) >= count or len(found) < depth or depth >= _LAST_DEPTH:
            return ranked[:count]
        depth = min(depth * 4, _LAST_DEPTH)
