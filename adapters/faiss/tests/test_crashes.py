"""A writer that is killed leaves each batch whole or absent, and its vectors with their metadata."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from portico import VectorRecord, Vectors
from portico_faiss.config import FaissSettings
from portico_faiss.store import FaissVectorStore

needs_kill = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9 here")

BATCH = 40
DIMENSIONS = 16

WRITER = f"""
import asyncio, sys
import numpy as np
from pathlib import Path
from portico import VectorRecord, Vectors
from portico_faiss import _files
from portico_faiss.config import FaissSettings
from portico_faiss.store import FaissVectorStore

_files._DEAD_BEFORE_COMPACTION = 100

def row(batch, number):
    drawn = np.random.default_rng([batch, number]).standard_normal({DIMENSIONS})
    return (drawn / np.linalg.norm(drawn)).astype(np.float32)

async def main(folder, first, last, groups):
    store = FaissVectorStore(FaissSettings(path=Path(folder)))
    print("ready", flush=True)
    for batch in range(first, last):
        group = batch % groups
        numbers = range({BATCH})
        records = [VectorRecord(f"{{group}}-{{number}}", {{"batch": batch, "number": number}}) for number in numbers]
        rows = np.stack([row(batch, number) for number in numbers])
        await store.upsert("n", records, Vectors(rows, *rows.shape))
        if batch % 5 == 4:
            await store.delete("n", [f"{{(group + 1) % groups}}-{{number}}" for number in range({BATCH})])
    await store.aclose()

asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
"""


def start(folder: Path, first: int, last: int, groups: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), str(first), str(last), str(groups)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", "the writer did not start"
    return process


def finish(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    process.stdout.close()
    return process.wait(60)


def expected_row(batch: int, number: int) -> np.ndarray:
    drawn = np.random.default_rng([batch, number]).standard_normal(DIMENSIONS)
    return (drawn / np.linalg.norm(drawn)).astype(np.float32)


async def check(folder: Path) -> Counter[int]:
    """Read everything with a fresh store; return how many records there are of each batch."""
    store = FaissVectorStore(FaissSettings(path=folder))
    try:
        ids = [id async for id in store.ids("n")]
        records, vectors = await store.get("n", ids)
        assert await store.count("n") == len(ids) == len(records)
        if vectors is None:
            return Counter()
        rows = np.frombuffer(vectors.buffer.cast("B"), np.float32).reshape(vectors.rows, -1)
        for record, row in zip(records, rows, strict=True):
            batch, number = record.metadata["batch"], record.metadata["number"]
            assert np.array_equal(row, expected_row(batch, number)), f"{record} has another record's vector"
            [[match]] = await store.search("n", Vectors(row, 1, DIMENSIONS), top=1) if number == 0 else [[None]]
            assert match is None or match.id == record.id
        return Counter(record.metadata["batch"] for record in records)
    finally:
        await store.aclose()


async def kill_at_random_moments(folder: Path, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    for round in range(rounds):
        process = start(folder, round * 1_000, (round + 1) * 1_000, groups=7)
        time.sleep(chance.uniform(0, 0.12))
        os.kill(process.pid, signal.SIGKILL)
        finish(process)
        counts = await check(folder)
        assert set(counts.values()) <= {BATCH}, f"after kill {round}: parts of batches: {counts}"


@needs_kill
async def test_a_killed_writer_leaves_every_batch_whole_or_absent(tmp_path: Path) -> None:
    await kill_at_random_moments(tmp_path, 20, seed=2)


@pytest.mark.slow
@pytest.mark.timeout(600)
@needs_kill
async def test_a_writer_killed_many_times_leaves_every_batch_whole_or_absent(tmp_path: Path) -> None:
    await kill_at_random_moments(tmp_path, 300, seed=3)


@needs_kill
async def test_a_kill_between_any_two_steps_leaves_the_old_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file operation and statement of a compacting write is once the last one."""
    script = WRITER.replace("_DEAD_BEFORE_COMPACTION = 100", "_DEAD_BEFORE_COMPACTION = 0").replace(
        "async def main",
        """
import os
left = int(sys.argv.pop())
def step(frame, event, argument):
    global left
    if event == "c_call" and argument.__name__ in ("execute", "executemany", "write", "fsync", "flush", "unlink"):
        if "portico_faiss" in frame.f_code.co_filename or "pathlib" in frame.f_code.co_filename:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), 9)
import threading
threading.setprofile(step)
async def main""",
    )
    died = 0
    for step in range(1, 60, 4):
        folder = tmp_path / str(step)
        await write_batch(folder, 0)
        process = subprocess.run(
            [sys.executable, "-c", script, str(folder), "1", "2", "1", str(step)], check=False, capture_output=True
        )
        assert process.returncode in (0, -signal.SIGKILL), process.stderr.decode()
        assert set((await check(folder)).items()) in ({(0, BATCH)}, {(1, BATCH)})
        await write_batch(folder, 2)
        assert await check(folder) == Counter({2: BATCH})
        if process.returncode == 0:
            break
        died += 1
    assert died >= 4, "the kills came too late to show anything"


async def write_batch(folder: Path, batch: int) -> None:
    store = FaissVectorStore(FaissSettings(path=folder))
    records = [VectorRecord(f"0-{number}", {"batch": batch, "number": number}) for number in range(BATCH)]
    rows = np.stack([expected_row(batch, number) for number in range(BATCH)])
    await store.upsert("n", records, Vectors(rows, *rows.shape))
    await store.aclose()


async def test_two_writing_processes_lose_nothing(tmp_path: Path) -> None:
    processes = [start(tmp_path, 100 * number, 100 * number + 24, groups=1_000) for number in range(2)]
    reader = FaissVectorStore(FaissSettings(path=tmp_path))
    while any(process.poll() is None for process in processes):
        [found] = await reader.search("n", Vectors(expected_row(0, 0), 1, DIMENSIONS), top=5_000)
        counts = Counter(match.metadata["batch"] for match in found)
        assert set(counts.values()) <= {BATCH}, f"a reader saw parts of batches: {counts}"
    await reader.aclose()
    assert [finish(process) for process in processes] == [0, 0]
    assert await check(tmp_path) == Counter({100 * number + batch: BATCH for number in range(2) for batch in range(24)})


async def test_a_reader_follows_compactions_of_another_process(tmp_path: Path) -> None:
    process = start(tmp_path, 0, 60, groups=2)
    reader = FaissVectorStore(FaissSettings(path=tmp_path))
    query = Vectors(expected_row(0, 0), 1, DIMENSIONS)
    while process.poll() is None:
        [found] = await reader.search("n", query, top=1_000)
        counts = Counter(match.metadata["batch"] for match in found)
        assert set(counts.values()) <= {BATCH}
        for match in found:
            score = float(expected_row(match.metadata["batch"], match.metadata["number"]) @ expected_row(0, 0))
            assert match.score == pytest.approx(score, abs=1e-5), "a vector of another record"
    assert finish(process) == 0
    await reader.aclose()
    assert len(list(tmp_path.glob("*/vectors-*.f32"))) == 1, "old generations are left"
