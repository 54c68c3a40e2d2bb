"""A cache never stops the program and never gives a wrong vector, whatever befalls its file, its disk or its folder."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from portico_basics.cached_embeddings.embeddings import CachedEmbeddings
from portico_testkit.fakes.embedding_generator import HashingEmbeddings

from .conftest import Asked

TEXTS = [f"text {number}" for number in range(300)]


class Clock:
    """Seconds, as the test says."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


async def fill(opened: Any, folder: Path, texts: list[str] = TEXTS) -> Path:
    cached = opened(Asked())
    await cached.embed(texts)
    await cached.aclose()
    return next(iter(folder.glob("*.sqlite3")))


async def test_a_file_that_is_no_database_is_moved_aside_with_one_sentence(
    opened: Any, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = await fill(opened, folder)
    file.write_bytes(b"no database at all " * 1_000)
    generator = Asked()
    cached = opened(generator)
    expected = await generator.embed(TEXTS)
    for _ in range(3):
        assert await cached.embed(TEXTS) == expected
    assert len(generator.calls) == 2, "the new file was not used"
    (record,) = caplog.records
    assert "vectors-2-1.sqlite3 was damaged" in record.message
    assert (folder / "vectors-2-1.sqlite3.damaged").read_bytes().startswith(b"no database at all")


@pytest.mark.parametrize("seed", range(12))
async def test_bytes_that_have_changed_give_no_wrong_vector(opened: Any, folder: Path, seed: int) -> None:
    file = await fill(opened, folder)
    at_random = random.Random(seed)
    content = bytearray(file.read_bytes())
    for _ in range(at_random.choice([1, 10, 400])):
        content[at_random.randrange(100, len(content))] ^= 1 << at_random.randrange(8)
    file.write_bytes(content)
    expected = await Asked().embed(TEXTS)
    for _ in range(2):
        cached = opened(Asked())
        assert await cached.embed(TEXTS) == expected
        assert (await cached.embed(["another text"])).rows == 1
        await cached.aclose()


async def test_a_vector_with_a_changed_byte_is_embedded_again_with_one_sentence(
    opened: Any, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = await fill(opened, folder, ["red", "blue"])
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE vectors SET vector = zeroblob(length(vector)) WHERE row = 1")
    generator = Asked()
    rows = await opened(generator).embed(["red", "blue"])
    assert generator.calls == [("red",)]
    assert [record.message[:10] for record in caplog.records] == ["1 vectors "]
    assert rows == await generator.embed(["red", "blue"])


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE vectors SET checksum = 'x'",
        "UPDATE vectors SET vector = 'x'",
        "UPDATE vectors SET vector = x'00'",
        "DROP TABLE vectors",
    ],
)
async def test_values_that_cannot_be_are_embedded_again(opened: Any, folder: Path, statement: str) -> None:
    file = await fill(opened, folder)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)
    expected = await Asked().embed(TEXTS)
    assert await opened(Asked()).embed(TEXTS) == expected


async def test_a_folder_that_is_removed_while_it_is_used_is_made_again(opened: Any, folder: Path) -> None:
    cached = opened(Asked())
    await cached.embed(["red"])
    shutil.rmtree(folder)
    await cached.embed(["blue"])
    generator = Asked()
    await opened(generator).embed(["blue"])
    assert generator.calls == []


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is a folder in which nobody can write")
async def test_in_a_folder_that_cannot_be_written_texts_are_embedded_with_one_sentence(
    opened: Any, caplog: pytest.LogCaptureFixture
) -> None:
    generator = Asked()
    clock = Clock()
    cached = opened(generator, path=Path("/proc/portico"), clock=clock)
    for number in range(3):
        assert (await cached.embed(["red", "blue"])).rows == 2
        clock.now += 50 * number
    assert len(generator.calls) == 3
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "in /proc/portico cannot be opened" in record.message
    assert "set another `path` in [embeddings.cached]" in record.message


async def test_it_is_tried_again_after_a_minute(opened: Any, folder: Path) -> None:
    folder.write_text("in the way")
    generator = Asked()
    clock = Clock()
    cached = opened(generator, clock=clock)
    await cached.embed(["red"])
    folder.unlink()
    await cached.embed(["red"])
    assert not folder.exists(), "nobody waits for a folder at every call"
    clock.now += 61
    for _ in range(3):
        await cached.embed(["red"])
    assert len(generator.calls) == 3


async def test_on_a_full_disk_what_is_there_is_read_and_the_rest_embedded(
    opened: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    def connect_to_a_full_disk(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.execute("PRAGMA max_page_count = 1")
        return connection

    generator = Asked()
    cached = opened(generator)
    await cached.embed(["red"])
    # SQLite's own bound on pages gives the same error as a disk that takes no more.
    monkeypatch.setattr(sqlite3, "connect", connect_to_a_full_disk)
    await cached.aclose()
    for _ in range(3):
        assert (await cached.embed(["red", *TEXTS])).rows == len(TEXTS) + 1
    assert all("red" not in call for call in generator.calls[1:]), "what is there was not read any more"
    (record,) = caplog.records
    assert "is full; nothing was written. Free some space" in record.message


WRITE = """
import asyncio, sys
from pathlib import Path
from portico_basics.cached_embeddings.embeddings import CachedEmbeddings
from portico_testkit.fakes.embedding_generator import HashingEmbeddings

async def write(start, count):
    cached = CachedEmbeddings(HashingEmbeddings(), path=Path(sys.argv[1]), max_bytes=int(sys.argv[4]), wait=30)
    print("ready", flush=True)
    for first in range(start, start + count, 50):
        texts = [f"text {number}" for number in range(first, first + 50)]
        assert await cached.embed(texts) == await HashingEmbeddings().embed(texts)
        print(first, flush=True)
    await cached.aclose()
    print(cached.found, cached.embedded, flush=True)

asyncio.run(write(int(sys.argv[2]), int(sys.argv[3])))
"""


def writer(folder: Path, start: int, count: int, max_bytes: int = 100_000_000) -> subprocess.Popen[str]:
    arguments = [os.fspath(folder), str(start), str(count), str(max_bytes)]
    return subprocess.Popen([sys.executable, "-W", "error", "-c", WRITE, *arguments], stdout=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> tuple[int, int]:
    said, _ = process.communicate(timeout=100)
    assert process.returncode == 0
    found, embedded = said.split()[-2:]
    return int(found), int(embedded)


def test_processes_begin_and_fill_one_cache_at_once(folder: Path) -> None:
    processes = [writer(folder, start, 1_000) for start in (0, 500, 1_000)]
    for process in processes:
        ended(process)
    found, embedded = ended(writer(folder, 0, 2_000))
    assert (found, embedded) == (2_000, 0), "what a process wrote is lost"


def test_processes_at_once_in_a_cache_that_is_too_small_give_right_vectors(folder: Path) -> None:
    for process in [writer(folder, start, 2_000, 300_000) for start in (0, 1_000)]:
        ended(process)
    (file,) = folder.glob("*.sqlite3")
    assert file.stat().st_size <= 300_000


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.parametrize("max_bytes", [100_000_000, 300_000])
def test_a_kill_at_any_moment_leaves_a_whole_cache(folder: Path, max_bytes: int) -> None:
    kept: list[int] = []
    for seed in range(6):
        process = writer(folder, seed * 500, 100_000, max_bytes)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if seed == 5:
            # The others may be killed before they have kept anything.
            kept.append(int(process.stdout.readline()))
        time.sleep(random.Random(seed).uniform(0, 0.3))
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
        kept += map(int, process.stdout)
        process.stdout.close()
        for file in folder.glob("*.sqlite3"):
            with closing(sqlite3.connect(file)) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert len(list(folder.glob("*.sqlite3"))) == 1, "a kill made the file look damaged"

    async def check() -> None:
        cached = CachedEmbeddings(HashingEmbeddings(), path=folder, max_bytes=max_bytes)
        newest = [f"text {number}" for number in range(kept[-1], kept[-1] + 50)]
        assert await cached.embed(newest) == await HashingEmbeddings().embed(newest)
        assert cached.found == 50, "what was kept before a kill is lost"
        texts = [f"text {number}" for number in range(4_000)]
        assert await cached.embed(texts) == await HashingEmbeddings().embed(texts)
        await cached.aclose()

    asyncio.run(check())
