"""The VectorStore port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from portico._ports.hybrid_search import HybridSearch
    from portico._ports.search_index import IndexProgress
    from portico._search.filters import Filter, FilterSupport
    from portico._search.vectors import VectorMatch, VectorRecord, Vectors


class VectorStore(Protocol):
    """Stores vectors with metadata, by namespace, and finds the nearest. Inherit from it to have the optional members.

    Behaviour: the first `upsert` makes a namespace and sets its dimensions; reading an unknown one finds nothing. Each
    write is atomic for others. Calls may run concurrently, also from several processes when the store is persistent.
    Errors: ``ValueError`` for wrong dimensions, vectors that are not finite and a ``top`` below 1;
    ``UnsupportedOption``; ``StoreError`` when it cannot read or write, ``StoreDamaged`` when `drop` would repair it.
    """

    name: str
    persistent: bool  # whether the content outlives the process
    filter_support: FilterSupport
    hybrid: HybridSearch | None = None  # optional: search by words and vectors in the engine
    activity: IndexProgress | None = None  # optional: how far its index is, while a call trains or extends it

    async def upsert(self, namespace: str, records: Sequence[VectorRecord], vectors: Vectors) -> None:
        """Add records or replace those of the same id; row i of ``vectors`` belongs to record i."""
        ...

    async def delete(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove records; return how many there were. Unknown ids are not an error."""
        ...

    async def get(self, namespace: str, ids: Sequence[str]) -> tuple[list[VectorRecord], Vectors | None]:
        """Return the records known among ``ids``, in that order, and their vectors; None when there are none."""
        ...

    async def search(
        self, namespace: str, queries: Vectors, *, top: int = 10, filter: Filter | None = None
    ) -> list[list[VectorMatch]]:
        """Return the ``top`` best records that pass the filter, best first, one list for each query row."""
        ...

    async def count(self, namespace: str) -> int:
        """Return how many records the namespace has."""
        ...

    def ids(self, namespace: str) -> AsyncIterator[str]:
        """Yield every id of the namespace, in no particular order."""
        ...

    async def drop(self, namespace: str) -> None:
        """Remove a namespace with everything in it; an unknown one is not an error."""
        ...
