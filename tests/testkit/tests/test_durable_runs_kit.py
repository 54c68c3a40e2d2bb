"""The kit of durable runs passes the fake, and catches what is broken."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from portico.ports import Runner
from portico_testkit.durable_runs import DurableRunsKit, Reopen
from portico_testkit.fakes.durable_runs import MemoryDurableRunner, MemoryDurableRuns
from portico_testkit.fakes.job_queue import MemoryJobQueue
from portico_testkit.kit_failures import Fault, KnownFaults
from portico_testkit.runner import RunnerKit

T = TypeVar("T")


async def again(runner: Any) -> Runner:
    """Open a runner on what another one recorded."""
    return type(runner)(record=runner.durable.record, jobs=runner.jobs)


class TestMemoryDurableRunner(DurableRunsKit):
    @pytest.fixture
    def runner(self) -> MemoryDurableRunner:
        return MemoryDurableRunner(jobs=MemoryJobQueue())

    @pytest.fixture
    def reopen(self) -> Reopen:
        return again


class TestMemoryDurableRunnerAsARunner(RunnerKit):
    @pytest.fixture
    def runner(self) -> MemoryDurableRunner:
        return MemoryDurableRunner()


class Recording(MemoryDurableRunner):
    """A correct one, of which each part can be broken."""

    class Kept(MemoryDurableRuns):
        pass

    def __init__(self, *, record: Any = None, jobs: Any = None) -> None:
        super().__init__(record=record, jobs=jobs or MemoryJobQueue())
        self.durable = self.Kept(record)


FAULTS = KnownFaults(DurableRunsKit, lambda kind: {"runner": kind, "reopen": lambda: again})


@FAULTS.caught_by("an_action_that_was_cancelled_is_executed_anew", r"not \['s1'\]")
class _TakesCancelledForDone(Recording):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await super().execute(run, name, action)
        except asyncio.CancelledError:
            self.durable.record.setdefault(run, {}).setdefault(name, "null")
            raise


@FAULTS.caught_by("an_error_of_the_work_comes_out_as_it_is", "another error came out of `run`")
class _CopiesErrorsOfTheWork(Recording):
    class Kept(MemoryDurableRuns):
        async def run(self, run: str, work: Callable[[], Awaitable[T]]) -> T:
            try:
                return await super().run(run, work)
            except LookupError as error:
                raise LookupError(*error.args) from error.__cause__


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
