"""What every Runner must do."""

from __future__ import annotations

import asyncio
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


class RunnerKit:
    """Subclass it and give a fixture named ``runner``::

        class TestAcmeRunner(RunnerKit):
            @pytest.fixture
            def runner(self) -> AcmeRunner:
                return AcmeRunner(AcmeSettings())

    ``concurrency`` is how many actions it executes at a time, no more and no fewer; None: it has no bound. The queue of
    a runner (``jobs``) has its kit, `portico_testkit.job_queue.JobQueueKit`, and so has its record (``durable``),
    `portico_testkit.durable_runs.DurableRunsKit`.
    """

    concurrency: ClassVar[int | None] = None

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
    async def test_an_action_that_is_done_is_executed_again(self, runner: Runner) -> None:
        executed: list[str] = []

        async def action() -> None:
            executed.append("s1")

        for _ in range(2):
            await runner.execute("again", "s1", action)
        assert executed == ["s1", "s1"], f"outside of `durable.run` it records nothing, and executed {executed}"

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
    """Return what each gives. A bare `gather` that is cancelled leaves an error unseen."""
    return list(await asyncio.gather(*calls))
