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


@pytest.mark.parametrize(
    ("broken", "test", "message"),
    [
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
