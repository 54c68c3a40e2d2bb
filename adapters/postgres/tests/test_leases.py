"""Who may write: leases and their tokens, by the server's clock, and processes that are gone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql

from portico.errors import StoreBusy
from portico_postgres.run_store import is_gone, sign_of

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when a process began")


async def test_an_append_under_a_lease_of_another_store_goes_on_where_that_was(opened: Any) -> None:
    first, second = opened(), opened()
    lease = await first.acquire("r1", owner="me", seconds=60)
    await first.append(lease, [{"n": 1}])
    await second.append(lease, [{"n": 2}])
    await first.append(lease, [{"n": 3}])
    assert await second.read("r1") == [{"n": 1}, {"n": 2}, {"n": 3}]


async def test_a_lease_that_was_given_back_cannot_be_renewed_or_written_under(opened: Any) -> None:
    store = opened()
    lease = await store.acquire("r1", owner="me", seconds=60)
    await store.release(lease)
    with pytest.raises(StoreBusy, match="belongs to another process"):
        await store.renew(lease, seconds=60)
    with pytest.raises(StoreBusy, match="Nothing was written"):
        await store.append(lease, [{}])
    assert not await store.held("r1")


async def test_the_clock_of_a_process_counts_for_nothing(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, yours = opened(), opened()
    lease = await mine.acquire("r1", owner="me", seconds=60)
    for moved in (-1e6, 1e6):
        monkeypatch.setattr(time, "time", lambda moved=moved: 1.7e9 + moved)
        assert await yours.held("r1")
        with pytest.raises(StoreBusy, match=r"lease to run out, in (59|60) s"):
            await yours.acquire("r1", owner="you", seconds=60)
        await mine.append(lease, [{}])


HOLD = """
import asyncio, os, sys
from portico.plugins import Secret
from portico_postgres.config import PostgresRunSettings
from portico_postgres.run_store import PostgresRunStore

async def hold():
    store = PostgresRunStore(PostgresRunSettings(uri=Secret(os.environ["URI"]), schema=sys.argv[1]))
    await store.acquire("r1", owner="another", seconds=3600)
    print("held", flush=True)
    await asyncio.sleep(60)

asyncio.run(hold())
"""


@linux
async def test_a_lease_ends_with_the_process_that_was_killed(opened: Any, uri: str, schema: str) -> None:
    command = [sys.executable, "-c", HOLD, schema]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "URI": uri}) as process:
        assert process.stdout.readline() == "held\n"
        store = opened()
        assert await store.held("r1")
        with pytest.raises(StoreBusy):
            await store.acquire("r1", owner="me", seconds=60)
        os.kill(process.pid, signal.SIGKILL)
        # Before anybody waits for it, and after.
        while await store.held("r1"):
            await asyncio.sleep(0.01)
        process.wait()
        assert not await store.held("r1")
        lease = await store.acquire("r1", owner="me", seconds=60)
        await store.append(lease, [{"type": "pursuit"}])


@linux
async def test_a_process_is_gone_only_where_that_can_be_known(opened: Any, server: Any, schema: str) -> None:
    own = sign_of(os.getpid())
    assert own is not None
    system, pid, began = own.rsplit(" ", 2)
    boot, space = system.split(" ")
    unused = next(number for number in range(2**22 - 1, 1, -1) if not Path(f"/proc/{number}").exists())
    gone = {f"{system} {unused} {began}", f"{system} {pid} {int(began) + 1}"}
    others = {
        own,
        None,
        "",
        "nonsense",
        f"another {space} {unused} {began}",
        f"{boot} 4026531000 {unused} {began}",
        f"{system} x {began}",
        f"{system} 0 {began}",
        f"{system} -1 {began}",
        f"{system} {2**70} {began}",
    }
    assert {sign for sign in gone | others if is_gone(sign)} == gone
    store = opened()
    lease = await store.acquire("r1", owner="another", seconds=60)
    for sign in others:
        server.run(sql.SQL("UPDATE {} SET presence = %s").format(sql.Identifier(schema, "runs")), (sign,))
        assert await store.held("r1"), sign
        with pytest.raises(StoreBusy):
            await store.acquire("r1", owner="me", seconds=60)
    await store.append(lease, [{}])
    for sign in gone:
        server.run(sql.SQL("UPDATE {} SET presence = %s").format(sql.Identifier(schema, "runs")), (sign,))
        assert not await store.held("r1"), sign
    newer = await store.acquire("r1", owner="me", seconds=60)
    assert newer.token > lease.token


async def test_a_token_never_comes_again(opened: Any) -> None:
    store = opened(keep_days=0)
    tokens = []
    for _ in range(3):
        lease = await store.acquire("r1", owner="me", seconds=60)
        tokens.append(lease.token)
        await store.append(lease, [{"type": "outcome", "kind": "answer"}])
        await store.release(lease)
        await store._clean()
        assert await store.runs() == [], "the run is removed each time"
    assert tokens == sorted(set(tokens))


async def test_the_journal_is_told_how_long_a_lease_lasts(opened: Any) -> None:
    assert opened().lease_seconds == 60.0
    assert opened(lease_seconds=5.0).lease_seconds == 5.0
    with pytest.raises(ValueError, match="lease_seconds"):
        opened(lease_seconds=1.0)
