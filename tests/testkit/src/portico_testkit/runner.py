"""What every Runner must do."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable
from functools import partial
from typing import Any, ClassVar

import pytest

from portico.ports import Runner
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.tasks import in_time, no_tasks_but

__all__ = ["RunnerKit"]

_SECONDS = 30
"""Seconds that actions which do next to nothing may take."""

_TURNS = 20
"""Turns of the event loop in which an action begins that nothing keeps back."""

_RESULTS: tuple[Any, ...] = (None, True, 2**60, 0.1 + 0.2, 1.0, -0.0, "", "é\x00", [], {"b": [{"z": None}], "a": 1e-9})
"""JSON of any kind, with the digits of its numbers and its keys in their order."""

_BETWEEN = ("", "/", ":", "-", ".", "_", " ", "|", "\x00")
"""What run and name might be joined with to one key."""


class RunnerKit:
    """Subclass it and give a fixture named ``runner``::

        class TestAcmeRunner(RunnerKit):
            @pytest.fixture
            def runner(self) -> AcmeRunner:
                return AcmeRunner(AcmeSettings())

    ``concurrency`` is how many actions it executes at a time, no more and no fewer; None says that it has no bound.
    ``durable`` says that it keeps results and gives them again instead of executing an action twice, whoever asks. Set
    them in the class. Runs and actions of the tests have names that no other test uses. What a runner has as ``jobs``
    is tried by `portico_testkit.job_queue.JobQueueKit`, and one that records only what is run, by its ``durable``,
    by `portico_testkit.durable_runs.DurableRunsKit`.
    """

    concurrency: ClassVar[int | None] = None
    durable: ClassVar[bool] = False

    @pytest.mark.asyncio
    async def test_name_is_filled(self, runner: Runner) -> None:
        assert isinstance(runner.name, str), f"the name is {runner.name!r}, not a str"
        assert runner.name.strip(), "the name is empty"

    @pytest.mark.asyncio
    @pytest.mark.parametrize("result", _RESULTS, ids=str)
    async def test_the_result_is_that_of_the_action(self, runner: Runner, result: Any) -> None:

        async def action() -> Any:
            await asyncio.sleep(0)
            return result

        given = await runner.execute("results", repr(result), action)
        # Not by ==: 1 and 1.0 are equal, and so are objects with their keys in another order.
        assert repr(given) == repr(result), f"{result!r} came as {given!r}"

    @pytest.mark.asyncio
    async def test_an_error_comes_out_as_the_action_raised_it(self, runner: Runner) -> None:
        error = ConnectionError("down")
        cause = ValueError("why")

        async def action() -> None:
            raise error from cause

        with pytest.raises(ConnectionError) as caught:
            await runner.execute("errors", "s1", action)
        told = "another error came out than the action raised: raise it as it is, not a copy (`raise` alone does that)"
        assert caught.value is error, told
        assert caught.value.__cause__ is cause, "the error lost its cause"

    @pytest.mark.asyncio
    async def test_an_action_that_is_done_is_executed_again_unless_the_runner_is_durable(self, runner: Runner) -> None:
        executed: list[str] = []

        async def done(run: str, name: str) -> Any:
            async def action() -> str:
                executed.append(f"{run} {name}")
                return f"{run} {name}: {len(executed)}"

            return await runner.execute(run, name, action)

        asked = [("d1", "s1"), ("d1", "s1"), ("d1", "s2"), ("d2", "s1"), ("d1", "s1")]
        results = [await done(*each) for each in asked]
        if self.durable:
            assert executed == ["d1 s1", "d1 s2", "d2 s1"], f"it executed {executed}"
            assert results == ["d1 s1: 1", "d1 s1: 1", "d1 s2: 2", "d2 s1: 3", "d1 s1: 1"]
        else:
            assert executed == [f"{run} {name}" for run, name in asked], f"it is not `durable`, and executed {executed}"

    @pytest.mark.asyncio
    async def test_a_durable_runner_knows_an_action_by_the_pair_of_run_and_name(self, runner: Runner) -> None:
        if not self.durable:
            pytest.skip("this runner is not durable")
        for between in _BETWEEN:
            pairs = [(f"a{between}b", "c"), ("a", f"b{between}c")]
            for run, name in pairs:

                async def action(own: str = f"{run!r} {name!r}") -> str:
                    return own

                given = await runner.execute(f"pair {between}{run}", name, action)
                told = f"the action {name!r} of the run {run!r} was given the result of {given}: key it by the pair"
                assert given == f"{run!r} {name!r}", told

    @pytest.mark.asyncio
    async def test_what_a_durable_runner_gives_again_is_what_was_recorded(self, runner: Runner) -> None:
        if not self.durable:
            pytest.skip("this runner is not durable")
        for number, result in enumerate(_RESULTS):
            made: list[Any] = []

            async def action(result: Any = result, made: list[Any] = made) -> Any:
                made.append(copy.deepcopy(result))
                return made[-1]

            for _ in range(3):
                given = await runner.execute("again and again", f"s{number}", action)
                assert repr(given) == repr(result), f"{result!r} was recorded, and {given!r} given again"
                assert len(made) == 1, f"an action that gave {result!r} was executed again: it is recorded as done"
                for each in (given, *made):
                    _spoil(each)

    @pytest.mark.asyncio
    async def test_cancelling_the_call_cancels_the_action(self, runner: Runner) -> None:
        began, ended = asyncio.Event(), asyncio.Event()
        tasks = asyncio.all_tasks()

        async def action() -> None:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        running = asyncio.ensure_future(runner.execute("cancelled", "s1", action))
        await in_time(began.wait(), "an action did not begin", seconds=_SECONDS)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await in_time(running, "a cancelled call went on", seconds=_SECONDS)
        assert ended.is_set(), "the action runs on after its call was cancelled"
        await no_tasks_but(tasks)

    @pytest.mark.asyncio
    async def test_no_more_actions_run_at_a_time_than_it_says(self, runner: Runner) -> None:
        if self.concurrency is None:
            pytest.skip("this runner says no `concurrency`")
        bound = self.concurrency
        running: set[int] = set()
        most = 0
        full = asyncio.Event()

        async def do(number: int) -> None:
            nonlocal most
            running.add(number)
            most = max(most, len(running))
            if len(running) >= bound:
                full.set()
            await full.wait()
            for _ in range(_TURNS):  # one that nothing keeps back begins now
                await asyncio.sleep(0)
            running.discard(number)

        # What the first one leaves in this task must not let the others through.
        full.set()
        await runner.execute("bound", "first", partial(do, -1))
        full.clear()
        every = _all(*(runner.execute("bound", f"s{number}", partial(do, number)) for number in range(3 * bound)))
        await in_time(every, f"{3 * bound} actions had no end", seconds=_SECONDS)
        assert most <= bound, f"{most} actions ran at a time, and its `concurrency` is {bound}"

    @pytest.mark.asyncio
    async def test_what_an_action_executes_in_turn_is_let_through(self, runner: Runner) -> None:
        most = self._at_once()
        together = asyncio.Barrier(most)

        async def inner() -> str:
            await asyncio.sleep(0)
            return "inner"

        async def outer(number: int) -> list[str]:
            await together.wait()  # every place is taken
            steps = (runner.execute(f"inner {number}", f"s{step}", inner) for step in range(2))
            return list(await asyncio.gather(*steps))

        every = _all(*(runner.execute("outer", f"s{at}", partial(outer, at)) for at in range(most)))
        stuck = (
            f"{most} actions that call `execute` from inside had no end: "
            "what comes from inside of an action has its place already"
        )
        assert await in_time(every, stuck, seconds=_SECONDS) == [["inner", "inner"]] * most

    @pytest.mark.asyncio
    async def test_an_execution_leaves_the_event_loop_free(self, runner: Runner) -> None:

        async def action() -> list[str]:
            await asyncio.sleep(0)
            return ["done"] * 100

        async def execute(number: int) -> None:
            for step in range(5):
                await runner.execute(f"free {number}", f"s{step}", action)

        await leaves_the_event_loop_free(execute)

    def _at_once(self) -> int:
        """Return how many actions have to run at a time; two of one that has no bound."""
        return 2 if self.concurrency is None else self.concurrency


async def _all(*calls: Awaitable[Any]) -> list[Any]:
    """Return what each gives. A bare `gather` that is given up has an error that nobody looks at."""
    return list(await asyncio.gather(*calls))


def _spoil(value: Any) -> None:
    """Change a JSON value, where it can be changed."""
    if isinstance(value, dict):
        value["spoilt"] = True
    elif isinstance(value, list):
        value.append("spoilt")
