"""The kit of runners passes a plain one, and catches what is broken."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from portico_testkit.kit_failures import KnownFaults
from portico_testkit.kit_of_a_kit import KitOfAKit
from portico_testkit.runner import RunnerKit


class _Plain:
    name = "plain"

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        return await action()


class TestPlainRunner(RunnerKit):
    @pytest.fixture
    def runner(self) -> _Plain:
        return _Plain()


FAULTS = KnownFaults(RunnerKit, lambda kind: {"runner": kind})


@FAULTS.caught_by("an_error_comes_out_as_the_action_raised_it", "the step failed")
class _Wrapping(_Plain):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await action()
        except Exception as error:
            raise RuntimeError("the step failed") from error


@FAULTS.caught_by("the_result_is_that_of_the_action", "came as")
class _Texts(_Plain):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        return str(await action())


@FAULTS.caught_by("cancelling_the_call_cancels_the_action", "runs on")
class _Detached(_Plain):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        self.task = asyncio.ensure_future(action())
        return await asyncio.shield(self.task)


@FAULTS.caught_by("cancelling_the_call_cancels_the_action", "a cancelled call went on")
class _WaitsForTheActionAllTheSame(_Plain):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        working = asyncio.ensure_future(action())
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            return await working


@FAULTS.caught_by("many_actions_each_have_their_own_result", "mixed up")
@FAULTS.caught_by("an_action_that_is_done_is_executed_again_unless_the_runner_is_durable", "it is not `durable`")
class _Remembering(_Plain):
    def __init__(self) -> None:
        self.done: dict[str, Any] = {}

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        if name not in self.done:
            self.done[name] = await action()
        return self.done[name]


@FAULTS.caught_by("an_action_that_failed_may_be_executed_again", "down")
class _Failed(_Plain):
    def __init__(self) -> None:
        self.failed: dict[str, Exception] = {}

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        if name in self.failed:
            raise self.failed[name]
        try:
            return await action()
        except Exception as error:
            self.failed[name] = error
            raise


@FAULTS.caught_by("name_is_filled", "the name is empty")
class _Nameless(_Plain):
    name = " "


@FAULTS.caught_by("actions_run_side_by_side", "two actions did not run side by side after 0.3 seconds")
class _OneByOne(_Plain):
    def __init__(self) -> None:
        self.lock = asyncio.Lock()

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        async with self.lock:
            return await action()


@FAULTS.caught_by("a_place_is_free_again_after_failures_and_cancellations", "there was no place left for an action")
class _Leaking(_Plain):
    def __init__(self) -> None:
        self.places = asyncio.Semaphore(4)

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        await self.places.acquire()
        result = await action()
        self.places.release()
        return result


async def test_a_runner_of_one_place_is_not_asked_for_two() -> None:
    class One(RunnerKit):
        concurrency = 1

    with pytest.raises(pytest.skip.Exception, match="one action at a time"):
        await One().test_actions_run_side_by_side(_OneByOne())


@FAULTS.caught_by("cancelling_the_call_cancels_the_action", "tasks go on")
class _Watching(_Plain):
    """Starts something to watch each action, and forgets it when the action is cancelled."""

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        watching = asyncio.create_task(asyncio.sleep(5))
        result = await action()
        watching.cancel()
        return result


@FAULTS.caught_by("a_place_is_free_again_after_failures_and_cancellations", "as if nobody had cancelled it")
class _TakesNoNoticeOfCancellation(_Plain):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await action()
        except asyncio.CancelledError:
            return None


@FAULTS.caught_by("an_error_comes_out_as_the_action_raised_it", "lost its cause")
class _DropsCauses(_Plain):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await action()
        except Exception as error:
            raise type(error)(*error.args) from None


@FAULTS.caught_by("an_execution_leaves_the_event_loop_free", "waits by time.sleep in execute")
class _BlocksTheLoop(_Plain):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        time.sleep(0.001)
        return await action()


class TestTheRunnerKit(KitOfAKit):
    faults = FAULTS
    correct = (_Plain,)


class _Durable:
    name = "durable"

    def __init__(self) -> None:
        self.done: dict[tuple[str, str], Any] = {}

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        if (run, name) not in self.done:
            self.done[run, name] = await action()
        return self.done[run, name]


class TestDurableRunner(RunnerKit):
    durable = True

    @pytest.fixture
    def runner(self) -> _Durable:
        return _Durable()


@pytest.mark.parametrize("forgetful", [_Plain, _Remembering])
async def test_one_that_says_it_is_durable_keeps_results_by_run_and_name(forgetful: type[_Plain]) -> None:
    with pytest.raises(AssertionError, match="it executed"):
        await TestDurableRunner().test_an_action_that_is_done_is_executed_again_unless_the_runner_is_durable(
            forgetful()
        )
