"""The embedding generator that asks another one only for what it has not asked before."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from portico.errors import ResponseInvalid, StoreError
from portico.plugins import Services
from portico.ports import EmbeddingGenerator
from portico.search import Vectors
from portico_basics.cached_embeddings._cache import Cache, Purpose, keys_of
from portico_basics.cached_embeddings.config import CachedEmbeddingsSettings

_LOG = logging.getLogger("portico_basics.cached_embeddings")
T = TypeVar("T")

_REST = 60.0
"""Seconds without the cache after it could not be used."""
_JOINED_INLINE = 1 << 20
"""Bytes that are put together in well under a millisecond."""


class CachedEmbeddings:
    """Embed with another generator, and keep on disk what it gave.

    >>> from tempfile import TemporaryDirectory
    >>> from portico_testkit.fakes.embedding_generator import HashingEmbeddings
    >>> async def twice(folder):
    ...     cached = CachedEmbeddings(HashingEmbeddings(), path=Path(folder))
    ...     first = await cached.embed(["a red door", "a red roof", "a red door"])
    ...     second = await cached.embed(["a red roof", "a blue door"])
    ...     await cached.aclose()
    ...     return cached.model, cached.embedded, cached.found, second[0] == first[1]
    >>> with TemporaryDirectory() as folder:
    ...     asyncio.run(twice(folder))
    ('hashing-256', 3, 1, True)

    Name and model are the generator's, so that indexes made without the cache stay valid. All missing texts of a call
    go to the generator in one call, each once. A cache that cannot be read or written is logged and left alone for a
    minute, a damaged one is begun anew, and a vector that is not whole is embedded again. Several processes may share
    the file. Nothing is opened before the first call. `aclose` closes the cache and not the generator. Raises
    ``TypeError`` for texts that are no strings, ``ResponseInvalid`` when the generator returns another number of
    vectors than it was asked for, and what the generator raises.
    """

    def __init__(
        self,
        generator: EmbeddingGenerator,
        *,
        path: Path | None = None,
        max_bytes: int = 500_000_000,
        wait: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = generator.name
        self.model = generator.model
        self.found = 0
        """How many vectors came from the cache."""
        self.embedded = 0
        """How many the generator was asked for."""
        self._generator = generator
        self._cache = Cache(path.expanduser().absolute() if path else _default_path(), max_bytes, wait)
        self._clock = clock
        self._read_again = -math.inf
        self._write_again = -math.inf
        self._warned = ""

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Vectors:
        """Return one row per text, from the cache or from the generator."""
        texts = Vectors.check_texts(texts)
        keys = dict(zip(texts, keys_of(self.model, purpose, texts), strict=True))
        if not keys:
            return await self._generator.embed((), purpose=purpose)
        rows: dict[bytes, bytes | memoryview] = {}
        rows.update(await self._find(list(keys.values())))
        missing = [text for text in keys if keys[text] not in rows]
        if missing:
            rows.update(await self._ask(missing, keys, purpose))
        if len({len(row) for row in rows.values()}) > 1:
            # The generator's vectors have another length than they had: the old ones do not compare.
            rows = dict(await self._ask(list(keys), keys, purpose))
        wanted = [rows[keys[text]] for text in texts]
        size = len(wanted[0])
        small = size * len(wanted) <= _JOINED_INLINE
        buffer = b"".join(wanted) if small else await asyncio.to_thread(b"".join, wanted)
        return Vectors(buffer, len(texts), size // 4)

    async def aclose(self) -> None:
        """Close the cache; the next call opens it again."""
        await asyncio.to_thread(self._cache.close)

    async def _find(self, keys: Sequence[bytes]) -> Mapping[bytes, bytes]:
        if self._clock() < self._read_again:
            return {}
        try:
            found = await asyncio.to_thread(self._cache.find, keys)
        except StoreError as error:
            self._read_again = self._rest_after(error)
            return {}
        self.found += len(found)
        return found

    async def _ask(
        self, texts: Sequence[str], keys: Mapping[str, bytes], purpose: Purpose
    ) -> Mapping[bytes, memoryview]:
        vectors = await self._generator.embed(texts, purpose=purpose)
        if vectors.rows != len(texts):
            raise ResponseInvalid(
                f"Embeddings {self.name!r} gave {vectors.rows} vectors for {len(texts)} texts. None of them was kept."
            )
        self.embedded += len(texts)
        whole = vectors.buffer.cast("B")
        size = vectors.dimensions * 4
        rows = {keys[text]: whole[start * size : (start + 1) * size] for start, text in enumerate(texts)}
        if self._clock() >= max(self._read_again, self._write_again):
            try:
                await asyncio.to_thread(self._keep, rows)
            except StoreError as error:
                # What cannot be written, on a full disk perhaps, can be read all the same.
                self._write_again = self._rest_after(error)
        return rows

    def _keep(self, rows: Mapping[bytes, memoryview]) -> None:
        import numpy as np

        finite = [(key, row) for key, row in rows.items() if np.isfinite(np.frombuffer(row, np.float32)).all()]
        if finite:
            self._cache.keep(finite)

    def _rest_after(self, error: StoreError) -> float:
        if str(error) != self._warned:
            self._warned = str(error)
            _LOG.warning("%s Texts that are not found there are embedded. It is tried again in a minute.", error)
        return self._clock() + _REST


def from_services(settings: CachedEmbeddingsSettings, services: Services) -> CachedEmbeddings:
    """Make the cache over the generator that the settings name; raises what the services raise for it."""
    return CachedEmbeddings(
        services.get(EmbeddingGenerator, settings.of),
        path=settings.path,
        max_bytes=settings.max_bytes,
        wait=settings.wait,
    )


def _default_path() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("portico", appauthor=False) / "embeddings"
