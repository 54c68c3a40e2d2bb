"""`kill -9` while the real parts index: documents, wordllama and FAISS, wired by the host."""

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

from portico.ports import TextSearch
from portico.search import TextSearchOptions

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and kill")

WORKER = Path(__file__).with_name("indexing_worker.py")
ROUNDS = 20
DOCUMENTS = 200
CHANGES = 80
State = dict[str, frozenset[str]]


@pytest.fixture(scope="module")
def worker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("indexing_worker", WORKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def process() -> Iterator[Forking]:
    with forking(WORKER) as started:
        yield started


def start(process: Forking, base: Path) -> int:
    return process.start(str(base))


def wait(pid: int) -> None:
    while is_running(pid):
        time.sleep(0.005)


def parts(name: str, version: int) -> list[str]:
    """Return three passages, each of which says whose it is and of which state."""
    return [f"{name} in version {version}, which is part {part} of some three." for part in range(3)]


def on_disk(folder: Path) -> State:
    return {file.name: frozenset(file.read_text().split("\n\n")) for file in folder.iterdir()}


def change(folder: Path, version: int, chance: random.Random) -> None:
    """Add, change, rename and delete some documents."""
    for _ in range(CHANGES):
        name = f"{chance.randrange(DOCUMENTS):03}.txt"
        kind = chance.random()
        if kind < 0.7 or not (folder / name).exists():
            (folder / name).write_text("\n\n".join(parts(name, version)))
        elif kind < 0.85:
            (folder / name).replace(folder / f"{chance.randrange(DOCUMENTS):03}.txt")
        else:
            (folder / name).unlink()


async def found(worker: ModuleType, base: Path) -> State:
    """Open the index as a new process would and return what a search finds, by document."""
    state: dict[str, set[str]] = {}
    # Passages that are not in their documents any more are not quoted, but without the folder all are.
    away = (base / "docs").rename(base / "away")
    async with worker.application(base).services() as services:
        search = services.get(TextSearch, "docs")
        results = await search.get_search_results("which part of some version", TextSearchOptions(top=4 * DOCUMENTS))
        async for hit in results:
            state.setdefault(hit.path, set()).add(hit.text.strip())
    away.rename(base / "docs")
    return {name: frozenset(texts) for name, texts in state.items()}


def test_kills_leave_an_index_that_opens_with_each_document_old_or_new(process, worker, tmp_path):
    chance = random.Random(7)
    folder = tmp_path / "docs"
    folder.mkdir()
    (tmp_path / "portico.toml").touch()
    change(folder, 0, chance)
    began = time.monotonic()
    wait(start(process, tmp_path))
    whole = time.monotonic() - began
    before = asyncio.run(found(worker, tmp_path))
    assert before == on_disk(folder)
    interrupted = 0
    for version in range(1, ROUNDS + 1):
        change(folder, version, chance)
        pid = start(process, tmp_path)
        time.sleep(chance.uniform(0.1, 1.0) * whole)
        if is_running(pid):
            interrupted += 1
            os.kill(pid, signal.SIGKILL)
            wait(pid)
        else:  # the first update may have been stopped by a busy host, and taken longer than the others
            whole *= 0.9
        after, goal = asyncio.run(found(worker, tmp_path)), on_disk(folder)
        for name in before.keys() | after.keys() | goal.keys():
            assert after.get(name) in (before.get(name), goal.get(name)), f"round {version}: {name}"
        before = after
    assert interrupted >= ROUNDS // 3, f"only {interrupted} kills found an update at work"
    wait(start(process, tmp_path))
    assert asyncio.run(found(worker, tmp_path)) == on_disk(folder)


def test_two_processes_index_one_folder_and_do_no_harm(process, worker, tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (tmp_path / "portico.toml").touch()
    change(folder, 0, random.Random(3))
    pids = [start(process, tmp_path) for _ in range(2)]
    for pid in pids:
        wait(pid)
    assert asyncio.run(found(worker, tmp_path)) == on_disk(folder)
    report = asyncio.run(worker.update(tmp_path))
    assert (report.added, report.changed, report.embedded) == (0, 0, 0)
