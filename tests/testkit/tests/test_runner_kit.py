"""The kit of runners passes a plain one, and catches what is broken."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, ClassVar

import pytest

from portico_testkit.kit_failures import KnownFaults
from portico_testkit.kit_of_a_kit import KitOfAKit
from portico_testkit.runner import RunnerKit


class _Plain:
    name = "plain"
    told: ClassVar[Mapping[str, object]] = {}
    """What the class of the kit says of it."""

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        return await action()


class TestPlainRunner(RunnerKit):
    @pytest.fixture
    def runner(self) -> _Plain:
        return _Plain()


class _Durable:
    """A correct one that keeps results, for as long as it is there."""

    name = "durable"
    told: ClassVar[Mapping[str, object]] = {"durable": True}

    def __init__(self) -> None:
        self.done: dict[Any, Any] = {}

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        key = self.key(run, name)
        if key not in self.done:
            self.done[key] = self.written(await action())
        return self.read(self.done[key])

    def key(self, run: str, name: str) -> Any:
        return run, name

    def written(self, result: Any) -> Any:
        return json.dumps(result)

    def read(self, written: Any) -> Any:
        return json.loads(written)


class TestDurableRunner(RunnerKit):
    durable = True

    @pytest.fixture
    def runner(self) -> _Durable:
        return _Durable()


class _Bounded:
    """A correct one that executes three at a time, and lets through what comes from inside of one."""

    name = "bounded"
    told: ClassVar[Mapping[str, object]] = {"concurrency": 3}

    def __init__(self) -> None:
        self.places = asyncio.Semaphore(3)
        self.inside: ContextVar[bool] = ContextVar("inside", default=False)

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        if self.inside.get():
            return await action()
        async with self.places:
            token = self.inside.set(True)
            try:
                return await action()
            finally:
                self.inside.reset(token)


class TestBoundedRunner(RunnerKit):
    concurrency = 3

    @pytest.fixture
    def runner(self) -> _Bounded:
        return _Bounded()


FAULTS = KnownFaults(RunnerKit, lambda kind: {"runner": kind}, attributes=lambda kind: kind.told)


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


@FAULTS.caught_by("what_else_it_can_it_can_wholly", "`jobs` of a runner is a JobQueue or None, .* has no cancel, forget, jobs")
class _CountsItsJobs(_Plain):
    jobs = 3


@FAULTS.caught_by(
    "what_else_it_can_it_can_wholly", "`durable` of a runner is a DurableRuns or None, .* has no recorded"
)
class _RecordsWhatNobodyCanRead(_Plain):
    class durable:  # noqa: N801
        @staticmethod
        async def pursue(run: str, work: Callable[[], Awaitable[Any]]) -> Any:
            return await work()


@FAULTS.caught_by("actions_run_side_by_side", "2 actions did not run side by side after 0.3 seconds")
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
            raise error from None


@FAULTS.caught_by("an_error_comes_out_as_the_action_raised_it", "another error came out .* not a copy")
class _CopiesErrors(_Plain):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await action()
        except Exception as error:
            raise type(error)(*error.args) from error.__cause__


@FAULTS.caught_by("the_result_is_that_of_the_action", "0.30000000000000004 came as 0.3")
class _Rounds(_Plain):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        result = await action()
        return round(result, 6) if isinstance(result, float) else result


@FAULTS.caught_by("the_result_is_that_of_the_action", "'b': .* came as {'a'")
class _SortsKeys(_Plain):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        return json.loads(json.dumps(await action(), sort_keys=True))


@FAULTS.caught_by("an_action_that_was_cancelled_is_executed_when_it_comes_again", "taken for done, with the .* None")
class _TakesCancelledForDone(_Plain):
    def __init__(self) -> None:
        self.cancelled: set[tuple[str, str]] = set()

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        if (run, name) in self.cancelled:
            return None
        try:
            return await action()
        except asyncio.CancelledError:
            self.cancelled.add((run, name))
            raise


@FAULTS.caught_by("an_action_that_was_cancelled_is_executed_when_it_comes_again", "taken for done, with the .* None")
class _RecordsWhatWasCancelled(_Durable):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await super().execute(run, name, action)
        except asyncio.CancelledError:
            self.done[run, name] = "null"
            raise


@FAULTS.caught_by("an_action_that_is_done_is_executed_again_unless_the_runner_is_durable", "it executed")
class _SaysThatItIsDurable(_Durable):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        return await action()


@FAULTS.caught_by("an_action_that_is_done_is_executed_again_unless_the_runner_is_durable", "it executed")
class _ForgetsTheRun(_Durable):
    def key(self, run: str, name: str) -> Any:
        return name


@FAULTS.caught_by("a_durable_runner_knows_an_action_by_the_pair_of_run_and_name", "key it by the pair")
class _JoinsRunAndName(_Durable):
    def key(self, run: str, name: str) -> Any:
        return f"{run}/{name}"


@FAULTS.caught_by("what_a_durable_runner_gives_again_is_what_was_recorded", "that gave None was executed again")
class _TakesNoneForNothing(_Durable):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        if self.done.get((run, name), "null") == "null":
            self.done[run, name] = self.written(await action())
        return self.read(self.done[run, name])


@FAULTS.caught_by("what_a_durable_runner_gives_again_is_what_was_recorded", "'spoilt'.* given again")
class _SharesWhatItRecords(_Durable):
    def written(self, result: Any) -> Any:
        return result

    def read(self, written: Any) -> Any:
        return written


@FAULTS.caught_by("what_an_action_executes_in_turn_is_let_through", "3 actions that call `execute` from inside had no")
class _WaitsForItself(_Bounded):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        async with self.places:
            return await action()


@FAULTS.caught_by("no_more_actions_run_at_a_time_than_it_says", "9 actions ran at a time, and its `concurrency` is 3")
class _Unbounded(_Bounded):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        return await action()


@FAULTS.caught_by("no_more_actions_run_at_a_time_than_it_says", "and its `concurrency` is 3")
class _TakesEverybodyForInside(_Bounded):
    """Never takes back that it is inside, so that its caller is, and all that this one begins."""

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        if self.inside.get():
            return await action()
        async with self.places:
            self.inside.set(True)
            return await action()


@FAULTS.caught_by("actions_run_side_by_side", "3 actions did not run side by side")
class _TakesFewerThanItSays(_Bounded):
    def __init__(self) -> None:
        super().__init__()
        self.places = asyncio.Semaphore(2)


@FAULTS.caught_by("an_execution_leaves_the_event_loop_free", "waits by time.sleep in execute")
class _BlocksTheLoop(_Plain):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        time.sleep(0.001)
        return await action()


class TestTheRunnerKit(KitOfAKit):
    faults = FAULTS
    correct = (_Plain, _Durable, _Bounded)
