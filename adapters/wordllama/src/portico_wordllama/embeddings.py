"""The EmbeddingGenerator on wordllama's model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from portico.plugins import Services
from portico.search import Vectors
from portico_wordllama.config import WordllamaSettings

if TYPE_CHECKING:
    from portico_wordllama._model import Model


class WordllamaEmbeddings:
    """Embed texts with the model inside the wordllama distribution, on this machine.

    >>> import asyncio
    >>> vectors = asyncio.run(WordllamaEmbeddings().embed(["How do I install it?", "Installation", ""]))
    >>> vectors.rows, vectors.dimensions
    (3, 256)

    The first call loads the model (33 MB of vectors, about a quarter of a second) in a thread. Work goes to
    threads in batches: the event loop stays free, and a cancelled call stops after its present batch. The
    purpose of a text makes no difference to this model.
    Raises ``ServiceUnavailable`` when the model's files are missing or damaged, ``TypeError`` for texts that are
    no strings.
    """

    def __init__(self, settings: WordllamaSettings | None = None, services: Services | None = None) -> None:
        self._settings = settings or WordllamaSettings()
        self._model: Model | None = None
        self._loading = threading.Lock()
        self.name = "wordllama"
        self.model = f"wordllama/l2_supercat-{self._settings.dimensions}"

    async def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"] = "document") -> Vectors:
        """Return one unit row per text, zeros for a blank one."""
        texts = Vectors.check_texts(texts)
        dimensions = self._settings.dimensions
        buffer = bytearray(len(texts) * dimensions * 4)
        for start in range(0, len(texts), self._settings.batch_size):
            batch = texts[start : start + self._settings.batch_size]
            await asyncio.to_thread(self._fill, buffer, start * dimensions * 4, batch)
        return Vectors(buffer, len(texts), dimensions)

    def _fill(self, buffer: bytearray, offset: int, texts: Sequence[str]) -> None:
        rows = self._load().rows(texts)
        buffer[offset : offset + rows.nbytes] = rows.data.cast("B")

    def _load(self) -> Model:
        with self._loading:
            if self._model is None:
                from portico_wordllama._model import load

                self._model = load(self._settings.dimensions)
            return self._model
