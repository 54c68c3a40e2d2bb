"""What DurableRuns must do with the work that is run; tests of `DurableRunsKit`."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, ClassVar

import pytest

from portico.ports import Job, Runner
from portico_testkit._durable_attempts import Attempt, Call, Doing, durable_of
from portico_testkit._job_cases import at_work, until
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.tasks import in_time, no_tasks_but, still_answers

__all__ = ["DurableRuns"]

_NO_END = "a run had no end"


class DurableRuns:
    """Subclass `DurableRunsKit`, which has these."""

    patience: ClassVar[float] = 60.0

    @pytest.mark.asyncio
    async def test_running_gives_what_the_work_gives_each_time(self, runner: Runner) -> None:
        """The very thing, JSON or not; the work of a run that has ended is done again when it is asked for again."""
        for number in range(3):
            given = object()

            async def work(given: object = given) -> object:
                return given

            run = durable_of(runner).run("work", work)
            told = f"the work gave {given!r} the {number + 1}. time, and `run_goal` something else: call it each time"
            assert await in_time(run, _NO_END, seconds=self.patience) is given, told

    @pytest.mark.asyncio
    async def test_an_error_of_the_work_comes_out_as_it_is(self, runner: Runner) -> None:
        """What a run raises is for who runs; the run can be begun again."""
        doing = Doing(runner, "errors")
        error = LookupError("no such door")
        cause = ValueError("why")

        async def work() -> None:
            await doing.do("s1", 1)
            raise error from cause

        for _ in range(2):
            with pytest.raises(LookupError) as caught:
                await in_time(durable_of(runner).run("errors", work), _NO_END, seconds=self.patience)
            assert caught.value is error, "another error came out of `run` than the work raised: not a copy"
            assert caught.value.__cause__ is cause, "the error lost its cause"
        assert doing.called == ["s1"], f"s1 was recorded, and was called {len(doing.called)} times"

    @pytest.mark.asyncio
    async def test_cancelling_a_run_cancels_its_work(self, runner: Runner) -> None:
        """Ctrl-C: nothing of it goes on, and it goes on from what is recorded when it is resumed."""
        doing = Doing(runner, "given up")
        await doing.attempt(Attempt((Call("s0", 0),)), self.patience)  # what stays open is opened
        began, ended = asyncio.Event(), asyncio.Event()
        tasks = asyncio.all_tasks()

        async def endless() -> None:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async def work() -> None:
            await doing.do("s1", 1)
            await runner.execute("given up", "s2", endless)

        running = asyncio.ensure_future(durable_of(runner).run("given up", work))
        await in_time(began.wait(), "an action did not begin", seconds=self.patience)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await in_time(running, "a cancelled run went on", seconds=self.patience)
        assert ended.is_set(), "the work goes on after its run was cancelled"
        await no_tasks_but(tasks)
        doing.recorded["s1"] = 1
        await doing.is_recorded()
        again = doing.attempt(Attempt((Call("s2", 2), Call("s1", "again"))), self.patience)
        await still_answers(again)

    @pytest.mark.asyncio
    async def test_an_action_may_run_another_run(self, runner: Runner) -> None:
        """A function runs a goal of its own, in a step; so does what no step does. Each run has its own record."""
        outer, inner, beside = (Doing(runner, run) for run in ("outer", "inner", "beside"))
        durable = durable_of(runner)
        downs = [ConnectionError("down")]

        async def inside() -> Any:
            return [await inner.do("s1", "inner 1"), await inner.do("s2", "inner 2")]

        async def step() -> Any:
            outer.called.append("s1")
            results = await durable.run("inner", inside)
            if downs:
                raise downs.pop()
            return results

        async def work() -> Any:
            await outer.do("s0", "outer 0")
            await durable.run("beside", partial(beside.do, "s1", "beside 1"))
            results = await runner.execute("outer", "s1", step)
            return [*results, await outer.do("s2", "outer 2")]

        with pytest.raises(ConnectionError):
            await in_time(durable.run("outer", work), _NO_END, seconds=self.patience)
        inner.recorded = {"s1": "inner 1", "s2": "inner 2"}
        outer.recorded = {"s0": "outer 0"}
        beside.recorded = {"s1": "beside 1"}
        for each in (outer, inner, beside):
            await each.is_recorded()
        for _ in range(2):
            results = await in_time(durable.run("outer", work), _NO_END, seconds=self.patience)
            assert results == ["inner 1", "inner 2", "outer 2"], f"a run with one inside of it gave {results}"
        outer.recorded |= {"s1": ["inner 1", "inner 2"], "s2": "outer 2"}
        for each in (outer, inner, beside):
            await each.is_recorded()
        called = [outer.called, inner.called, beside.called]
        assert called == [["s0", "s1", "s1", "s2"], ["s1", "s2"], ["s1"]], f"of the runs, these were called: {called}"

    @pytest.mark.asyncio
    async def test_a_job_goes_on_in_the_run_of_its_name(self, runner: Runner) -> None:
        """Its worker stops, and the next one takes from the record what is there."""
        queue = runner.jobs
        if queue is None:
            pytest.skip("this runner has no `jobs`")
        durable, doing = durable_of(runner), Doing(runner, "job")
        waits = asyncio.Event()

        async def carry_out(job: Job) -> Any:
            async def work() -> Any:
                first = await doing.do("s1", "first")
                if not waits.is_set():
                    waits.set()
                    await asyncio.Event().wait()
                return [first, await doing.do("s2", "second")]

            return await durable.run(job.name, work)

        await queue.submit([Job("job", "run")])
        async with at_work(queue, {"run": carry_out}):
            await in_time(waits.wait(), "a job was not begun", seconds=self.patience)
        doing.recorded["s1"] = "first"
        await doing.is_recorded()
        async with at_work(queue, {"run": carry_out}) as worker:
            (told,) = await until(queue, ["job"], seconds=self.patience, worker=worker)
        assert (told.state, told.result) == ("done", ["first", "second"]), f"a job that was begun again is {told}"
        assert doing.called == ["s1", "s2"], f"s1 was recorded, and the actions called were {doing.called}"
        doing.recorded["s2"] = "second"
        await doing.is_recorded()
        # Who goes on with the run by hand, after the job.
        await doing.attempt(Attempt((Call("s2", "again"), Call("s3", "third"), Call("s1", "again"))), self.patience)

    @pytest.mark.asyncio
    async def test_a_run_leaves_the_event_loop_free(self, runner: Runner) -> None:
        """Every step of every run is written down: a disk that is slow does not hold up the others."""

        async def run_one(number: int) -> None:
            doing = Doing(runner, f"free {number}")
            calls = tuple(Call(f"s{at}", ["x" * 500] * 20) for at in range(10))
            await doing.attempt(Attempt(calls, side_by_side=True), self.patience)

        await leaves_the_event_loop_free(run_one)


async def _all(*calls: Any) -> list[Any]:
    """Return what each gives. A bare `gather` that is given up has an error that nobody looks at."""
    return list(await asyncio.gather(*calls))
