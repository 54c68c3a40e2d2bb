"""What every Runner must do."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, ClassVar

import pytest

from portico.ports.runner import Runner
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.tasks import give_up, in_time, no_tasks_but

__all__ = ["RunnerKit"]

_SECONDS = 30
"""Seconds that actions which do next to nothing may take."""


class RunnerKit:
    """Subclass it and give a fixture named ``runner``::

        class TestAcmeRunner(RunnerKit):
            @pytest.fixture
            def runner(self) -> AcmeRunner:
                return AcmeRunner(AcmeSettings())

    ``concurrency`` is how many actions it executes at a time, two at least where it has no bound; ``durable`` says
    that it keeps results and gives them again instead of executing an action twice. Set them in the class. Runs and
    actions of the tests have names that no other test uses.
    """

    concurrency: ClassVar[int] = 2
    durable: ClassVar[bool] = False

    @pytest.mark.asyncio
    async def test_name_is_filled(self, runner: Runner) -> None:
        """People choose it by name."""
        assert isinstance(runner.name, str), f"the name is {runner.name!r}, not a str"
        assert runner.name.strip(), "the name is empty"

    @pytest.mark.asyncio
    @pytest.mark.parametrize("result", [None, True, 2**60, 0.1, "", "é\x00", [], {"a": [{"b": None}]}], ids=str)
    async def test_the_result_is_that_of_the_action(self, runner: Runner, result: Any) -> None:
        """Results are JSON, of any kind; None is one too."""

        async def action() -> Any:
            await asyncio.sleep(0)
            return result

        given = await runner.execute("results", repr(result), action)
        assert (type(given), given) == (type(result), result), f"{result!r} came as {given!r}"

    @pytest.mark.asyncio
    async def test_an_error_comes_out_as_the_action_raised_it(self, runner: Runner) -> None:
        """Which errors may pass is decided by their kind."""
        error = ConnectionError("down")
        cause = ValueError("why")

        async def action() -> None:
            raise error from cause

        with pytest.raises(ConnectionError) as caught:
            await runner.execute("errors", "s1", action)
        assert caught.value is error or (str(caught.value) == "down" and type(caught.value) is ConnectionError)
        assert caught.value.__cause__ is not None, "the error lost its cause"

    @pytest.mark.asyncio
    async def test_an_action_that_failed_may_be_executed_again(self, runner: Runner) -> None:
        """A step is tried again under its own name."""
        outcomes = [ConnectionError("down"), None]

        async def action() -> str:
            error = outcomes.pop(0)
            if error is not None:
                raise error
            return "done"

        with pytest.raises(ConnectionError):
            await runner.execute("again", "s1", action)
        assert await runner.execute("again", "s1", action) == "done"

    @pytest.mark.asyncio
    async def test_an_action_that_is_done_is_executed_again_unless_the_runner_is_durable(self, runner: Runner) -> None:
        """A durable one knows an action by its run and its name; another that kept results would mix up runs."""
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
    async def test_cancelling_the_call_cancels_the_action(self, runner: Runner) -> None:
        """Who gives up, or has a time-out, leaves nothing running."""
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
    async def test_actions_run_side_by_side(self, runner: Runner) -> None:
        """Independent steps overlap, as many as the runner takes."""
        if self.concurrency < 2:
            pytest.skip("this runner executes one action at a time")
        together = asyncio.Barrier(2)

        async def action() -> None:
            await together.wait()

        both = asyncio.gather(*(runner.execute("side by side", name, action) for name in ("a", "b")))
        await in_time(both, "two actions did not run side by side", seconds=_SECONDS)

    @pytest.mark.asyncio
    async def test_many_actions_each_have_their_own_result(self, runner: Runner) -> None:
        """More than it takes at a time, of several runs with steps of the same names."""

        async def doing(run: str, name: str) -> str:
            async def action() -> str:
                await asyncio.sleep(0)
                return f"{run} {name}"

            return str(await runner.execute(run, name, action))

        for run in ("r1", "r2"):
            names = [f"s{number}/{number}" for number in range(20)]
            every = asyncio.gather(*(doing(run, name) for name in names))
            results = await in_time(every, "20 actions had no end", seconds=_SECONDS)
            assert results == [f"{run} {name}" for name in names], "results were mixed up"

    @pytest.mark.asyncio
    async def test_a_place_is_free_again_after_failures_and_cancellations(self, runner: Runner) -> None:
        """A runner that forgets one place each time stops in the end."""

        async def fail() -> None:
            raise ValueError("no")

        async def wait() -> None:
            await asyncio.Event().wait()

        lost = "there was no place left for an action"
        for number in range(3 * self.concurrency):
            with pytest.raises(ValueError, match="no"):
                await in_time(runner.execute("places", f"f{number}", fail), lost, seconds=_SECONDS)
            await give_up(partial(runner.execute, "places", f"w{number}", wait), turns=1 + number % 3)

        async def action() -> str:
            return "done"

        assert await in_time(runner.execute("places", "last", action), lost, seconds=_SECONDS) == "done"

    @pytest.mark.asyncio
    async def test_an_execution_leaves_the_event_loop_free(self, runner: Runner) -> None:
        """What a runner writes down, or sends to another machine, does not hold up a whole application."""

        async def action() -> list[str]:
            await asyncio.sleep(0)
            return ["done"] * 100

        async def execute(number: int) -> None:
            for step in range(5):
                await runner.execute(f"free {number}", f"s{step}", action)

        await leaves_the_event_loop_free(execute)
