"""Several real processes on one database: killed, begun at once, cut off, and with a server that restarts."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.processes import killed_at_the_end
from tests.support.tcp_proxy import TcpProxy

from portico.plugins import Secret
from portico.ports import Job
from portico_dbos.config import DbosSettings
from portico_dbos.runner import DbosRunner

Open = Callable[..., DbosRunner]
Begin = Callable[..., subprocess.Popen[bytes]]
PROGRAM = Path(__file__).with_name("working_process.py")
PATIENCE = 120.0
TIMEOUT = 2.0


@pytest.fixture
def arguments(where: dict[str, Any]) -> str:
    """Return the settings as the processes take them."""
    texts = {key: value.reveal() if isinstance(value, Secret) else str(value) for key, value in where.items()}
    return json.dumps(texts | {"poll": 0.05, "worker_timeout": TIMEOUT, "concurrency": 3, "attempts": 3})


@pytest.fixture
def begin(arguments: str, tmp_path: Path) -> Iterator[Begin]:
    """Return what begins a process; all that are left are killed in the end, and none may have said a word."""
    with ExitStack() as stack:

        def process(*more: str) -> subprocess.Popen[bytes]:
            said = stack.enter_context((tmp_path / "said").open("ab"))
            command = [sys.executable, str(PROGRAM), arguments, *(more or (str(tmp_path),))]
            begun = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, start_new_session=True
            )
            stack.enter_context(killed_at_the_end(begun))
            return begun

        yield process


def said(folder: Path) -> str:
    return (folder / "said").read_text("utf-8", "replace")


async def done(runner: DbosRunner, names: list[str], *, seconds: float = PATIENCE) -> list[Any]:
    """Wait until all of these jobs have ended."""
    until = time.monotonic() + seconds
    while True:
        told = await runner.jobs.status(names)
        if all(each is not None and each.state in ("done", "failed", "cancelled") for each in told):
            return told
        assert time.monotonic() < until, f"jobs did not end: {told}"
        await asyncio.sleep(0.05)


def notes(folder: Path) -> list[str]:
    file = folder / "notes"
    return file.read_text("utf-8").splitlines() if file.exists() else []


def executed_again(folder: Path) -> list[str]:
    """Return the steps that began after they had been recorded."""
    recorded: set[str] = set()
    again = []
    for line in notes(folder):
        what, _, step = line.partition(" ")
        if what == "recorded":
            recorded.add(step)
        elif step in recorded:
            again.append(step)
    return again


def of_steps(count: int, steps: int = 6, seconds: float = 0.1) -> list[Job]:
    return [Job(f"j{number}", "steps", {"steps": steps, "seconds": seconds}) for number in range(count)]


async def test_workers_that_are_killed_lose_no_job_and_no_recorded_step_is_executed_again(
    opened: Open, begin: Begin, tmp_path: Path
) -> None:
    runner, jobs = opened(), of_steps(8, steps=10)
    names = [job.name for job in jobs]
    await runner.jobs.submit(jobs)
    workers = [begin(), begin()]
    for _ in range(3):
        before = len(notes(tmp_path))
        async with asyncio.timeout(PATIENCE):
            while len(notes(tmp_path)) < before + 20:
                await asyncio.sleep(0.02)
        workers[0].kill()
        workers = [*workers[1:], begin()]
    told = await done(runner, names)
    assert [each.state for each in told] == ["done"] * len(jobs)
    assert [each.result for each in told] == [list(range(10))] * len(jobs)
    assert max(each.attempts for each in told) > 1, "no job had a worker that was killed"
    assert executed_again(tmp_path) == []
    assert said(tmp_path).count("\n") < 30


async def test_processes_that_begin_at_once_on_a_new_database_all_do(
    begin: Begin, tmp_path: Path, opened: Open
) -> None:
    processes = [begin("submit", f"j{number}") for number in range(5)]
    for process in processes:
        out, _ = await asyncio.to_thread(process.communicate, timeout=PATIENCE)
        assert (process.returncode, out) == (0, b"done\n"), said(tmp_path)
    assert said(tmp_path) == ""
    told = await opened().jobs.status([f"j{number}" for number in range(5)])
    assert [each and each.state for each in told] == ["waiting"] * 5


async def test_a_job_that_ends_its_worker_each_time_is_given_up(opened: Open, begin: Begin, tmp_path: Path) -> None:
    runner = opened()
    await runner.jobs.submit([Job("deadly", "deadly")])
    until = time.monotonic() + PATIENCE
    worker = begin()
    while (told := (await runner.jobs.status(["deadly"]))[0]) is None or told.state != "failed":
        assert time.monotonic() < until, f"it was not given up: {told}"
        if worker.poll() is not None:
            worker = begin()
        await asyncio.sleep(0.05)
    assert "3 workers were gone while they had it" in (told.error or "")
    assert told.attempts == 4


async def test_a_server_that_restarts_stops_nothing(
    request: pytest.FixtureRequest, where: dict[str, Any], opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    if "path" in where:
        pytest.skip("a file has no server")
    stoppable = request.getfixturevalue("stoppable")
    # A server may have more to recover than it takes to give up a worker.
    runner = opened(worker_timeout=60.0)
    counts: dict[str, int] = {}

    async def step(name: str) -> str:
        counts[name] = counts.get(name, 0) + 1
        await asyncio.sleep(0.05)
        return name

    async def carry_out(job: Job) -> list[str]:
        names = [f"{job.name}/{number}" for number in range(10)]
        return [await runner.execute(job.name, name, partial(step, name)) for name in names]

    jobs = of_steps(12)
    await runner.jobs.submit(jobs)
    with caplog.at_level(logging.INFO, "portico_dbos"):
        working = asyncio.ensure_future(runner.jobs.work({"steps": carry_out}))
        running = asyncio.ensure_future(runner.durable.run("mine", lambda: carry_out(Job("mine", "steps"))))
        while sum(counts.values()) < 20:
            await asyncio.sleep(0.02)
        await asyncio.to_thread(stoppable.stop, at_once=True)
        await asyncio.sleep(2.0)
        await asyncio.to_thread(stoppable.start)
        until = time.monotonic() + PATIENCE
        while True:
            try:
                told = await done(runner, [job.name for job in jobs])
                break
            except Exception:
                assert time.monotonic() < until
        assert await asyncio.wait_for(running, PATIENCE) == [f"mine/{number}" for number in range(10)]
        working.cancel()
        await asyncio.wait([working])
    assert [each.state for each in told] == ["done"] * len(jobs)
    assert set(counts.values()) == {1}, f"steps were executed more than once: {counts}"
    ours = [record.getMessage() for record in caplog.records if record.name == "portico_dbos"]
    assert 1 <= len(ours) <= 6, ours


async def test_closing_while_the_server_is_away_ends_everything(
    request: pytest.FixtureRequest, where: dict[str, Any], opened: Open
) -> None:
    if "path" in where:
        pytest.skip("a file has no server")
    stoppable = request.getfixturevalue("stoppable")
    runner = opened()
    before = set(threading.enumerate())
    began, go = asyncio.Event(), asyncio.Event()

    async def action() -> str:
        began.set()
        await go.wait()
        return "done"

    running = asyncio.ensure_future(runner.durable.run("r", lambda: runner.execute("r", "s", action)))
    await asyncio.wait_for(began.wait(), PATIENCE)
    await asyncio.to_thread(stoppable.stop, at_once=True)
    go.set()
    await asyncio.sleep(1.0)  # DBOS is trying to record it
    running.cancel()
    await runner.aclose()
    await asyncio.wait([running], timeout=PATIENCE)
    assert running.cancelled()
    async with asyncio.timeout(PATIENCE):
        while any("dbos" in thread.name for thread in set(threading.enumerate()) - before):
            await asyncio.sleep(0.05)


async def test_a_worker_that_is_cut_off_stops_its_jobs_and_goes_on_when_it_is_back(
    request: pytest.FixtureRequest, where: dict[str, Any], opened: Open, begin: Begin, tmp_path: Path
) -> None:
    if "path" in where:
        pytest.skip("a file is not cut off")
    server = request.getfixturevalue("server")
    with TcpProxy(server.address) as proxy:
        uri = Secret(server.uri_at(proxy.port))
        near = opened(worker_timeout=TIMEOUT)
        cut = DbosRunner(DbosSettings(**where | {"uri": uri, "poll": 0.05, "worker_timeout": TIMEOUT}))
        stopped = asyncio.Event()
        began = asyncio.Event()

        async def carry_out(job: Job) -> str:
            began.set()
            if job.name != "j":
                return "here"
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
            return "never"

        working = asyncio.ensure_future(cut.jobs.work({"steps": carry_out}))
        await near.jobs.submit([Job("j", "steps", {"steps": 2, "seconds": 0.1})])
        await asyncio.wait_for(began.wait(), PATIENCE)
        proxy.stall()
        begin()
        # It stops by itself, while it hears nothing.
        await asyncio.wait_for(stopped.wait(), 4 * TIMEOUT)
        (told,) = await done(near, ["j"])
        assert (told.state, told.result) == ("done", [0, 1])
        assert told.attempts >= 2
        assert len(await near.jobs.workers()) == 1
        proxy.go_on()
        until = time.monotonic() + PATIENCE
        while len(await near.jobs.workers()) != 2:
            assert time.monotonic() < until, "the worker that was cut off is not back"
            await asyncio.sleep(0.05)
        names = [f"k{number}" for number in range(8)]
        # More than the other worker takes at a time, and each takes its time: some are left for this one.
        body = {"steps": 4, "seconds": 0.5}
        await near.jobs.submit([Job(name, "steps", body) for name in names])
        told = await done(near, names)
        assert {each.state for each in told} == {"done"}
        assert len({each.worker for each in told}) == 2, "the worker that was cut off takes no jobs"
        working.cancel()
        await asyncio.wait([working])
        await cut.aclose()
    assert executed_again(tmp_path) == []
