"""Fills a vector store, here or by jobs of workers."""

from __future__ import annotations

import asyncio
import time
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Self, TypeVar

from portico._bulk_embedding.batch import EmbeddingBatch, embed_batch
from portico._bulk_embedding.jobs import KIND, job_of, names_of
from portico._jobs import STATES, JobStatus
from portico.errors import ConfigurationError, ServiceError, StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Sequence
    from types import TracebackType

    from portico._ports.embedding_generator import EmbeddingGenerator
    from portico._ports.job_queue import JobQueue
    from portico._ports.vector_store import VectorStore

_PAUSE = 0.1
_LOOK = 1.0
_SUDDEN = 2.0
"""Seconds of standstill before it is reported: a worker that restarts is soon back."""
_GONE = 10.0
_BUSY = 60.0
_CLOSING = 5.0
_OPEN = ("waiting", "running")
_ATTEMPTS = 3
_LEFTOVERS = 1_000


class EmbeddingWorkers:
    """The workers of a queue that fill a store. An object belongs to one event loop.

    ``say`` gets a sentence when nothing moves, and None when it moves again. Without a worker for ten seconds, or
    without a batch begun for a minute, all batches are taken back, and the caller embeds them.
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
        self._looked = self._not_before = float("-inf")

    async def at_work(self) -> int:
        """Return how many workers there are, asking once a second at most; 0 where the queue cannot be asked."""
        now = time.monotonic()
        if now < self._not_before:
            return 0
        if now - self._looked >= _LOOK:
            try:
                await self._look()
            except StoreError as error:
                self._unreachable(error)
        return self.count

    async def fill(self, part: EmbeddingBatch) -> int | None:
        """Have a worker put a batch into the store; return how many texts it embedded.

        None means that no worker does it and the caller should. Raises ``ServiceError`` for a failure in the worker,
        and ``ConfigurationError`` for a worker that writes to another store.
        """
        attempt = "1"
        for _ in range(_ATTEMPTS):
            job = job_of(part, model=self._model, store=self._store.name, attempt=attempt)
            attempt = uuid.uuid4().hex[:12]
            try:
                [known] = await self._queue.status([job.name])
                if known is None:
                    await self._queue.submit([job])
            except StoreError as error:
                self._unreachable(error)
                return None
            if known is not None and known.state not in _OPEN:
                # It may have ended long ago, and the store may have lost it since.
                if known.state == "done" and await self._has(part):
                    return _texts(part, known)
                continue
            end = await self._end_of(job.name)
            if end is None:
                return None
            await _forget(self._queue, [job.name])
            if end.state == "done":
                if await self._has(part):
                    return _texts(part, end)
                raise ConfigurationError(
                    f"The worker {end.worker} has put a batch into its vector store {self._store.name!r}, and the one "
                    "here has it not: they are two. Give both the same [vectors]; one in a folder serves one machine "
                    "only."
                )
            if end.state == "failed":
                raise ServiceError(f"The worker {end.worker} could not embed for the index: {end.error}")
        return None

    async def aclose(self) -> None:
        """Take back the batches that are still under way."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        names = list(self._ends)
        self._ends.clear()
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_CLOSING):
                if names:
                    await self._queue.cancel(names)
                    await _forget(self._queue, names)

    async def _look(self) -> None:
        self.count = len(await self._queue.workers())
        self._looked = time.monotonic()

    async def _end_of(self, name: str) -> JobStatus | None:
        end = self._ends.get(name)
        if end is None:
            end = self._ends[name] = asyncio.get_running_loop().create_future()
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())
        return await asyncio.shield(end)

    async def _has(self, part: EmbeddingBatch) -> bool:
        """Tell whether the store has a batch. It is there as a whole or not at all, so one id tells."""
        records, _ = await self._store.get(part.namespace, [part.records[-1].id])
        return bool(records)

    async def _watch(self) -> None:
        """Settle the jobs that have ended; report a standstill, and take all jobs back when it lasts too long."""
        still: float | None = None
        said = False
        try:
            while self._ends:
                await asyncio.sleep(_PAUSE)
                why = await self._progress()
                now = time.monotonic()
                if why is None:
                    still = None
                else:
                    still = now if still is None else still
                    sentence, patience = why
                    if now - still > patience:
                        await self._give_up()
                    elif now - still > _SUDDEN:
                        said = True
                        self._say(f"{sentence} The indexing goes on here if that lasts for {patience:.0f} seconds.")
                        continue
                if said:
                    said = False
                    self._say(None)
        except Exception as error:  # noqa: BLE001 - raised where the jobs are waited for
            for end in self._ends.values():
                end.set_exception(error)
                end.exception()  # marks it as seen
            self._ends.clear()

    async def _progress(self) -> tuple[str, float] | None:
        """Settle the jobs that have ended. Return why nothing moves and how long to wait, or None where it moves."""
        names = list(self._ends)
        try:
            told = await self._queue.status(names)
            if time.monotonic() - self._looked >= _LOOK:
                await self._look()
        except StoreError as error:
            return f"The queue cannot be asked: {error}", _GONE
        ended = running = False
        for name, status in zip(names, told, strict=True):
            running |= status is not None and status.state == "running"
            if status is None or status.state not in _OPEN:
                ended = True
                end = self._ends.pop(name, None)
                if end is not None and not end.done():
                    end.set_result(status or JobStatus(name, KIND, "cancelled"))
        if ended or (running and self.count):
            return None
        if not self.count:
            return "No worker is at work any more.", _GONE
        return "The workers are busy with other jobs.", _BUSY

    async def _give_up(self) -> None:
        ends = dict(self._ends)
        self._ends.clear()
        self._not_before = time.monotonic() + _BUSY
        self.count = 0
        # A worker may embed a batch after all; it then writes the same.
        with suppress(StoreError):
            await self._queue.cancel(list(ends))
            await _forget(self._queue, list(ends))
        for end in ends.values():
            if not end.done():
                end.set_result(None)

    def _unreachable(self, error: StoreError) -> None:
        self.count = 0
        self._looked = time.monotonic()
        self._not_before = self._looked + _BUSY
        if self.trouble is None:
            self.trouble = f"No worker helps for now: {error}"


def _texts(part: EmbeddingBatch, end: JobStatus) -> int:
    """Return how many texts a worker has embedded."""
    count = end.result.get("texts") if isinstance(end.result, dict) else None
    return count if isinstance(count, int) else len(part.texts)


async def cancel_leftovers(queue: JobQueue, namespace: str) -> None:
    """Take back the jobs for a namespace that an earlier process left in the queue."""
    prefix = names_of(namespace)
    with suppress(StoreError):
        every = await queue.jobs(KIND, states=STATES, limit=_LEFTOVERS)
        left = [job for job in every if job.name.startswith(prefix)]
        if names := [job.name for job in left if job.state in _OPEN]:
            await queue.cancel(names)
        if left:
            await _forget(queue, [job.name for job in left])


async def _forget(queue: JobQueue, names: Sequence[str]) -> None:
    """Remove ended jobs with their texts from the queue; nothing depends on it."""
    with suppress(StoreError):
        await queue.forget(names)


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
