"""Who may write: leases, their tokens, and processes that are gone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from portico.errors import StoreBusy

locks = pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps no sign of the process")

HOLD = """
import asyncio, sys
from pathlib import Path
from portico_basics.config import SqliteSettings
from portico_basics.sqlite.store import SqliteRunStore

async def hold():
    store = SqliteRunStore(SqliteSettings(path=Path(sys.argv[1])))
    await store.acquire("r1", owner="another", seconds=3600)
    print("held", flush=True)
    await asyncio.sleep(60)

asyncio.run(hold())
"""


async def test_what_one_holds_another_does_not_get_until_it_runs_out(opened: Any, clock: Any) -> None:
    mine, yours = opened(), opened()
    first = await mine.acquire("r1", owner="me", seconds=10)
    assert await yours.held("r1")
    with pytest.raises(StoreBusy, match="Another process is at work on the run r1"):
        await yours.acquire("r1", owner="you", seconds=10)
    clock.now += 10
    assert not await yours.held("r1")
    second = await yours.acquire("r1", owner="you", seconds=10)
    assert second.token > first.token
    with pytest.raises(StoreBusy, match="belongs to another process"):
        await mine.append(first, [{"type": "pursuit"}])
    with pytest.raises(StoreBusy):
        await mine.renew(first, seconds=10)
    await mine.release(first)
    assert await yours.held("r1"), "a stale lease gives nothing back"
    await yours.append(second, [{"type": "pursuit"}])
    assert await mine.read("r1") == [{"type": "pursuit"}]


async def test_of_many_who_want_a_run_at_once_one_gets_it(opened: Any) -> None:
    stores = [opened() for _ in range(8)]
    wanted = [store.acquire("r1", owner=f"o{number}", seconds=60) for number, store in enumerate(stores)]
    got = await asyncio.gather(*wanted, return_exceptions=True)
    assert sorted(type(each).__name__ for each in got) == ["Lease", *["StoreBusy"] * 7]


@locks
async def test_a_lease_ends_with_the_process_that_was_killed(opened: Any, file: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, os.fspath(file)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        store = opened()
        assert await store.held("r1")
        with pytest.raises(StoreBusy):
            await store.acquire("r1", owner="me", seconds=60)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert not await store.held("r1")
        lease = await store.acquire("r1", owner="me", seconds=60)
        await store.append(lease, [{"type": "pursuit"}])


@locks
async def test_what_killed_processes_leave_is_swept_away(opened: Any, file: Path) -> None:
    signs = file.with_name("runs.sqlite3-processes")
    signs.mkdir(parents=True)
    for number in range(5):
        (signs / f"left{number}").touch()
    store = opened(keep=0)
    for run in ("r1", "r2"):
        lease = await store.acquire(run, owner="me", seconds=60)
        await store.append(lease, [{"type": "outcome", "kind": "answer"}])
        await store.release(lease)
    assert list(signs.glob("left*")) == []
    await store.aclose()
    assert list(signs.iterdir()) == []


async def test_a_token_never_comes_again(opened: Any) -> None:
    store = opened(keep=0)
    tokens = []
    for _ in range(3):
        lease = await store.acquire("r1", owner="me", seconds=60)
        tokens.append(lease.token)
        await store.append(lease, [{"type": "outcome", "kind": "answer"}])
        await store.release(lease)
    assert await store.runs() == [], "the run is removed each time"
    assert tokens == sorted(set(tokens))
