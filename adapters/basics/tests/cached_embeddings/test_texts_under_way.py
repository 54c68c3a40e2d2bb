"""Equal texts in several calls at once are embedded once, and nobody suffers from another call's end."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from portico.errors import RateLimited
from portico.search import Vectors
from portico_basics.cached_embeddings.embeddings import CachedEmbeddings
from portico_testkit.event_loop import heartbeat

from .conftest import Asked


@contextmanager
def another_writer(folder: Path) -> Iterator[None]:
    """Hold the one file of the folder as another process does that writes."""
    (file,) = folder.glob("*.sqlite3")
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        yield


async def test_equal_texts_of_calls_at_once_are_embedded_once(opened: Any) -> None:
    generator = Asked()
    cached = opened(generator)
    calls = [[f"text {number % 7}", f"text {number % 3}", "all of them"] for number in range(20)]
    got = await asyncio.gather(*(cached.embed(call) for call in calls))
    asked = [text for call in generator.calls for text in call]
    assert sorted(asked) == sorted(set(asked)), "a text was embedded twice"
    for call, rows in zip(calls, got, strict=True):
        assert rows == await generator.embed(call)


async def test_a_call_waits_for_what_another_one_embeds(opened: Any) -> None:
    generator = Asked()
    cached = opened(generator)
    generator.gate.clear()
    first = asyncio.create_task(cached.embed(["red", "blue"]))
    await generator.waiting.wait()
    generator.waiting.clear()
    second = asyncio.create_task(cached.embed(["blue", "green"]))
    await generator.waiting.wait()
    assert generator.calls == [("red", "blue"), ("green",)]
    generator.gate.set()
    assert (await first)[1] == (await second)[0]
    assert len(generator.calls) == 2


async def test_purposes_do_not_wait_for_each_other(opened: Any) -> None:
    generator = Asked()
    cached = opened(generator)
    await asyncio.gather(cached.embed(["red"]), cached.embed(["red"], purpose="query"))
    assert generator.calls == [("red",), ("red",)]


async def test_when_a_call_is_cancelled_one_of_those_that_wait_takes_over(opened: Any) -> None:
    generator = Asked()
    cached = opened(generator)
    tasks = asyncio.all_tasks()
    generator.gate.clear()
    first = asyncio.create_task(cached.embed(["red", "blue"]))
    await generator.waiting.wait()
    others = [asyncio.create_task(cached.embed(["blue"])) for _ in range(5)]
    await asyncio.sleep(0.05)
    assert len(generator.calls) == 1
    first.cancel()
    await asyncio.sleep(0.05)
    generator.gate.set()
    rows = await asyncio.gather(*others)
    assert generator.calls[1:] == [("blue",)], "the others embedded it again, or not at all"
    assert len({bytes(each.buffer) for each in rows}) == 1
    assert first.cancelled()
    assert asyncio.all_tasks() == tasks, "tasks are left"


async def test_whoever_stops_waiting_leaves_the_others_as_they_are(opened: Any) -> None:
    generator = Asked()
    cached = opened(generator)
    generator.gate.clear()
    first = asyncio.create_task(cached.embed(["red"]))
    await generator.waiting.wait()
    impatient, patient = (asyncio.create_task(cached.embed(["red"])) for _ in range(2))
    await asyncio.sleep(0.05)
    impatient.cancel()
    await asyncio.gather(impatient, return_exceptions=True)
    assert impatient.cancelled()
    generator.gate.set()
    assert await first == await patient
    assert len(generator.calls) == 1


async def test_an_error_is_the_callers_own_and_others_ask_for_themselves(opened: Any) -> None:
    generator = Asked()
    cached = opened(generator)
    generator.gate.clear()
    generator.error = RateLimited("Too many requests.")
    first = asyncio.create_task(cached.embed(["red", "much too long"]))
    await generator.waiting.wait()
    second = asyncio.create_task(cached.embed(["red"]))
    await asyncio.sleep(0.05)
    generator.gate.set()
    with pytest.raises(RateLimited, match="Too many"):
        await first
    with pytest.raises(RateLimited, match="Too many"):
        await second
    generator.error = None
    assert (await cached.embed(["red"])).rows == 1
    assert generator.calls == [("red", "much too long"), ("red",), ("red",)]


async def test_texts_are_embedded_once_also_while_the_cache_is_not_to_be_used(opened: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    generator = Asked()
    cached = opened(generator, path=tmp_path / "file" / "cache")
    await cached.embed(["something"])
    await asyncio.gather(*(cached.embed(["red"]) for _ in range(5)))
    assert generator.calls == [("something",), ("red",)]


def test_event_loops_share_what_is_under_way_and_what_is_kept(folder: Path) -> None:
    calls: list[tuple[str, ...]] = []
    both = threading.Barrier(2, timeout=10)

    class Slow(Asked):
        async def embed(self, texts: Sequence[str], *, purpose: Any = "document") -> Vectors:
            calls.append(tuple(texts))
            await asyncio.sleep(0.2)
            return Vectors.from_rows([[1.0, 0.0]] * len(texts), dimensions=2)

    cached = CachedEmbeddings(Slow(), path=folder)
    got: list[Vectors] = []

    def run() -> None:
        both.wait()
        got.append(asyncio.run(cached.embed(["red"])))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(got) == 2
    assert got[0] == got[1]
    assert calls == [("red",)]
    asyncio.run(cached.aclose())


async def test_a_file_that_another_process_holds_keeps_no_call_waiting(opened: Any, folder: Path) -> None:
    generator = Asked()
    cached = opened(generator, wait=0.2)
    await cached.embed(["red"])
    with another_writer(folder):
        assert (await cached.embed(["red", "blue"])).rows == 2
    assert generator.calls == [("red",), ("blue",)], "what was there was read all the same"


async def test_the_event_loop_goes_on_while_another_process_holds_the_file(opened: Any, folder: Path) -> None:
    cached = opened(Asked(), wait=30)
    await cached.embed(["red"])
    async with heartbeat() as beat:
        with another_writer(folder):
            waiting = asyncio.create_task(cached.embed(["red", "blue"]))
            await beat.turned(20)
            assert not waiting.done(), "the event loop stood still while the thread waited"
        assert (await waiting).rows == 2


async def test_closing_leaves_no_thread(opened: Any) -> None:
    cached = opened(Asked())
    await cached.embed(["red"])
    (thread,) = [each for each in threading.enumerate() if each.name.startswith("portico-basics")]
    await cached.aclose()
    thread.join(5)
    assert not thread.is_alive()
    await cached.aclose()
