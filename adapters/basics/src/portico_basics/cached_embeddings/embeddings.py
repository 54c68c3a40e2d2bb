"""The embedding generator that asks another one only for what it has not asked before."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, ParamSpec, TypeAlias, TypeVar

from portico.errors import ResponseInvalid
from portico.plugins import Services
from portico.ports import EmbeddingGenerator
from portico.search import Vectors
from portico_basics.cached_embeddings._cache import Cache
from portico_basics.cached_embeddings._errors import CacheUnusable
from portico_basics.cached_embeddings._wire import Purpose, model_name
from portico_basics.cached_embeddings.config import CachedEmbeddingsSettings

Rows: TypeAlias = Mapping[str, "bytes | memoryview"]
"""Vectors by their texts, as float32 bytes."""

Outcome: TypeAlias = Rows | Literal["failed", "stopped"]
"""What a call's batch came to: ``stopped`` when the call was cancelled, which is no fault of the texts."""


@dataclass(eq=False, slots=True)
class Batch:
    """The texts that one call has taken upon itself; the future is one of threads, since loops may be several."""

    texts: list[str] = field(default_factory=list)
    _future: Future[Outcome] = field(default_factory=Future)

    def end(self, outcome: Outcome) -> None:
        """Tell those who wait how it ended; only the first time counts."""
        if not self._future.done():
            self._future.set_result(outcome)

    async def outcome(self) -> Outcome:
        """Wait for the end. Whoever stops waiting leaves the others as they are."""
        return await asyncio.shield(asyncio.wrap_future(self._future))


class UnderWay:
    """The batches under way, by text and purpose. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._batches: dict[tuple[str, str], Batch] = {}
        self._lock = threading.Lock()
        self.ended = 0
        """How many batches have ended: when it has grown, the cache may have what it had not."""

    def claim(self, purpose: str, texts: Iterable[str]) -> tuple[Batch, dict[Batch, list[str]]]:
        """Return a new batch of those texts that no one has, and the batches of others with the texts awaited."""
        own = Batch()
        awaited: dict[Batch, list[str]] = {}
        with self._lock:
            for text in texts:
                batch = self._batches.setdefault((purpose, text), own)
                if batch is own:
                    own.texts.append(text)
                else:
                    awaited.setdefault(batch, []).append(text)
        return own, awaited

    def release(self, purpose: str, batch: Batch) -> None:
        """Let go of a batch's texts."""
        with self._lock:
            self.ended += 1
            for text in batch.texts:
                self._batches.pop((purpose, text), None)


_LOG = logging.getLogger("portico_basics.cached_embeddings")
P = ParamSpec("P")
T = TypeVar("T")

_AT_ONCE = 1_000
"""Texts looked up or kept in one piece of work: others get their turn between two."""

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

    Name and model are the generator's, so that indexes made without the cache stay valid. All texts of a call that are
    missing go to the generator in one call, each once; what another call of this process is embedding is waited for.
    What the generator raises comes through, and nothing else does: a cache that cannot be read or written is logged
    and left alone for a minute, one that is damaged is begun anew, and a vector that is not whole is not there.
    One thread does the work with the file, which several processes may share. Nothing is opened before the first call.
    `aclose` closes the cache and not the generator, which is whose made it. Raises ``TypeError`` for texts that are no
    strings, ``ResponseInvalid`` when the generator gives another number of vectors than it was asked for.
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
        self._model = model_name(generator.model)
        self._path = path
        self._max_bytes = max_bytes
        self._wait = wait
        self._clock = clock
        self._under_way = UnderWay()
        self._dimensions: int | None = None
        self._starting = threading.Lock()
        self._cache: Cache | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._rests_until = -math.inf
        self._keeps_again = -math.inf
        self._complaint = ""

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "document") -> Vectors:
        """Return one row per text, from the cache or from the generator."""
        texts = Vectors.check_texts(texts)
        distinct = tuple(dict.fromkeys(texts))
        if not distinct:
            return await self._no_rows(purpose)
        rows = await self._rows(purpose, distinct)
        self._dimensions = len(next(iter(rows.values()))) // 4
        wanted = (rows[text] for text in texts)
        size = self._dimensions * 4 * len(texts)
        buffer = b"".join(wanted) if size <= _JOINED_INLINE else await asyncio.to_thread(b"".join, wanted)
        return Vectors(buffer, len(texts), self._dimensions)

    async def aclose(self) -> None:
        """Close the cache; the next call opens it again."""
        with self._starting:
            cache, thread = self._cache, self._thread
            self._cache = self._thread = None
        if cache is None or thread is None:
            return
        try:
            await asyncio.wrap_future(thread.submit(cache.close))
        except CacheUnusable:
            pass  # all that is lost is when some vectors were used last
        finally:
            thread.shutdown(wait=False)

    async def _no_rows(self, purpose: Purpose) -> Vectors:
        if self._dimensions is None:
            self._dimensions = await self._do(partial(Cache.dimensions, model=self._model))
        if self._dimensions is None:
            return await self._generator.embed((), purpose=purpose)
        return Vectors(b"", 0, self._dimensions)

    async def _rows(self, purpose: Purpose, texts: Sequence[str]) -> Rows:
        ended = self._under_way.ended
        rows: dict[str, bytes | memoryview] = {}
        await self._look_up(purpose, texts, rows)
        missing: list[str] = [text for text in texts if text not in rows]
        while missing:
            own, awaited = self._under_way.claim(purpose, missing)
            try:
                if own.texts and self._under_way.ended != ended:
                    # Whoever had them when they were looked up may have kept them since.
                    await self._look_up(purpose, own.texts, rows)
                await self._embed_own(purpose, own, rows)
            finally:
                own.end("stopped")
                self._under_way.release(purpose, own)
            ended = self._under_way.ended
            missing = []
            alone: list[str] = []
            for batch, theirs in awaited.items():
                outcome = await batch.outcome()
                if outcome == "stopped":
                    missing += theirs
                elif outcome == "failed":
                    # Whatever was wrong with it, others of its texts may have been the cause. Waiting for one failing
                    # call after another would take all their time.
                    alone += theirs
                else:
                    rows.update((text, outcome[text]) for text in theirs)
            if alone:
                await self._ask(purpose, alone, rows)
        if len({len(row) for row in rows.values()}) > 1:
            # The generator's vectors have another length than they had: none of the old ones compare.
            rows.clear()
            await self._ask(purpose, texts, rows)
        return rows

    async def _embed_own(self, purpose: Purpose, own: Batch, rows: dict[str, bytes | memoryview]) -> None:
        texts = [text for text in own.texts if text not in rows]
        try:
            if texts:
                vectors = await self._asked(purpose, texts, rows)
        except Exception:
            own.end("failed")
            raise
        own.end({text: rows[text] for text in own.texts})
        if texts:
            await self._keep(purpose, texts, vectors)

    async def _ask(self, purpose: Purpose, texts: Sequence[str], rows: dict[str, bytes | memoryview]) -> None:
        await self._keep(purpose, texts, await self._asked(purpose, texts, rows))

    async def _asked(self, purpose: Purpose, texts: Sequence[str], rows: dict[str, bytes | memoryview]) -> Vectors:
        vectors = await self._generator.embed(texts, purpose=purpose)
        if vectors.rows != len(texts):
            raise ResponseInvalid(
                f"Embeddings {self.name!r} gave {vectors.rows} vectors for {len(texts)} texts. None of them was kept."
            )
        self.embedded += len(texts)
        whole = vectors.buffer.cast("B")
        size = vectors.dimensions * 4
        rows.update((text, whole[start * size : (start + 1) * size]) for start, text in enumerate(texts))
        return vectors

    async def _look_up(self, purpose: Purpose, texts: Sequence[str], rows: dict[str, bytes | memoryview]) -> None:
        for part in _parts(texts, _AT_ONCE):
            found = await self._do(partial(Cache.find, model=self._model, purpose=purpose, texts=part))
            if found is None:
                return
            there = [(text, row) for text, row in zip(part, found, strict=True) if row is not None]
            self.found += len(there)
            rows.update(there)

    async def _keep(self, purpose: Purpose, texts: Sequence[str], vectors: Vectors) -> None:
        size = vectors.dimensions * 4
        whole = vectors.buffer.cast("B")
        start = 0
        for part in _parts(texts, min(_AT_ONCE, max(1, self._max_bytes // (20 * size)))):
            rows = whole[start * size : (start + len(part)) * size]
            keep = partial(Cache.keep, rows=rows, dimensions=vectors.dimensions)
            await self._do(partial(keep, model=self._model, purpose=purpose, texts=part), keeping=True)
            start += len(part)

    async def _do(self, work: Callable[[Cache], T], *, keeping: bool = False) -> T | None:
        """Have the thread do something with the cache; None when it cannot be used.

        What cannot be written for now, on a full disk perhaps, can be read all the same.
        """
        now = self._clock()
        if now < self._rests_until or (keeping and now < self._keeps_again):
            return None
        try:
            return await asyncio.wrap_future(self._submit(work))
        except CacheUnusable as trouble:
            if keeping:
                self._keeps_again = self._clock() + _REST
            else:
                self._rests_until = self._clock() + _REST
            if str(trouble) != self._complaint:
                self._complaint = str(trouble)
                _LOG.warning("%s", trouble)
            return None

    def _submit(self, work: Callable[[Cache], T]) -> Future[T]:
        # Under the lock, so that nothing is submitted to a thread that `aclose` has taken away.
        with self._starting:
            if self._cache is None or self._thread is None:
                folder = self._path.expanduser().absolute() if self._path else _default_path()
                self._cache = Cache(folder, self._max_bytes, self._wait)
                self._thread = ThreadPoolExecutor(1, thread_name_prefix="portico-basics")
            return self._thread.submit(work, self._cache)


def from_services(settings: CachedEmbeddingsSettings, services: Services) -> CachedEmbeddings:
    """Make the cache over the generator that the settings name; raises what the services raise for it."""
    return CachedEmbeddings(
        services.get(EmbeddingGenerator, settings.of),
        path=settings.path,
        max_bytes=settings.max_bytes,
        wait=settings.wait,
    )


def _parts(texts: Sequence[str], length: int) -> Iterator[Sequence[str]]:
    return (texts[start : start + length] for start in range(0, len(texts), length))


def _default_path() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("portico", appauthor=False) / "embeddings"
