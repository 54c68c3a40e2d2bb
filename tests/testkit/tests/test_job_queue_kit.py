"""The kit of job queues passes the fake, and catches what is broken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from portico_testkit.fakes.job_queue import MemoryJobQueue
from portico_testkit.job_queue import JobQueueKit
from portico_testkit.job_workers import Elsewhere, OtherWorker, noted, worker_process
from portico_testkit.kit_failures import Fault, KnownFaults, kit_failures


class _Beside:
    """Another worker of a queue that has all of them in one process; who is killed is not heard of any more."""

    def __init__(self, queue: MemoryJobQueue, working: asyncio.Task[None]) -> None:
        self.queue = queue
        self.working = working

    async def kill(self) -> None:
        (worker,) = await self.queue.workers()
        self.queue.silence(worker.name)
        self.working.cancel()
        await asyncio.wait([self.working])

    def complaint(self) -> str | None:
        return None


def beside(queue: MemoryJobQueue) -> Elsewhere:
    @asynccontextmanager
    async def begin() -> AsyncIterator[OtherWorker]:
        working = asyncio.create_task(queue.work({"noted": noted}))
        try:
            yield _Beside(queue, working)
        finally:
            working.cancel()
            await asyncio.wait([working])

    return begin


class TestMemoryJobQueue(JobQueueKit):
    silence = 0.02

    @pytest.fixture
    def queue(self) -> MemoryJobQueue:
        return MemoryJobQueue()

    @pytest.fixture
    def elsewhere(self, queue: MemoryJobQueue) -> Elsewhere:
        return beside(queue)


class TestOneJobAtATime(JobQueueKit):
    concurrency = 1
    silence = 0.02

    @pytest.fixture
    def queue(self) -> MemoryJobQueue:
        return MemoryJobQueue(concurrency=1)

    @pytest.fixture
    def elsewhere(self, queue: MemoryJobQueue) -> Elsewhere:
        return beside(queue)


async def test_a_worker_elsewhere_that_cannot_begin_is_told_at_once(tmp_path: Path) -> None:
    elsewhere = worker_process("async def opened():\n    raise RuntimeError('no such queue')")
    fixtures = {"queue": MemoryJobQueue, "elsewhere": lambda: elsewhere, "tmp_path": lambda: tmp_path}
    for test in (
        "test_two_workers_share_the_jobs_and_none_runs_twice",
        "test_a_job_of_another_worker_can_be_cancelled",
    ):
        said = await kit_failures(JobQueueKit, fixtures, [test])
        assert "the other worker stopped: it ended with code 1" in said[test]
        assert "RuntimeError: no such queue" in said[test]


FAULTS = KnownFaults(
    JobQueueKit, lambda kind: {"queue": kind, "elsewhere": beside}, attributes=lambda kind: {"silence": 0.02}
)


@FAULTS.caught_by("cancelling_takes_a_job_that_waits_out_of_the_queue", "assert 'waiting' == 'cancelled'")
class _CancelsOnlyWhatRuns(MemoryJobQueue):
    async def cancel(self, names: Sequence[str]) -> None:
        told = await self.status(names)
        await super().cancel([each.name for each in told if each is not None and each.state == "running"])


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
