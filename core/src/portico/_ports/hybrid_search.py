"""The HybridSearch port: search by words and by vectors in a vector store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from portico._search.filters import Filter
    from portico._search.vectors import VectorMatch, Vectors


class HybridSearch(Protocol):
    """Ranks the records of a `VectorStore` by the words of their texts and by their vectors, in the engine.

    It is the attribute ``hybrid`` of a store. Behaviour: it finds records as soon as they are written, by ``text`` and
    vector, or by the vector alone where there is no text. Such a store returns texts in `get`. An unknown namespace
    finds nothing. The text of a query is data, not a query language. Calls may run concurrently. Errors: ``ValueError``
    for wrong dimensions, for a vector that is not finite, for more than one, for a ``top`` below 1 and for a ``share``
    outside of 0 to 1; ``UnsupportedOption``; ``StoreError`` when it cannot read.
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
    ) -> list[VectorMatch]:
        """Return the ``top`` best records that pass the filter, best first.

        ``share`` is the weight of the words, from 0 (only the vector) to 1 (only the words); by default the store
        decides. Without words in ``text`` only the vector counts, without a vector only the words; with neither,
        nothing is found. A record without any of the words and with a cosine of 0 or less may be left out.
        """
        ...
