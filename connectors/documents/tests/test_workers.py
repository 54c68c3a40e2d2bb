"""A large folder is embedded by workers, and the index is the one that this process would have made alone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from portico import Kernel, _bulk_embedding
from portico._bulk_embedding import KIND, embed_job
from portico.errors import ServiceError
from portico.ports import EmbeddingGenerator, IndexProgress, Runner, VectorStore
from portico_documents import catalogue, scan, vector_mirror
from portico_testkit.fakes.embedding_generator import HashingEmbeddings
from portico_testkit.fakes.job_queue import MemoryJobQueue
from portico_testkit.fakes.vector_store import DictVectorStore

DOCUMENTS = 60


class Services:
    """What one process has: its own embeddings, and the store and the queue of all."""

    def __init__(self, embeddings: Any, store: Any, queue: Any) -> None:
        self.embeddings = embeddings
        self.queue = queue
        self._given = {EmbeddingGenerator: embeddings, VectorStore: store, Runner: self}

    name = "fake"

    @property
    def jobs(self) -> Any:
        return self.queue

    def get(self, port: Any, name: str | None = None) -> Any:
        return self._given[port]

    def names(self, port: Any) -> tuple[str, ...]:
        return ("fake",) if port is Runner else ()


@pytest.fixture
def queue() -> MemoryJobQueue:
    return MemoryJobQueue(concurrency=2)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, folder) -> None:
    """Have the workers asked early and often, in small batches."""
    monkeypatch.setattr(_bulk_embedding, "_FIRST_SECONDS", 1e-9)
    monkeypatch.setattr(_bulk_embedding, "_RECORDS", 3)
    monkeypatch.setattr(_bulk_embedding, "_POLL", 0.002)
    monkeypatch.setattr(_bulk_embedding, "_LOOK", 0.0)
    monkeypatch.setattr(_bulk_embedding, "_SUDDEN", 0.01)
    monkeypatch.setattr(_bulk_embedding, "_PATIENCE", 0.05)
    monkeypatch.setattr(scan, "_BATCH_FILES", 3)
    for number in range(DOCUMENTS):
        sections = [f"# Part {part}\n\nDocument {number} says {part} things.\n" for part in range(number % 4 + 1)]
        (folder / f"{number:02}.md").write_text("\n".join([*sections, "# End\n\nThe same in all.\n"]))


@asynccontextmanager
async def working(queue: MemoryJobQueue, *services: Services) -> AsyncIterator[list[str]]:
    tasks = [
        asyncio.create_task(queue.work({KIND: partial(embed_job, Kernel(each), turn=asyncio.Lock())}))
        for each in services
    ]
    try:
        while len(found := await queue.workers()) < len(services):
            await asyncio.sleep(0)
        yield [worker.name for worker in found]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def contents(search: Any) -> set[tuple[Any, ...]]:
    connection = catalogue.connect(search._place.catalogue)
    try:
        return set(
            connection.execute("SELECT path, ordinal, passages.id, text FROM files JOIN passages ON file = files.id")
        )
    finally:
        connection.close()


async def vectors(search: Any) -> dict[str, list[float]]:
    mirror = search._mirror()
    ids = sorted([id async for id in mirror.store.ids(mirror.namespace)])
    records, rows = await mirror.store.get(mirror.namespace, ids)
    return {record.id: row.buffer.tolist() for record, row in zip(records, rows or [], strict=True)}


async def equals_one_made_alone(search: Any, make_search: Any, tmp_path: Any, base: str = "alone") -> None:
    store = DictVectorStore()
    store.persistent = True
    alone = make_search(services=Services(HashingEmbeddings(), store, None), index=tmp_path / base)
    await alone.index.update()
    assert contents(search) == contents(alone)
    assert list((await vectors(search)).values()) == list((await vectors(alone)).values())


async def test_workers_make_the_same_index(make_search, store, queue, tmp_path) -> None:
    helpers = [Services(HashingEmbeddings(), store, queue) for _ in range(3)]
    own = Services(HashingEmbeddings(), store, queue)
    told: list[IndexProgress] = []
    async with working(queue, *helpers):
        search = make_search(services=own)
        report = await search.index.update(progress=told.append)
    assert (report.added, report.problems) == (DOCUMENTS, ())
    assert report.embedded == own.embeddings.embedded + sum(each.embeddings.embedded for each in helpers)
    assert own.embeddings.embedded < 20
    assert sum(each.embeddings.calls > 0 for each in helpers) > 1
    assert [each.done for each in told] == sorted(each.done for each in told)
    assert (told[-1].done, told[-1].workers) == (DOCUMENTS, 3)
    await equals_one_made_alone(search, make_search, tmp_path)
    assert len(await search.rank("the same in all", 100)) == DOCUMENTS


async def test_another_host_with_the_same_folder_only_scans(make_search, store, tmp_path) -> None:
    first = await make_search().index.update()
    services = Services(HashingEmbeddings(), store, None)
    other = make_search(services=services, index=tmp_path / "another host")
    report = await other.index.update()
    assert (report.added, report.passages) == (DOCUMENTS, first.passages)
    assert (report.embedded, services.embeddings.calls) == (0, 0)
    assert (await other.rank("document 7", 1))[0].vector > 0.4


async def test_another_model_is_embedded_by_workers_too(make_search, store, queue, monkeypatch) -> None:
    monkeypatch.setattr(vector_mirror, "_PAGE", 10)
    await make_search().index.update()
    helper = Services(HashingEmbeddings(64), store, queue)
    own = Services(HashingEmbeddings(64), store, queue)
    async with working(queue, helper):
        search = make_search(services=own)
        report = await search.index.update()
    assert len(await vectors(search)) == report.passages
    assert report.unchanged == DOCUMENTS
    assert report.embedded == helper.embeddings.embedded + own.embeddings.embedded
    assert helper.embeddings.embedded > 100
    assert 0 < own.embeddings.embedded < 20


async def test_what_a_stopped_update_has_embedded_is_not_embedded_again(make_search, store, queue, tmp_path) -> None:
    class Stopped(Exception):
        pass

    def stop(progress: IndexProgress) -> None:
        if progress.done > DOCUMENTS // 2:
            raise Stopped

    helpers = [Services(HashingEmbeddings(), store, queue) for _ in range(2)]
    async with working(queue, *helpers):
        with suppress(Stopped):
            await make_search(services=Services(HashingEmbeddings(), store, queue)).index.update(progress=stop)
        assert not await queue.jobs(KIND)
    search = make_search()
    in_store = await store.count(search._mirror().namespace)
    assert in_store > len(contents(search)) > 0
    report = await search.index.update()
    assert report.passages - report.embedded >= in_store
    await equals_one_made_alone(search, make_search, tmp_path)


async def test_where_the_workers_vanish_the_index_is_made_here(make_search, store, queue, tmp_path) -> None:
    class Slow(HashingEmbeddings):
        async def embed(self, texts, *, purpose="document"):
            await asyncio.sleep(0.02)
            return await super().embed(texts, purpose=purpose)

    told: list[IndexProgress] = []
    own = Services(HashingEmbeddings(), store, queue)
    async with working(queue, Services(Slow(), store, queue)) as [name]:

        def note(progress: IndexProgress) -> None:
            told.append(progress)
            if progress.workers and progress.done > 10:
                queue.silence(name)

        search = make_search(services=own)
        await asyncio.wait_for(search.index.update(progress=note), 30)
    assert own.embeddings.embedded > 50
    waited = [each.waiting for each in told if each.waiting]
    assert waited
    assert waited[0].startswith("No worker is at work any more.")
    assert told[-1].waiting is None
    await equals_one_made_alone(search, make_search, tmp_path)


async def test_a_worker_that_cannot_is_one_error_and_the_next_update_goes_on(
    make_search, store, queue, tmp_path
) -> None:
    own = Services(HashingEmbeddings(), store, queue)
    async with working(queue, Services(HashingEmbeddings(8), store, queue)):
        with pytest.raises(ServiceError, match=r"embeds with 'hashing-8' and the index with 'hashing-256'"):
            await make_search(services=own).index.update()
    search = make_search()
    await search.index.update()
    await equals_one_made_alone(search, make_search, tmp_path)


@given(st.lists(st.tuples(st.integers(0, 400), st.booleans()), min_size=1, max_size=5), st.randoms())
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_an_update_may_stop_anywhere_and_workers_go_on_after_it(
    make_search, folder, tmp_path_factory, stops: list[tuple[int, bool]], chance: random.Random
) -> None:
    """Stopped as by a kill: what the workers have under way goes on, and may come when nobody waits for it."""

    async def run() -> None:
        base = tmp_path_factory.mktemp("stopped")
        store = DictVectorStore()
        store.persistent = True
        queue = MemoryJobQueue(concurrency=2)

        def search() -> Any:
            return make_search(services=Services(HashingEmbeddings(), store, queue), index=base / "index")

        async with working(queue, *(Services(HashingEmbeddings(), store, queue) for _ in range(2))):
            for steps, kills in stops:
                for number in chance.sample(range(DOCUMENTS), 5):
                    (folder / f"{number:02}.md").write_text(f"Document {number} in version {chance.random()}.\n")
                task = asyncio.ensure_future(search().index.update())
                with pytest.MonkeyPatch.context() as patch:
                    if kills:
                        patch.setattr(MemoryJobQueue, "cancel", lambda *_: asyncio.sleep(0))
                    for _ in range(steps):
                        await asyncio.sleep(0)
                    task.cancel()
                    await asyncio.wait({task})
            last = search()
            await last.index.update()
            await equals_one_made_alone(last, make_search, base)

    asyncio.run(run())
