"""Batches for a vector store: as jobs they say the same, and whoever fills them in, the store has all of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from portico import Kernel, _bulk_embedding
from portico._bulk_embedding import KIND, EmbeddingBatch, StoreFilling, embed_batch, embed_job, make_job
from portico._jobs import Job
from portico._ports.embedding_generator import EmbeddingGenerator
from portico._ports.vector_store import VectorStore
from portico._search.vectors import VectorRecord
from portico.errors import ConfigurationError, ResponseInvalid, ServiceError, StoreError
from portico_testkit.fakes.embedding_generator import HashingEmbeddings
from portico_testkit.fakes.job_queue import MemoryJobQueue
from portico_testkit.fakes.vector_store import DictVectorStore

SCALARS = st.text(max_size=5) | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
METADATA = st.dictionaries(st.text(max_size=3), SCALARS | st.lists(SCALARS, max_size=3), max_size=3)
ID = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)


@st.composite
def batches(draw: Any) -> EmbeddingBatch:
    texts = draw(st.lists(st.text(max_size=12), min_size=1, max_size=6, unique=True))
    ids = draw(st.lists(ID, min_size=1, max_size=12, unique=True))
    rows = draw(st.lists(st.integers(0, len(texts) - 1), min_size=len(ids), max_size=len(ids)))
    words = draw(st.lists(st.none() | st.text(max_size=5), min_size=len(ids), max_size=len(ids)))
    records = [VectorRecord(id, draw(METADATA), text) for id, text in zip(ids, words, strict=True)]
    return EmbeddingBatch("space", records, tuple(texts), tuple(rows))


def plain(number: int, count: int = 3) -> EmbeddingBatch:
    """Return a batch of records with a text each."""
    ids = [f"{number}-{place}" for place in range(count)]
    return EmbeddingBatch("space", [VectorRecord(id) for id in ids], tuple(f"text {id}" for id in ids), range(count))


class Given:
    """The services of one process."""

    def __init__(self, embeddings: Any, store: Any) -> None:
        self.given = {EmbeddingGenerator: embeddings, VectorStore: store}

    def get(self, port: Any, name: str | None = None) -> Any:
        return self.given[port]

    def names(self, port: Any) -> tuple[str, ...]:
        return ()


class Keeping(DictVectorStore):
    """A store in memory that keeps the words of records too."""

    def __init__(self, name: str = "dict") -> None:
        super().__init__(name=name)
        self.persistent = True
        self.words: dict[str, str | None] = {}

    async def upsert(self, namespace, records, vectors) -> None:
        await asyncio.sleep(0)
        await super().upsert(namespace, records, vectors)
        self.words |= {record.id: record.text for record in records}


@pytest.fixture
def store() -> Keeping:
    return Keeping()


@pytest.fixture
def embeddings() -> HashingEmbeddings:
    return HashingEmbeddings(16)


@pytest.fixture
def queue() -> MemoryJobQueue:
    return MemoryJobQueue(concurrency=2)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ask workers from the first text on, and often."""
    monkeypatch.setattr(_bulk_embedding, "_FIRST_SECONDS", 0)
    monkeypatch.setattr(_bulk_embedding, "_RECORDS", 2)
    monkeypatch.setattr(_bulk_embedding, "_POLL", 0.002)
    monkeypatch.setattr(_bulk_embedding, "_LOOK", 0.0)
    monkeypatch.setattr(_bulk_embedding, "_SUDDEN", 0.01)
    monkeypatch.setattr(_bulk_embedding, "_PATIENCE", 0.05)
    return None


@asynccontextmanager
async def working(queue: MemoryJobQueue, *kernels: Kernel, kind: str = KIND) -> AsyncIterator[list[str]]:
    """Have a worker for each kernel; yield their names."""
    tasks = [
        asyncio.create_task(queue.work({kind: partial(embed_job, kernel, turn=asyncio.Lock())})) for kernel in kernels
    ]
    try:
        while len(workers := await queue.workers()) < len(kernels):
            await asyncio.sleep(0)
        yield [worker.name for worker in workers]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def given_out(count: int) -> AsyncIterator[tuple[int, EmbeddingBatch]]:
    for number in range(count):
        yield number, plain(number)


async def all_of(filling: StoreFilling, count: int) -> dict[int, int]:
    async with aclosing(filling.each(given_out(count))) as filled:
        return {number: embedded async for number, embedded in filled}


async def contents(store: Keeping) -> dict[str, tuple[Any, ...]]:
    ids = sorted([id async for id in store.ids("space")])
    records, vectors = await store.get("space", ids)
    rows = [] if vectors is None else [row.buffer.tolist() for row in vectors]
    return {
        record.id: (dict(record.metadata), store.words[record.id], row)
        for record, row in zip(records, rows, strict=True)
    }


@given(batches(), st.integers(1, 5))
def test_parts_have_all_records_each_with_its_text(batch: EmbeddingBatch, most: int) -> None:
    parts = list(batch.parts(most))
    told = [(record, part.texts[row]) for part in parts for record, row in zip(part.records, part.rows, strict=True)]
    assert told == [(record, batch.texts[row]) for record, row in zip(batch.records, batch.rows, strict=True)]
    assert all(len(part.records) <= most and set(part.rows) == set(range(len(part.texts))) for part in parts) or (
        len(parts) == 1
    )


@given(batches())
@settings(max_examples=50)
def test_a_batch_that_went_through_a_queue_fills_the_store_as_one_here_does(batch: EmbeddingBatch) -> None:
    here, there = Keeping(), Keeping()
    embeddings = HashingEmbeddings(8)

    async def both() -> tuple[Any, Any]:
        await embed_batch(batch, embeddings, here)
        job = make_job(batch, model=embeddings.model, store=there.name)
        sent = Job(job.name, job.kind, json.loads(json.dumps(job.body)))
        counts = await embed_job(Kernel(Given(embeddings, there)), sent)
        assert counts == {"texts": len(batch.texts), "records": len(batch.records)}
        return await contents(here), await contents(there)

    one, other = asyncio.run(both())
    assert json.dumps(one) == json.dumps(other)


async def test_a_generator_that_gives_another_number_of_vectors_is_named(store) -> None:
    class Short(HashingEmbeddings):
        async def embed(self, texts, *, purpose="document"):
            return await super().embed(texts[1:], purpose=purpose)

    with pytest.raises(ResponseInvalid, match="'hashing' gave 2 vectors for 3 texts"):
        await embed_batch(plain(0), Short(), store)
    assert await store.count("space") == 0


@pytest.mark.parametrize(
    ("model", "name", "persistent", "said"),
    [
        ("other", "dict", True, r"embeds with 'hashing-16' and the index with 'other'.*\[embeddings\]"),
        ("hashing-16", "other", True, r"keeps vectors in 'dict' and the index in 'other'.*\[vectors\]"),
        ("hashing-16", "dict", False, r"in memory.*\[vectors.dict\]"),
    ],
    ids=["model", "store", "memory"],
)
async def test_a_worker_with_other_services_refuses(store, embeddings, model, name, persistent, said) -> None:
    store.persistent = persistent
    job = make_job(plain(0), model=model, store=name)
    with pytest.raises(ConfigurationError, match=said):
        await embed_job(Kernel(Given(embeddings, store)), job)
    assert embeddings.calls == 0


async def test_a_job_of_another_version_is_refused(store, embeddings) -> None:
    job = make_job(plain(0), model="hashing-16", store="dict")
    for body in ({}, {**job.body, "version": 1}):
        with pytest.raises(ConfigurationError, match="of different versions of Portico"):
            await embed_job(Kernel(Given(embeddings, store)), Job(job.name, KIND, body))


async def test_three_workers_fill_the_store_and_this_process_does_nothing(queue, store, embeddings) -> None:
    own = [HashingEmbeddings(16) for _ in range(3)]
    async with (
        working(queue, *(Kernel(Given(each, store)) for each in own)),
        StoreFilling(embeddings, store, queue=lambda: queue) as filling,
    ):
        assert await all_of(filling, 40) == dict.fromkeys(range(40), 3)
        assert filling.workers == 3
    assert embeddings.calls == 0
    assert sum(each.embedded for each in own) == 120
    assert all(each.calls for each in own)
    alone = Keeping()
    async with StoreFilling(embeddings, alone) as filling:
        await all_of(filling, 40)
    assert await contents(store) == await contents(alone)


async def test_a_worker_embeds_one_batch_at_a_time_and_writes_meanwhile(queue, store) -> None:
    events: list[str] = []

    class Noting(HashingEmbeddings):
        async def embed(self, texts, *, purpose="document"):
            events.append("embed")
            await asyncio.sleep(0.001)
            events.append("embedded")
            return await super().embed(texts, purpose=purpose)

    write = store.upsert

    async def slowly(*arguments: Any) -> None:
        events.append("write")
        await asyncio.sleep(0.003)
        await write(*arguments)

    store.upsert = slowly
    async with (
        working(queue, Kernel(Given(Noting(16), store))),
        StoreFilling(HashingEmbeddings(16), store, queue=lambda: queue) as filling,
    ):
        await all_of(filling, 4)
    embedding = [event for event in events if event != "write"]
    assert embedding == ["embed", "embedded"] * (len(embedding) // 2)
    assert "embed" in events[events.index("write") : len(events) - events[::-1].index("write")]


async def test_what_is_under_way_is_bounded_and_the_giver_is_never_asked_meanwhile(queue, store, embeddings) -> None:
    asked: list[int] = []
    busy = False

    async def giving() -> AsyncIterator[tuple[int, EmbeddingBatch]]:
        for number in range(60):
            assert not busy
            asked.append(number)
            yield number, plain(number)

    async with (
        working(queue, Kernel(Given(embeddings, store))),
        StoreFilling(embeddings, store, queue=lambda: queue) as filling,
    ):
        done = 0
        async with aclosing(filling.each(giving())) as filled:
            async for _ in filled:
                busy = True
                done += 1
                # Less than 8 jobs are under way before another batch, of 2 jobs, is begun.
                assert len(asked) - done <= 6
                await asyncio.sleep(0)
                busy = False
    assert done == 60


async def test_without_workers_and_for_little_it_is_done_here(queue, store, embeddings, monkeypatch) -> None:
    async with StoreFilling(embeddings, store, queue=lambda: queue) as filling:
        assert await all_of(filling, 4) == dict.fromkeys(range(4), 3)
    assert embeddings.embedded == 12
    monkeypatch.setattr(_bulk_embedding, "_FIRST_SECONDS", 100.0)
    async with (
        working(queue, Kernel(Given(HashingEmbeddings(16), store))),
        StoreFilling(embeddings, store, queue=lambda: queue) as filling,
    ):
        await all_of(filling, 8)
    assert embeddings.embedded == 12 + 24


async def test_what_a_worker_had_that_is_gone_another_does(queue, store, embeddings) -> None:
    class Hanging(HashingEmbeddings):
        async def embed(self, texts, *, purpose="document"):
            self.calls += 1
            await asyncio.Event().wait()

    hanging = Hanging(16)
    async with (
        working(queue, Kernel(Given(hanging, store))) as [gone],
        StoreFilling(HashingEmbeddings(16), store, queue=lambda: queue) as filling,
    ):
        filled = asyncio.create_task(all_of(filling, 6))
        while not hanging.calls:
            await asyncio.sleep(0.001)
        async with working(queue, Kernel(Given(embeddings, store))):
            queue.silence(gone)
            assert sum((await filled).values()) == 18
    assert embeddings.embedded == 18


@pytest.mark.parametrize("busy", [False, True])
async def test_where_workers_vanish_or_have_no_time_it_is_said_and_done_here(queue, store, embeddings, busy) -> None:
    said: list[str | None] = []
    hanging = HashingEmbeddings(16)
    # A worker for jobs of another kind is at work, and has no time for these.
    async with (
        working(queue, Kernel(Given(hanging, store)), kind="other" if busy else KIND) as [name],
        StoreFilling(embeddings, store, queue=lambda: queue, say=said.append) as filling,
    ):
        if not busy:
            hanging.embed = lambda *_, **__: asyncio.sleep(60)
            asyncio.get_running_loop().call_later(0.02, queue.silence, name)
        assert sum((await asyncio.wait_for(all_of(filling, 6), 10)).values()) == 18
    assert embeddings.embedded == 18
    assert said[-1] is None
    assert said[0].startswith("The workers are busy" if busy else "No worker is at work any more")
    assert not await queue.jobs(KIND)


async def test_what_fails_in_a_worker_comes_out_as_one_error_and_the_rest_is_taken_back(
    queue, store, embeddings
) -> None:
    async with working(queue, Kernel(Given(HashingEmbeddings(32), store))) as [name]:
        with pytest.raises(
            ServiceError, match=rf"{name} could not embed for the index: The worker embeds with"
        ) as told:
            async with StoreFilling(embeddings, store, queue=lambda: queue) as filling:
                await all_of(filling, 30)
        assert "[embeddings]" in str(told.value)
        assert not await queue.jobs(KIND)
    assert await store.count("space") == 0


async def test_a_worker_that_writes_to_another_store_is_found_out(queue, store, embeddings) -> None:
    async with working(queue, Kernel(Given(embeddings, Keeping()))):
        with pytest.raises(ConfigurationError, match="they are two stores"):
            async with StoreFilling(embeddings, store, queue=lambda: queue) as filling:
                await all_of(filling, 3)


async def test_who_stops_takes_back_what_he_handed_out(queue, store, embeddings) -> None:
    async with (
        working(queue, Kernel(Given(embeddings, store)), kind="other"),
        StoreFilling(embeddings, store, queue=lambda: queue) as filling,
    ):
        task = asyncio.create_task(all_of(filling, 6))
        while not await queue.jobs(KIND):
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.wait({task})
    assert not await queue.jobs(KIND)
    assert await queue.jobs(KIND, states=("cancelled",))


async def test_what_a_killed_process_handed_out_is_taken_back_by_the_next(queue, store, embeddings) -> None:
    job = make_job(plain(0), model="m", store="s")
    other = make_job(
        EmbeddingBatch("space2", *[getattr(plain(0), f) for f in ("records", "texts", "rows")]), model="m", store="s"
    )
    await queue.submit([job, other])
    async with StoreFilling(embeddings, store, queue=lambda: queue) as filling:
        await filling.cancel_leftovers("space")
    assert [each.name for each in await queue.jobs(KIND)] == [other.name]


async def test_a_queue_that_can_forget_keeps_no_texts(store, embeddings) -> None:
    class Forgetting(MemoryJobQueue):
        async def forget(self, names) -> None:
            for name in names:
                if self._entries[name].status.state not in ("waiting", "running"):
                    del self._entries[name]

    queue = Forgetting()
    await queue.submit([make_job(plain(99), model="m", store="s")])
    async with (
        working(queue, Kernel(Given(embeddings, store))),
        StoreFilling(HashingEmbeddings(16), store, queue=lambda: queue) as filling,
    ):
        await filling.cancel_leftovers("space")
        assert sum((await all_of(filling, 10)).values()) == 30
    assert not queue._entries


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_what_could_not_be_forgotten_is_forgotten_at_the_end(
    store, embeddings, is_cancelled, monkeypatch
) -> None:
    monkeypatch.setattr(_bulk_embedding, "_FORGET_AT_ONCE", 3)
    forgetting = asyncio.Event()

    class Forgetting(MemoryJobQueue):
        async def forget(self, names) -> None:
            if not forgetting.is_set():
                forgetting.set()
                if is_cancelled:
                    await asyncio.Event().wait()
                raise StoreError("no connection to the queue")
            for name in names:
                del self._entries[name]

    queue = Forgetting()
    async with (
        working(queue, Kernel(Given(embeddings, store))),
        StoreFilling(HashingEmbeddings(16), store, queue=lambda: queue) as filling,
    ):
        filled = asyncio.create_task(all_of(filling, 2))
        await asyncio.wait_for(forgetting.wait(), 10)
        if is_cancelled:
            filled.cancel()
        await asyncio.wait({filled})
        assert filled.cancelled() == is_cancelled
    assert not queue._entries


async def test_a_batch_that_somebody_cancels_is_embedded_here(queue, store, embeddings) -> None:
    async with (
        working(queue, Kernel(Given(HashingEmbeddings(16), store)), kind="other"),
        StoreFilling(embeddings, store, queue=lambda: queue) as filling,
    ):
        filled = asyncio.create_task(all_of(filling, 1))
        while not (jobs := await queue.jobs(KIND)):
            await asyncio.sleep(0)
        await queue.cancel([job.name for job in jobs])
        assert await filled == {0: 3}
    assert embeddings.embedded >= 2


async def test_a_queue_that_cannot_be_asked_stops_nothing_and_is_told_of(queue, store, embeddings, monkeypatch) -> None:
    async def fail(*_: Any) -> Any:
        raise StoreError("no connection to the queue")

    async with working(queue, Kernel(Given(HashingEmbeddings(16), store))):
        for method in ("workers", "submit", "status"):
            with monkeypatch.context() as patch:
                async with StoreFilling(embeddings, store, queue=lambda: queue) as filling:
                    patch.setattr(queue, method, fail)
                    await asyncio.wait_for(all_of(filling, 3), 10)
                    assert filling.trouble == "No worker helps for now: no connection to the queue"
            assert await store.count("space") == 9
            await store.drop("space")
    assert embeddings.embedded == 27


async def test_a_queue_that_fails_on_the_way_is_waited_for_and_then_done_without(
    queue, store, embeddings, monkeypatch
) -> None:
    async def fail(*_: Any) -> Any:
        raise StoreError("no connection to the queue")

    said: list[str | None] = []
    async with (
        working(queue, Kernel(Given(embeddings, store)), kind="other"),
        StoreFilling(embeddings, store, queue=lambda: queue, say=said.append) as filling,
    ):
        filled = asyncio.create_task(all_of(filling, 3))
        while not await queue.jobs(KIND):
            await asyncio.sleep(0)
        monkeypatch.setattr(queue, "status", fail)
        assert sum((await asyncio.wait_for(filled, 10)).values()) == 9
    assert said[0].startswith("The queue cannot be asked: no connection")
    assert said[-1] is None
