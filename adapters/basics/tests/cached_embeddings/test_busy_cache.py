"""A file that another process holds stops neither a call nor the event loop."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from portico_testkit.event_loop import heartbeat

from .conftest import Asked


@contextmanager
def another_writer(folder: Path) -> Iterator[None]:
    """Hold the one file of the folder as another process does that writes."""
    (file,) = folder.glob("*.sqlite3")
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        yield


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
