"""Embeds texts in bulk: fills a vector store in this process, or by jobs of workers."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from portico._jobs import STATES, Job, JobStatus
from portico._ports.embedding_generator import EmbeddingGenerator
from portico._ports.vector_store import VectorStore
from portico._search.vectors import VectorRecord, Vectors
from portico.errors import ConfigurationError, ResponseInvalid, ServiceError, StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from types import TracebackType

    from portico._plans.task import Emit
    from portico._ports.job_queue import JobQueue

P = TypeVar("P")
T = TypeVar("T")

KIND = "embed"
"""The kind of the jobs."""
_VERSION = 2
_RECORDS = 256
"""The most records of one upsert and of one job: some 300 KB of texts."""
_AHEAD = 8
"""Jobs per worker that are under way, so that no worker waits for the next one."""
_MOST = 64
"""The most jobs that are under way: their texts are in the memory of this process."""
_FIRST_TEXTS = 1_024
_FIRST_SECONDS = 1.0
"""Texts or seconds of work in this process before it looks for workers."""
_FORGET_AT_ONCE = 64
"""Jobs that have ended are removed from the queue by so many."""
_POLL = 0.1
_LOOK = 1.0
_SUDDEN = 2.0
"""Seconds of standstill before it is reported: a worker that restarts is soon back."""
_PATIENCE = 30.0
"""Seconds of standstill before the jobs are taken back, and then until workers are looked for again."""
_CLOSING = 5.0
_LEFTOVERS = 1_000
_OPEN = ("waiting", "running")
_FLOAT32_BYTES = 4


@dataclass(frozen=True, slots=True)
class EmbeddingBatch:
    """Records of one namespace. ``rows`` gives for each record the text of its vector, as a place in ``texts``.

    >>> batch = EmbeddingBatch("docs", (VectorRecord("a"), VectorRecord("b")), ("the same text",), (0, 0))
    >>> [part.rows for part in batch.parts(1)]
    [(0,), (0,)]

    Records of one text share an embedding.
    """

    namespace: str
    records: Sequence[VectorRecord]
    texts: Sequence[str]
    rows: Sequence[int]

    def parts(self, most: int) -> Iterator[EmbeddingBatch]:
        """Yield the batch in parts of at most ``most`` records, each with its texts; none without records."""
        for start in range(0, len(self.records), most):
            rows = self.rows[start : start + most]
            places = {row: place for place, row in enumerate(dict.fromkeys(rows))}
            yield EmbeddingBatch(
                self.namespace,
                self.records[start : start + most],
                tuple(self.texts[row] for row in places),
                tuple(places[row] for row in rows),
            )


async def embed_batch(
    batch: EmbeddingBatch, embeddings: EmbeddingGenerator, store: VectorStore, turn: asyncio.Lock | None = None
) -> int:
    """Embed the texts of a batch and put its records into the store; return how many texts were embedded.

    The store gets all records or none. With ``turn``, batches are embedded one at a time, and one is written while the
    next is embedded. Raises what the generator and the store raise, and ``ResponseInvalid`` for a wrong number of
    vectors.
    """
    async with turn or nullcontext():
        vectors = await embeddings.embed(batch.texts, purpose="document")
    if vectors.rows != len(batch.texts):
        raise ResponseInvalid(
            f"Embeddings {embeddings.name!r} gave {vectors.rows} vectors for {len(batch.texts)} texts."
        )
    await store.upsert(batch.namespace, batch.records, _one_for_each(vectors, batch.rows))
    return len(batch.texts)


def _one_for_each(vectors: Vectors, rows: Sequence[int]) -> Vectors:
    """Return one vector for each of ``rows``; a copy only where they are not all the rows in their order."""
    if len(rows) == vectors.rows and all(row == place for place, row in enumerate(rows)):
        return vectors
    numbers = vectors.buffer.cast("B")
    size = vectors.dimensions * _FLOAT32_BYTES
    buffer = b"".join(numbers[row * size : row * size + size] for row in rows)
    return Vectors(buffer, len(rows), vectors.dimensions)


def make_job(batch: EmbeddingBatch, *, model: str, store: str) -> Job:
    """Return a new job for a batch.

    >>> batch = EmbeddingBatch("docs", (VectorRecord("a", {"type": "md"}),), ("A red door.",), (0,))
    >>> make_job(batch, model="small", store="faiss").body["records"]
    [['a', 0, {'type': 'md'}, None]]
    """
    body = {
        "version": _VERSION,
        "namespace": batch.namespace,
        "model": model,
        "store": store,
        "texts": list(batch.texts),
        "records": [
            [record.id, row, record.plain_metadata(), record.text]
            for record, row in zip(batch.records, batch.rows, strict=True)
        ],
    }
    return Job(f"{_job_prefix(batch.namespace)}{uuid.uuid4().hex}", KIND, body)


def _job_prefix(namespace: str) -> str:
    return f"embed-{namespace}-"


class _Worker(Protocol):
    """The kernel of a worker, which has its services."""

    def service(self, port: Callable[..., P], name: str | None = None) -> P: ...


async def embed_job(
    kernel: _Worker, job: Job, *, turn: asyncio.Lock | None = None, emit: Emit | None = None
) -> dict[str, int]:
    """Embed a job's texts with the worker's services; return how many texts and records there were.

    One worker has one ``turn``, as in `embed_batch`: so the number of workers limits the requests to an embedding
    service at the same time. Raises ``ConfigurationError`` for a worker with another model, another store, or a store
    in memory, and for a job of another version. A job may run twice: it writes the same again.
    """
    body = job.body
    if body.get("version") != _VERSION:
        raise ConfigurationError(
            f"The job {job.name} cannot be read: the index and the worker are of different versions of Portico. "
            "Install the same everywhere."
        )
    embeddings, store = kernel.service(EmbeddingGenerator), kernel.service(VectorStore)
    if embeddings.model != body["model"]:
        raise ConfigurationError(
            f"The worker embeds with {embeddings.model!r} and the index with {body['model']!r}: "
            "give both the same [embeddings]."
        )
    if store.name != body["store"]:
        raise ConfigurationError(
            f"The worker keeps vectors in {store.name!r} and the index in {body['store']!r}: "
            "give both the same [vectors]."
        )
    if not store.persistent:
        raise ConfigurationError(
            "The worker keeps vectors in memory, where other processes cannot read them: give it the "
            f"[vectors.{store.name}] that the index has."
        )
    records = [VectorRecord(id, metadata, text) for id, _, metadata, text in body["records"]]
    rows = [row for _, row, _, _ in body["records"]]
    texts = await embed_batch(EmbeddingBatch(body["namespace"], records, body["texts"], rows), embeddings, store, turn)
    return {"texts": texts, "records": len(records)}


class StoreFilling:
    """Embed batches into a store. Leaving the context takes back the jobs of workers.

    >>> async def filled(embeddings, store, batches):
    ...     async with StoreFilling(embeddings, store) as filling:
    ...         return sum([embedded async for _, embedded in filling.each(batches)])

    ``queue`` is called once there is much to do; it returns None where there are no workers. A store that is not
    persistent is filled here. ``say`` gets a sentence when workers make the caller wait, and None afterwards. After
    half a minute without progress, all jobs are taken back and their texts are embedded here.
    """

    def __init__(
        self,
        embeddings: EmbeddingGenerator,
        store: VectorStore,
        *,
        queue: Callable[[], JobQueue | None] | None = None,
        say: Callable[[str | None], None] | None = None,
    ) -> None:
        self.workers: int = 0
        """How many worker processes help now."""
        self.trouble: str | None = None
        """Why workers could not help, the first time; None where nothing went wrong."""
        self._embeddings = embeddings
        self._store = store
        self._find_queue = queue if store.persistent else None
        self._say = say or (lambda sentence: None)
        self._turn = asyncio.Lock()
        self._seconds = 0.0
        self._embedded = 0
        self._next_look = float("-inf")
        self._ends: dict[str, asyncio.Future[JobStatus | None]] = {}
        self._ended: list[str] = []
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSING):
                    await self._take_back()
                    if self._queue is not None:
                        await self._forget(self._queue)

    async def each(self, batches: AsyncIterator[tuple[T, EmbeddingBatch]]) -> AsyncGenerator[tuple[T, int]]:
        """Fill in batches, several at once where there are workers.

        Yield for each finished batch what came with it and the number of texts embedded. ``batches`` is asked for one
        at a time, never while the caller is at work, and a bounded number of texts is under way. If it raises, a part
        of a batch may be in the store. Raises what `embed_batch` raises, ``ServiceError`` for a failure in a worker,
        and ``ConfigurationError`` for a worker that writes to another store; the others are stopped.
        """
        under_way: list[tuple[T, list[asyncio.Task[int]]]] = []
        has_more = True
        try:
            while has_more or under_way:
                open_tasks = [task for _, tasks in under_way for task in tasks if not task.done()]
                if has_more and (not under_way or len(open_tasks) < min(self.workers * _AHEAD, _MOST)):
                    try:
                        label, batch = await anext(batches)
                    except StopAsyncIteration:
                        has_more = False
                    else:
                        under_way.append((label, [asyncio.create_task(self._fill(p)) for p in batch.parts(_RECORDS)]))
                elif open_tasks:
                    done, _ = await asyncio.wait(open_tasks, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()
                finished = [each for each in under_way if all(task.done() for task in each[1])]
                under_way = [each for each in under_way if each not in finished]
                for label, tasks in finished:
                    yield label, sum(task.result() for task in tasks)
        finally:
            left = [task for _, tasks in under_way for task in tasks]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def cancel_leftovers(self, namespace: str) -> None:
        """Take back the jobs for a namespace that an earlier process left in the queue."""
        if self._queue is not None:
            with suppress(StoreError):
                jobs = await self._queue.jobs(KIND, states=STATES, limit=_LEFTOVERS)
                await self._cancel([job.name for job in jobs if job.name.startswith(_job_prefix(namespace))])

    @cached_property
    def _queue(self) -> JobQueue | None:
        return self._find_queue() if self._find_queue is not None else None

    async def _fill(self, batch: EmbeddingBatch) -> int:
        """Put a batch into the store, by a worker or here; return how many texts were embedded."""
        is_much = self._embedded >= _FIRST_TEXTS or self._seconds >= _FIRST_SECONDS
        queue = self._queue if is_much else None
        if queue is not None and await self._count_workers(queue) and await self._fill_by_worker(queue, batch):
            return len(batch.texts)
        began = time.monotonic()
        embedded = await embed_batch(batch, self._embeddings, self._store, self._turn)
        self._seconds += time.monotonic() - began
        self._embedded += embedded
        return embedded

    async def _count_workers(self, queue: JobQueue) -> int:
        """Return how many workers there are, asking once a second at most; 0 where the queue cannot be asked."""
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + _LOOK
            try:
                self.workers = len(await queue.workers())
            except StoreError as error:
                self._stop_asking(error)
        return self.workers

    async def _fill_by_worker(self, queue: JobQueue, batch: EmbeddingBatch) -> bool:
        """Have a worker put a batch into the store; False where no worker does it."""
        job = make_job(batch, model=self._embeddings.model, store=self._store.name)
        end = self._ends[job.name] = asyncio.get_running_loop().create_future()
        try:
            await queue.submit([job])
        except StoreError as error:
            del self._ends[job.name]
            self._stop_asking(error)
            return False
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch(queue))
        status = await end
        if status is None or status.state == "cancelled":
            return False
        self._ended.append(job.name)
        if len(self._ended) >= _FORGET_AT_ONCE:
            await self._forget(queue)
        if status.state == "failed":
            raise ServiceError(f"The worker {status.worker} could not embed for the index: {status.error}")
        # The batch is there as a whole or not at all, so one id tells.
        records, _ = await self._store.get(batch.namespace, [batch.records[-1].id])
        if not records:
            raise ConfigurationError(
                f"The worker {status.worker} wrote a batch to its vector store {self._store.name!r}, but the store "
                "here does not have it: they are two stores. Give both the same [vectors]. A folder serves one machine."
            )
        return True

    async def _watch(self, queue: JobQueue) -> None:
        """Settle the jobs that end. Report a standstill, and take all jobs back when it lasts too long."""
        moved, said = time.monotonic(), None
        try:
            while self._ends:
                await asyncio.sleep(_POLL)
                problem = await self._settle(queue)
                now = time.monotonic()
                if problem is None:
                    moved = now
                elif now - moved > _PATIENCE:
                    self._stop_asking()
                    await self._take_back()
                sentence = None
                if self._ends and problem is not None and now - moved > _SUDDEN:
                    sentence = f"{problem} Indexing continues here if this lasts for {_PATIENCE:.0f} seconds."
                if sentence != said:
                    self._say(sentence)
                    said = sentence
        except Exception as error:  # noqa: BLE001 - raised where the jobs are waited for
            for name in list(self._ends):
                self._settle_one(name, error)

    async def _settle(self, queue: JobQueue) -> str | None:
        """Settle the jobs that have ended. Return why nothing moves, or None where it moves."""
        names = list(self._ends)
        try:
            found = await queue.status(names)
        except StoreError as error:
            self._stop_asking(error)
            return f"The queue cannot be asked: {error}"
        has_ended = is_running = False
        for name, status in zip(names, found, strict=True):
            if status is None or status.state not in _OPEN:
                has_ended = True
                self._settle_one(name, status)
            elif status.state == "running":
                is_running = True
        workers = await self._count_workers(queue)
        if has_ended or (is_running and workers):
            return None
        return "The workers are busy with other jobs." if workers else "No worker is at work any more."

    def _settle_one(self, name: str, result: JobStatus | Exception | None) -> None:
        """End the wait for a job, unless it was cancelled."""
        end = self._ends.pop(name, None)
        if end is None or end.done():
            return
        if isinstance(result, Exception):
            end.set_exception(result)
        else:
            end.set_result(result)

    async def _take_back(self) -> None:
        """Cancel every job; who waits for one embeds the texts here. If a worker does it too, it writes the same."""
        names = list(self._ends)
        await self._cancel(names)
        for name in names:
            self._settle_one(name, None)

    async def _cancel(self, names: Sequence[str]) -> None:
        """Cancel jobs and remove them with their texts from the queue."""
        with suppress(StoreError):
            if names and self._queue is not None:
                await self._queue.cancel(names)
                await self._queue.forget(names)

    async def _forget(self, queue: JobQueue) -> None:
        """Remove the jobs that have ended, with their texts, from the queue; if that fails, the next time."""
        names, self._ended = self._ended, []
        try:
            await queue.forget(names)
        except BaseException as error:
            self._ended += names
            if not isinstance(error, StoreError):
                raise

    def _stop_asking(self, error: StoreError | None = None) -> None:
        """Do without workers for a while."""
        self.workers, self._next_look = 0, time.monotonic() + _PATIENCE
        if error is not None and self.trouble is None:
            self.trouble = f"No worker helps for now: {error}"
