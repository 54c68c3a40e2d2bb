"""Handing batches to the workers of a queue and waiting for the results, with limits on every wait."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import get_args

from portico.bulk_embedding.batch import EmbeddingBatch
from portico.bulk_embedding.jobs import KIND, job_of, names_of
from portico.errors import ConfigurationError, ServiceError, StoreError
from portico.jobs import JobState, JobStatus
from portico.ports.embedding_generator import EmbeddingGenerator
from portico.ports.job_queue import JobQueue
from portico.ports.vector_store import VectorStore

__all__ = ["EmbeddingWorkers", "cancel_leftovers"]

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
        every = await queue.jobs(KIND, states=get_args(JobState), limit=_LEFTOVERS)
        left = [job for job in every if job.name.startswith(prefix)]
        if names := [job.name for job in left if job.state in _OPEN]:
            await queue.cancel(names)
        if left:
            await _forget(queue, [job.name for job in left])


async def _forget(queue: JobQueue, names: Sequence[str]) -> None:
    """Remove ended jobs with their texts from the queue; nothing depends on it."""
    with suppress(StoreError):
        await queue.forget(names)
