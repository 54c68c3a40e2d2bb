"""Filling a vector store: by workers of a queue, or in this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Sequence
from types import TracebackType
from typing import Self, TypeVar

from portico.bulk_embedding.batch import EmbeddingBatch, embed_batch
from portico.bulk_embedding.workers import EmbeddingWorkers, cancel_leftovers
from portico.ports.embedding_generator import EmbeddingGenerator
from portico.ports.job_queue import JobQueue
from portico.ports.vector_store import VectorStore

__all__ = ["StoreFilling"]

T = TypeVar("T")

_ALONE = 512
"""Records of one upsert in this process."""
_HANDED = 256
"""Records of one job: some 300 KB of texts."""
_AHEAD = 8
"""Jobs per worker that are under way, so that no worker waits for the next one."""
_MOST = 64
"""The most jobs that are under way: their texts are in the memory of this process."""
_FIRST = 1_024
_FIRST_SECONDS = 1.0
"""Texts or seconds of work in this process before it looks for workers."""


class StoreFilling:
    """Embed batches into a store. Leaving the context takes back the batches of workers.

    >>> async def filled(embeddings, store, batches):
    ...     async with StoreFilling(embeddings, store) as filling:
    ...         return sum([embedded async for _, embedded in filling.each(batches)])

    ``queue`` is called once there is much to do; it returns None where there are no workers. A store that is not
    persistent is filled here. ``say`` gets a sentence when workers make the caller wait, and None afterwards.
    """

    def __init__(
        self,
        embeddings: EmbeddingGenerator,
        store: VectorStore,
        *,
        queue: Callable[[], JobQueue | None] | None = None,
        say: Callable[[str | None], None] | None = None,
    ) -> None:
        self._embeddings = embeddings
        self._store = store
        self._queue = queue if store.persistent else None
        self._say = say or (lambda sentence: None)
        self._helpers: EmbeddingWorkers | None = None
        self._embedded = 0
        self._seconds = 0.0
        self._here = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._helpers is not None:
            await self._helpers.aclose()

    @property
    def workers(self) -> int:
        """How many worker processes help now."""
        return self._helpers.count if self._helpers is not None else 0

    @property
    def trouble(self) -> str | None:
        """Why workers could not help; None where nothing went wrong."""
        return self._helpers.trouble if self._helpers is not None else None

    async def each(self, batches: AsyncIterator[tuple[T, EmbeddingBatch]]) -> AsyncGenerator[tuple[T, int]]:
        """Fill in batches, several at once where there are workers.

        Yield for each finished batch what came with it and the number of texts embedded. ``batches`` is asked for one
        at a time, never while the caller is at work, and at most a few thousand texts are under way. Raises what `fill`
        raises, and then stops the others.
        """
        under_way: dict[asyncio.Task[int], tuple[T, int]] = {}
        more = True
        try:
            while more or under_way:
                if more and self._has_room(under_way.values()):
                    try:
                        told, batch = await anext(batches)
                    except StopAsyncIteration:
                        more = False
                        continue
                    if not batch.records:
                        yield told, 0
                        continue
                    under_way[asyncio.create_task(self.fill(batch))] = told, len(batch.texts)
                done = {task for task in under_way if task.done()}
                if not done and not (more and self._has_room(under_way.values())):
                    done, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    told, _ = under_way.pop(task)
                    yield told, task.result()
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def fill(self, batch: EmbeddingBatch) -> int:
        """Put a batch into the store and return how many texts were embedded; calls may run concurrently.

        If it raises, a part of the batch may be in the store. Raises what `embed_batch` and `EmbeddingWorkers.fill`
        raise.
        """
        if not await self._at_work():
            embedded = await self._alone(batch)
        else:
            embedded = sum(await _all([self._handed_out(part) for part in batch.parts(_HANDED)]))
        self._embedded += embedded
        return embedded

    async def cancel_leftovers(self, namespace: str) -> None:
        """Take back the jobs for a namespace that an earlier process left in the queue."""
        queue = self._queue() if self._queue is not None else None
        if queue is not None:
            await cancel_leftovers(queue, namespace)

    def _has_room(self, under_way: Collection[tuple[object, int]]) -> bool:
        room = min(self.workers * _AHEAD, _MOST) * _HANDED
        return not under_way or sum(texts for _, texts in under_way) < room

    async def _at_work(self) -> int:
        if self._embedded < _FIRST and self._seconds < _FIRST_SECONDS:
            return 0
        if self._helpers is None:
            queue = self._queue() if self._queue is not None else None
            self._queue = None
            if queue is None:
                return 0
            self._helpers = EmbeddingWorkers(queue, self._embeddings, self._store, self._say)
        return await self._helpers.at_work()

    async def _handed_out(self, part: EmbeddingBatch) -> int:
        embedded = await self._helpers.fill(part) if self._helpers is not None else None
        return await self._alone(part) if embedded is None else embedded

    async def _alone(self, batch: EmbeddingBatch) -> int:
        embedded = 0
        async with self._here:
            began = time.monotonic()
            for part in batch.parts(_ALONE):
                embedded += await embed_batch(part, self._embeddings, self._store)
            self._seconds += time.monotonic() - began
        return embedded


async def _all(works: Sequence[Awaitable[int]]) -> list[int]:
    """Await all at once; the first failure stops the others and is raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
