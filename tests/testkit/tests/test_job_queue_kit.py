"""The kit of job queues passes the fake, and catches what is broken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from portico_testkit.fakes.job_queue import MemoryJobQueue
from portico_testkit.job_queue import JobQueueKit
from portico_testkit.kit_failures import Fault, KnownFaults


class TestMemoryJobQueue(JobQueueKit):
    @pytest.fixture
    def queue(self) -> MemoryJobQueue:
        return MemoryJobQueue()


class TestOneJobAtATime(JobQueueKit):
    concurrency = 1

    @pytest.fixture
    def queue(self) -> MemoryJobQueue:
        return MemoryJobQueue(concurrency=1)


FAULTS = KnownFaults(JobQueueKit, lambda kind: {"queue": kind})


@FAULTS.caught_by("cancelling_takes_a_job_that_waits_out_of_the_queue", "assert 'waiting' == 'cancelled'")
class _CancelsOnlyWhatRuns(MemoryJobQueue):
    async def cancel(self, names: Sequence[str]) -> None:
        told = await self.status(names)
        await super().cancel([each.name for each in told if each is not None and each.state == "running"])


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
