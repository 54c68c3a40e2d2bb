"""An embedding generator for tests: no model, no file, the same vectors on every machine."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Literal
from zlib import crc32

import numpy as np
import numpy.typing as npt

from portico.search import Vectors

__all__ = ["HashingEmbeddings"]

_WORD = re.compile(r"\w+")


class HashingEmbeddings:
    """Embed a text as the counts of its words, each word hashed to one dimension.

    >>> import asyncio
    >>> vectors = asyncio.run(HashingEmbeddings().embed(["a red door", "a red roof", ""]))
    >>> vectors.rows, vectors.dimensions
    (3, 256)

    Texts with words in common are alike, texts without are (collisions aside) orthogonal; case is ignored.
    CRC-32 is the hash since Python's own differs between processes. A text without a word gives zeros.
    ``calls`` and ``embedded`` count what was asked: a test sees from them what was embedded again.
    """

    def __init__(self, dimensions: int = 256, *, name: str = "hashing") -> None:
        self.name = name
        self.model = f"hashing-{dimensions}"
        self.dimensions = dimensions
        self.calls = 0
        self.embedded = 0

    async def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"] = "document") -> Vectors:
        """Return one unit row per text; the purpose makes no difference."""
        self.calls += 1
        self.embedded += len(texts)
        rows = await asyncio.to_thread(self._rows, list(texts))
        return Vectors(rows, len(texts), self.dimensions)

    def _rows(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for number, text in enumerate(texts):
            for word in _WORD.findall(text.casefold()):
                rows[number, crc32(word.encode("utf-8", "surrogatepass")) % self.dimensions] += 1
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        np.divide(rows, lengths, out=rows, where=lengths > 0)
        return rows
