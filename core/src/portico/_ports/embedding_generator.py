"""The EmbeddingGenerator port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from portico._search.vectors import Vectors


class EmbeddingGenerator(Protocol):
    """Turns texts into unit vectors.

    Behaviour: one finite row for each text, in order, of Euclidean length 1; a text without meaning (empty) gives a row
    of zeros. No texts give zero rows. Equal texts give equal rows. The generator makes batches itself. Calls may run
    concurrently; long ones do not block the event loop.
    Errors: a subclass of ``ServiceError``.
    """

    name: str
    model: str
    """The name of the vector space. Vectors of one ``model`` compare; an index of another is built again."""

    async def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"] = "document") -> Vectors:
        """Embed ``texts`` as documents or as queries."""
        ...
