"""Processes that are killed in the middle of appends: what they said was written is there, and once."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql
from tests.support.forking import Forking, forking, is_running

from portico.errors import StoreBusy

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and kill")

KILLS = 15
KILLS_OF_A_SOAK = 200


@pytest.fixture
def process() -> Iterator[Forking]:
    with forking(Path(__file__).with_name("appending_worker.py")) as started:
        yield started


async def kill_at_any_moment(
    process: Forking, server: Any, uri: str, schema: str, said: Path, kills: int, opened: Any
) -> None:
    """Kill one process after another, each of which goes on with the run of the one before it."""
    moments = random.Random(8)
    store = opened()
    expected = 0
    for _ in range(kills):
        said.write_text("")
        pid = process.start({"uri": uri, "schema": schema, "said": os.fspath(said)})
        while not said.read_text() and is_running(pid):
            time.sleep(0.002)
        time.sleep(moments.uniform(0, 0.15))
        os.kill(pid, signal.SIGKILL)
        told = [int(line) for line in said.read_text().splitlines(keepends=True) if line.endswith("\n")]
        lease = None
        while lease is None:
            # At once: its lease was for an hour.
            # The server may still be at the last statement of the process.
            with suppress(StoreBusy):
                lease = None if await store.held("r1") else await store.acquire("r1", owner="parent", seconds=60)
        entries = await store.read("r1")
        await store.release(lease)
        assert [entry["n"] for entry in entries] == list(range(len(entries))), "one is missing, or there twice"
        assert len(entries) % 3 == 0, "half an append was written"
        assert len(entries) >= max(told, default=0) * 3, "one that was said to be written is not there"
        assert len(entries) >= expected
        expected = len(entries)
    [(length, held)] = server.run(
        sql.SQL("SELECT length, owner IS NOT NULL FROM {}").format(sql.Identifier(schema, "runs"))
    )
    assert (length, held) == (expected, False)
    assert expected > kills, "the processes came to write something"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells when a process began")
async def test_what_was_said_to_be_written_outlives_a_kill_at_any_moment(
    process: Forking, server: Any, uri: str, schema: str, tmp_path: Path, opened: Any
) -> None:
    await kill_at_any_moment(process, server, uri, schema, tmp_path / "said", KILLS, opened)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells when a process began")
async def test_the_same_for_minutes(
    process: Forking, server: Any, uri: str, schema: str, tmp_path: Path, opened: Any
) -> None:
    await kill_at_any_moment(process, server, uri, schema, tmp_path / "said", KILLS_OF_A_SOAK, opened)
