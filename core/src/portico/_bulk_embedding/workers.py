"""Fills a vector store, here or by jobs of workers."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self, TypeVar

from portico._bulk_embedding.batch import KIND, EmbeddingBatch, embed_batch, job_of, names_of
from portico._jobs import STATES, JobStatus
from portico.errors import ConfigurationError, ServiceError, StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Sequence
    from types import TracebackType

    from portico._ports.embedding_generator import EmbeddingGenerator
    from portico._ports.job_queue import JobQueue
    from portico._ports.vector_store import VectorStore

T = TypeVar("T")

_PAUSE = 0.1
_LOOK = 1.0
_SUDDEN = 2.0
"""Seconds of standstill before it is reported: a worker that restarts is soon back."""
_PATIENCE = 30.0
"""Seconds of standstill before the batches are taken back, and then until workers are looked for again."""
_CLOSING = 5.0
_OPEN = ("waiting", "running")
_LEFTOVERS = 1_000
_ALONE = 512
"""Records of one upsert in this process."""
_HANDED = 256
"""Records of one job: some 300 KB of texts."""
_AHEAD = 8
"""Jobs per worker that are under way, so that no worker waits for the next one."""
_MOST = 64
"""The most jobs that are under way: their texts are in the memory of this process."""
_FIRST_SECONDS = 1.0
"""Seconds of work in this process before it looks for workers."""


class EmbeddingWorkers:
    """The workers of a queue that fill a store. An object belongs to one event loop.

    ``say`` gets a sentence when nothing moves, and None when it moves again. After half a minute without progress all
    batches are taken back, and the caller embeds them.
    """

    def __init__(
        self, queue: JobQueue, embeddings: EmbeddingGenerator, store: VectorStore, say: Callable[[str | None], None]
    ) -> None:
        self.count = 0
        """How many workers there were at the last look."""
        self.trouble: str | None = None
        """Why the queue could not be asked, the first time."""
        self._queue = queue
        self._model = embeddings.model
        self._store = store
        self._say = say
        self._ends: dict[str, asyncio.Future[JobStatus | None]] = {}
        self._watching: asyncio.Task[None] | None = None
        self._next_look = float("-inf")

    async def at_work(self) -> int:
        """Return how many workers there are, asking once a second at most; 0 where the queue cannot be asked."""
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + _LOOK
            try:
                self.count = len(await self._queue.workers())
            except StoreError as error:
                self._unreachable(error)
        return self.count

    async def fill(self, part: EmbeddingBatch) -> int | None:
        """Have a worker put a batch into the store; return how many texts it embedded.

        None means that no worker does it and the caller should. Raises ``ServiceError`` for a failure in the worker,
        and ``ConfigurationError`` for a worker that writes to another store.
        """
        job = job_of(part, model=self._model, store=self._store.name)
        end = self._ends[job.name] = asyncio.get_running_loop().create_future()
        try:
            await self._queue.submit([job])
        except StoreError as error:
            self._ends.pop(job.name, None)
            self._unreachable(error)
            return None
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())
        status = await end
        if status is None:
            return None
        await _forget(self._queue, [job.name])
        if status.state == "failed":
            raise ServiceError(f"The worker {status.worker} could not embed for the index: {status.error}")
        if status.state == "cancelled":
            return None
        # The batch is there as a whole or not at all, so one id tells.
        records, _ = await self._store.get(part.namespace, [part.records[-1].id])
        if not records:
            raise ConfigurationError(
                f"The worker {status.worker} wrote a batch to its vector store {self._store.name!r}, but the store "
                "here does not have it: they are two stores. Give both the same [vectors]. A folder serves one machine."
            )
        count = status.result.get("texts") if isinstance(status.result, dict) else None
        return count if isinstance(count, int) else len(part.texts)

    async def aclose(self) -> None:
        """Take back the batches that are still under way."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING):
                await self._take_back()

    async def _watch(self) -> None:
        """Settle the jobs that have ended; report a standstill, and take all jobs back when it lasts too long."""
        moved, said = time.monotonic(), False
        try:
            while self._ends:
                await asyncio.sleep(_PAUSE)
                problem = await self._settle()
                still = time.monotonic() - moved
                if problem is None:
                    moved = time.monotonic()
                elif still > _PATIENCE:
                    self.count, self._next_look = 0, time.monotonic() + _PATIENCE
                    await self._take_back()
                elif still > _SUDDEN:
                    said = True
                    self._say(f"{problem} Indexing continues here if this lasts for {_PATIENCE:.0f} seconds.")
                    continue
                if said:
                    said = False
                    self._say(None)
        except Exception as error:  # noqa: BLE001 - raised where the jobs are waited for
            for end in self._ends.values():
                if not end.done():
                    end.set_exception(error)
            self._ends.clear()

    async def _settle(self) -> str | None:
        """Settle the jobs that have ended. Return why nothing moves, or None where it moves."""
        names = list(self._ends)
        try:
            found = await self._queue.status(names)
        except StoreError as error:
            self._unreachable(error)
            return f"The queue cannot be asked: {error}"
        await self.at_work()
        ended = running = False
        for name, status in zip(names, found, strict=True):
            running |= status is not None and status.state == "running"
            if status is None or status.state not in _OPEN:
                ended = True
                end = self._ends.pop(name, None)
                if end is not None and not end.done():
                    end.set_result(status)
        if ended or (running and self.count):
            return None
        return "The workers are busy with other jobs." if self.count else "No worker is at work any more."

    async def _take_back(self) -> None:
        """Cancel every job; those who wait for one get None. A worker that embeds one after all writes the same."""
        ends = dict(self._ends)
        self._ends.clear()
        with suppress(StoreError):
            if ends:
                await self._queue.cancel(list(ends))
                await _forget(self._queue, list(ends))
        for end in ends.values():
            if not end.done():
                end.set_result(None)

    def _unreachable(self, error: StoreError) -> None:
        self.count = 0
        self._next_look = time.monotonic() + _PATIENCE
        self.trouble = self.trouble or f"No worker helps for now: {error}"


async def _forget(queue: JobQueue, names: Sequence[str]) -> None:
    """Remove ended jobs with their texts from the queue; nothing depends on it."""
    with suppress(StoreError):
        await queue.forget(names)


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
                        label, batch = await anext(batches)
                    except StopAsyncIteration:
                        more = False
                        continue
                    if not batch.records:
                        yield label, 0
                        continue
                    under_way[asyncio.create_task(self.fill(batch))] = label, len(batch.texts)
                done = {task for task in under_way if task.done()}
                if not done and not (more and self._has_room(under_way.values())):
                    done, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    label, _ = under_way.pop(task)
                    yield label, task.result()
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def fill(self, batch: EmbeddingBatch) -> int:
        """Put a batch into the store and return how many texts were embedded; calls may run concurrently.

        If it raises, a part of the batch may be in the store. Raises what `embed_batch` and `EmbeddingWorkers.fill`
        raise.
        """
        helpers = await self._workers_at_work()
        if helpers is None:
            return await self._embed_here(batch)
        return sum(await _all([self._hand_out(part, helpers) for part in batch.parts(_HANDED)]))

    async def cancel_leftovers(self, namespace: str) -> None:
        """Take back the jobs for a namespace that an earlier process left in the queue."""
        queue = self._queue() if self._queue is not None else None
        if queue is None:
            return
        with suppress(StoreError):
            every = await queue.jobs(KIND, states=STATES, limit=_LEFTOVERS)
            left = [job for job in every if job.name.startswith(names_of(namespace))]
            if names := [job.name for job in left if job.state in _OPEN]:
                await queue.cancel(names)
            if left:
                await _forget(queue, [job.name for job in left])

    def _has_room(self, under_way: Collection[tuple[object, int]]) -> bool:
        room = min(self.workers * _AHEAD, _MOST) * _HANDED
        return not under_way or sum(texts for _, texts in under_way) < room

    async def _workers_at_work(self) -> EmbeddingWorkers | None:
        if self._seconds < _FIRST_SECONDS:
            return None
        if self._helpers is None:
            queue = self._queue() if self._queue is not None else None
            self._queue = None
            if queue is None:
                return None
            self._helpers = EmbeddingWorkers(queue, self._embeddings, self._store, self._say)
        return self._helpers if await self._helpers.at_work() else None

    async def _hand_out(self, part: EmbeddingBatch, helpers: EmbeddingWorkers) -> int:
        embedded = await helpers.fill(part)
        return await self._embed_here(part) if embedded is None else embedded

    async def _embed_here(self, batch: EmbeddingBatch) -> int:
        embedded = 0
        for part in batch.parts(_ALONE):
            began = time.monotonic()
            embedded += await embed_batch(part, self._embeddings, self._store, self._here)
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
