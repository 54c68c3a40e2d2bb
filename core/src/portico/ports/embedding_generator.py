"""The EmbeddingGenerator port."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from portico.vectors import Vectors

__all__ = ["EmbeddingGenerator"]


class EmbeddingGenerator(Protocol):
    """Turns texts into unit vectors.

    Behaviour: one finite row per text, in order, of length 1 in the Euclidean norm; a text without any
    meaning (empty) gives a row of zeros. No texts give zero rows. Equal texts give equal rows. Batching is the
    generator's own work. Calls may run concurrently; long ones do not hold up the event loop.
    Errors: a subclass of ``ServiceError``.
    """

    name: str
    model: str
    """Names the vector space: vectors of one ``model`` compare, and an index made with another is remade."""

    async def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"] = "document") -> Vectors:
        """Embed ``texts`` as what is searched (document) or what is asked (query)."""
        ...
