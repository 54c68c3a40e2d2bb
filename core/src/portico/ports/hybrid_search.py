"""The HybridSearch port: what a vector store may have that finds by words and by vectors at once."""

from __future__ import annotations

from typing import Protocol

from portico.filter import Filter
from portico.vectors import HybridMatch, Vectors

__all__ = ["HybridMatch", "HybridSearch"]


class HybridSearch(Protocol):
    """Ranks the records of a `VectorStore` by the words of their texts and by their vectors, in the engine itself.

    A store that can has it as its attribute ``hybrid``; read it with ``getattr(store, "hybrid", None)``.
    Behaviour: it searches what the store's `upsert` wrote, as soon as that is written: of each record ``text`` and the
    vector, of one without a text the vector alone. Such a store gives texts back in `get`. Reading an unknown namespace
    finds nothing. The text of a query is data: nothing in it is read as a language of queries. Calls may run
    concurrently, each with its own words and its own ``top``.
    Errors: ``ValueError`` for wrong dimensions, for a vector that is not finite, for more than one, for a ``top`` below
    1 and for a ``share`` outside of 0 to 1; ``UnsupportedFilter``; ``StoreError`` when it cannot read.
    """

    async def search(
        self,
        namespace: str,
        text: str,
        vector: Vectors | None = None,
        *,
        top: int = 10,
        share: float | None = None,
        filter: Filter | None = None,
    ) -> list[HybridMatch]:
        """Return the ``top`` best records that pass the filter, best first.

        ``share`` is how much the words count, from 0 for the vector alone to 1 for the words alone; by default the
        store decides, by how much the words of this query tell. Without words in ``text`` the vector decides, without
        a vector the words; with neither nothing is found. A record that has none of the words and a cosine of 0 or
        less may be left out.
        """
        ...
