"""Workers in processes of their own begin, say why they ended, are killed, and end with who began them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.forking import is_running

from portico_testkit.job_workers import notes_of, worker_process

# A queue with one job, whose name is the number of the process that carries it out.
SOURCE = """
import os
from portico.ports import Job

class Queue:
    async def work(self, carry_out, *, emit=None):
        await carry_out["noted"](Job(str(os.getpid()), "noted", {{"folder": {folder!r}}}))
        await asyncio.Event().wait()

async def opened():
    return Queue()
"""


@pytest.fixture
def source(tmp_path: Path) -> str:
    return SOURCE.format(folder=str(tmp_path))


async def until(so: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not so():
            await asyncio.sleep(0.02)


async def test_a_worker_in_a_process_carries_out_jobs_until_the_block_is_left(source: str, tmp_path: Path) -> None:
    async with worker_process(source)() as worker:
        await until(lambda: notes_of(tmp_path, "begins"))
        assert notes_of(tmp_path, "ends") == []
        (tmp_path / "go").touch()
        await until(lambda: notes_of(tmp_path, "ends"))
        assert worker.complaint() is None
        (number,) = map(int, notes_of(tmp_path, "begins"))
        assert number != os.getpid()
    assert not is_running(number)


async def test_a_worker_ends_with_the_process_that_began_it(source: str, tmp_path: Path) -> None:
    program = f"""
import asyncio, os, signal
from pathlib import Path
from portico_testkit.job_workers import notes_of, worker_process

async def main():
    async with worker_process({source!r})():
        while not notes_of(Path({str(tmp_path)!r}), "begins"):
            await asyncio.sleep(0.02)
        os.kill(os.getpid(), signal.SIGTERM)

asyncio.run(main())
"""
    done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", program], timeout=60, check=False)
    assert done.returncode
    (number,) = map(int, notes_of(tmp_path, "begins"))
    await until(lambda: not is_running(number))
