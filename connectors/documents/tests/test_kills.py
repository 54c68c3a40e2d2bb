"""`kill -9` at any moment of an update leaves each document as it was or as it is to be."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.support.forking import Forking, forking, is_running

from portico_documents import catalogue

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and kill")

HERE = Path(__file__).parent
ROUNDS = 50
CHANGES = 8
State = dict[str, tuple[str, ...]]


@pytest.fixture(scope="module")
def worker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("update_worker", HERE / "update_worker.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Updates:
    """Starts updates in processes of their own."""

    def __init__(self, workers: Forking, base: Path) -> None:
        self._workers = workers
        self._folders = [str(base / name) for name in ("docs", "index", "vectors")]

    def start(self, seconds: float) -> int:
        return self._workers.start([*self._folders, seconds])

    def wait(self, pid: int) -> None:
        while is_running(pid):
            time.sleep(0.005)


@pytest.fixture
def updates(tmp_path: Path) -> Iterator[Updates]:
    (tmp_path / "docs").mkdir()
    with forking(HERE / "update_worker.py") as workers:
        yield Updates(workers, tmp_path)


def text_of(name: str, version: int) -> str:
    """Return a document of three passages, each of which says whose it is and of which state."""
    return "\n\n".join(f"{name} in version {version}, which is part {part} of some three." for part in range(3))


def on_disk(folder: Path) -> State:
    return {
        file.name: tuple(part.strip() for part in file.read_text().split("\n\n")) for file in sorted(folder.iterdir())
    }


def indexed(database: Path) -> State:
    """Return what the catalogue holds; the database must be whole."""
    if not database.exists():
        return {}
    try:
        connection = catalogue.connect(database)
    except catalogue.CatalogueOutdated:
        # Killed before its tables were made: there is nothing in it yet.
        return {}
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
        rows = connection.execute(
            "SELECT shown, text FROM files JOIN passages ON file = files.id ORDER BY shown, ordinal"
        ).fetchall()
    finally:
        connection.close()
    state: dict[str, list[str]] = {}
    for name, text in rows:
        state.setdefault(name, []).append(text)
    return {name: tuple(texts) for name, texts in state.items()}


def change(folder: Path, version: int, chance: random.Random) -> None:
    """Add, change, rename and delete some documents."""
    for _ in range(CHANGES):
        name = f"{chance.randrange(16):02}.txt"
        kind = chance.random()
        if kind < 0.65 or not (folder / name).exists():
            (folder / name).write_text(text_of(name, version))
        elif kind < 0.8:
            (folder / name).replace(folder / f"{chance.randrange(16):02}.txt")
        else:
            (folder / name).unlink()


def test_fifty_kills_leave_every_document_old_or_new(updates: Updates, worker: ModuleType, tmp_path: Path) -> None:
    chance = random.Random(20)
    folder = tmp_path / "docs"
    store = worker.SqliteVectors(tmp_path / "vectors")
    embeddings = worker.SlowEmbeddings()
    search = worker.make_search(folder, tmp_path / "index", store, embeddings)
    database = search._place.catalogue
    before: State = {}
    interrupted = partly = 0
    complete = False
    span = 0.09
    for version in range(ROUNDS):
        change(folder, version, chance)
        # Until an update has ended, a search would go on with it; from here on it just searches.
        if version == 10:
            updates.wait(updates.start(seconds=0.0))
            before, complete = indexed(database), True
            change(folder, version, chance)
        pid = updates.start(seconds=0.004)
        # The span follows the machine: most kills find an update at work, some come before it begins or too late.
        time.sleep(chance.uniform(0.0, span))
        in_time = is_running(pid)
        if in_time:
            interrupted += 1
            os.kill(pid, signal.SIGKILL)
            updates.wait(pid)
        after, goal = indexed(database), on_disk(folder)
        for name in before.keys() | after.keys() | goal.keys():
            state = after.get(name)
            assert state in (before.get(name), goal.get(name)), f"round {version}: {name} is {state}"
        partly += after not in (before, goal)
        span *= 0.9 if not in_time else 1.1 if after == before else 1
        # Whatever the state, it can be searched, and finds only what it holds.
        if complete:
            for hit in asyncio.run(search.rank("part of some version", 100)):
                assert hit.changed or hit.text in after[hit.path], f"round {version}: {hit.path} has {hit.text!r}"
        before = after
    assert interrupted > ROUNDS // 3, "the kills came too late to say anything"
    assert partly > 3, "no kill came between two documents"
    updates.wait(updates.start(seconds=0.0))
    assert indexed(database) == on_disk(folder)
    fresh_store = worker.SqliteVectors(tmp_path / "fresh-vectors")
    fresh = worker.make_search(folder, tmp_path / "fresh", fresh_store, embeddings)
    asyncio.run(fresh.index.update())
    namespace, fresh_namespace = search._mirror().namespace, fresh._mirror().namespace
    assert store._rows(namespace).keys() == fresh_store._rows(fresh_namespace).keys()
    for query in ("part of some version", "03 txt part 2", f"version {ROUNDS - 1}"):
        found, expected = asyncio.run(search.rank(query, 100)), asyncio.run(fresh.rank(query, 100))
        assert sorted(found, key=repr) == sorted(expected, key=repr), query


def test_an_update_killed_half_way_is_continued(updates: Updates, worker: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    for number in range(60):
        (folder / f"{number:02}.txt").write_text(text_of(f"{number:02}", 0))
    store = worker.SqliteVectors(tmp_path / "vectors")
    embeddings = worker.SlowEmbeddings()
    search = worker.make_search(folder, tmp_path / "index", store, embeddings)
    pid = updates.start(seconds=0.2)
    while not indexed(search._place.catalogue):
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    updates.wait(pid)
    kept = len(indexed(search._place.catalogue))
    assert 0 < kept < 60
    report = asyncio.run(search.index.update())
    assert (report.unchanged, report.added) == (kept, 60 - kept)
    assert embeddings.embedded == 3 * (60 - kept)


def test_two_processes_and_a_search_use_one_index_at_once(updates: Updates, worker: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    for number in range(30):
        (folder / f"{number:02}.txt").write_text(text_of(f"{number:02}", 0))
    pids = [updates.start(seconds=0.01) for _ in range(2)]
    store = worker.SqliteVectors(tmp_path / "vectors")
    embeddings = worker.SlowEmbeddings()
    search = worker.make_search(folder, tmp_path / "index", store, embeddings)
    hits = asyncio.run(search.rank("part of some version", 200))
    assert len(hits) == 90
    for pid in pids:
        updates.wait(pid)
    assert indexed(search._place.catalogue) == on_disk(folder)
    report = asyncio.run(search.index.update())
    assert (report.unchanged, report.embedded) == (30, 0)
