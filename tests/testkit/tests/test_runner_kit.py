"""The kit of runners passes a plain one, and catches what is broken."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from portico_testkit.runner import RunnerKit


class _Plain:
    name = "plain"

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        return await action()


class TestPlainRunner(RunnerKit):
    @pytest.fixture
    def runner(self) -> _Plain:
        return _Plain()


class _Wrapping(_Plain):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await action()
        except Exception as error:
            raise RuntimeError("the step failed") from error


class _Texts(_Plain):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        return str(await action())


class _Detached(_Plain):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        self.task = asyncio.ensure_future(action())
        return await asyncio.shield(self.task)


class _Remembering(_Plain):
    def __init__(self) -> None:
        self.done: dict[str, Any] = {}

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        if name not in self.done:
            self.done[name] = await action()
        return self.done[name]


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


class _Nameless(_Plain):
    name = " "


class _OneByOne(_Plain):
    def __init__(self) -> None:
        self.lock = asyncio.Lock()

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        async with self.lock:
            return await action()


class _Leaking(_Plain):
    def __init__(self) -> None:
        self.places = asyncio.Semaphore(4)

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        await self.places.acquire()
        result = await action()
        self.places.release()
        return result


@pytest.mark.parametrize("broken", [_OneByOne, _Leaking])
async def test_a_runner_that_stops_is_caught(broken: type[_Plain], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portico_testkit.runner._PATIENCE", 0.2)
    test = {
        _OneByOne: RunnerKit().test_actions_run_side_by_side,
        _Leaking: RunnerKit().test_a_place_is_free_again_after_failures_and_cancellations,
    }
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(test[broken](broken()), 10)


async def test_a_runner_of_one_place_is_not_asked_for_two() -> None:
    class One(RunnerKit):
        concurrency = 1

    with pytest.raises(pytest.skip.Exception, match="one action at a time"):
        await One().test_actions_run_side_by_side(_OneByOne())


@pytest.mark.parametrize(
    ("broken", "test", "message"),
    [
        (_Nameless, "test_name_is_filled", "the name is empty"),
        (_Wrapping, "test_an_error_comes_out_as_the_action_raised_it", "the step failed"),
        (_Detached, "test_cancelling_the_call_cancels_the_action", "runs on"),
        (_Remembering, "test_many_actions_each_have_their_own_result", "mixed up"),
        (_Failed, "test_an_action_that_failed_may_be_executed_again", "down"),
    ],
)
async def test_a_broken_runner_is_caught(broken: type[_Plain], test: str, message: str) -> None:
    runner = broken()
    with pytest.raises(Exception, match=message):
        await getattr(RunnerKit(), test)(runner)
    if isinstance(runner, _Detached):
        runner.task.cancel()
        await asyncio.gather(runner.task, return_exceptions=True)


async def test_a_runner_that_makes_texts_of_results_is_caught() -> None:
    with pytest.raises(AssertionError, match="came as"):
        await RunnerKit().test_the_result_is_that_of_the_action(_Texts(), 2)
