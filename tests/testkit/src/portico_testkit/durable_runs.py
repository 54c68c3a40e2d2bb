"""What the record of a durable Runner must do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, ClassVar, TypeAlias

import pytest

from portico.errors import StoreError
from portico.ports import DurableRuns, Job, Runner
from portico_testkit._failing import fails_as
from portico_testkit._odd import NOT_JSON, ODD_ENTRIES, ODD_NAMES, short
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.job_queue import at_work, until
from portico_testkit.tasks import in_time, no_tasks_but

__all__ = ["DurableRunsKit", "Reopen"]

Reopen: TypeAlias = Callable[[Runner], Awaitable[Runner]]


class _Actions:
    """Executes actions of one run, and notes which were called and what has to be recorded."""

    def __init__(self, runner: Runner, run: str, seconds: float) -> None:
        self.runner = runner
        self.run = run
        self.seconds = seconds
        self.called: list[str] = []
        self.expected: dict[str, Any] = {}

    @property
    def durable(self) -> DurableRuns:
        assert self.runner.durable is not None, (
            "the runner has no `durable`: give the fixture `runner` one that records"
        )
        return self.runner.durable

    async def execute(self, name: str, value: Any = "done", error: Exception | None = None) -> Any:
        """Execute an action that gives the value or raises the error; check what comes back."""

        async def action() -> Any:
            self.called.append(name)
            await asyncio.sleep(0)
            if error is not None:
                raise error
            return value

        before = list(self.called)
        result = await self.runner.execute(self.run, name, action)
        if name in self.expected:
            assert name not in self.called[len(before) :], f"{name} was recorded, and is executed again"
            assert repr(result) == repr(self.expected[name]), f"of {name}, {short(result)} comes back"
        else:
            assert repr(result) == repr(value), f"{name} gave {short(value)}, which came as {short(result)}"
        return result

    async def do(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Do work of the run."""
        return await in_time(self.durable.run(self.run, work), "a run has no end", seconds=self.seconds)

    async def attempt(self, *calls: tuple[str, Any]) -> None:
        """Begin the run (again) and execute these actions side by side; then check the record."""

        async def work() -> None:
            await asyncio.gather(*(self.execute(name, value) for name, value in calls))

        await self.do(work)
        for name, value in calls:
            self.expected.setdefault(name, value)
        await self.check_record()

    async def check_record(self) -> None:
        """Fail unless exactly what is expected is recorded."""
        recorded = dict(await self.durable.recorded(self.run))
        assert recorded.keys() == self.expected.keys(), f"{sorted(self.expected)} succeeded, not {sorted(recorded)}"
        for name, value in self.expected.items():
            assert repr(recorded[name]) == repr(value), f"{short(value)} is recorded as {short(recorded[name])}"


class DurableRunsKit:
    """Subclass it and give a fixture named ``runner``, whose ``durable`` records; nothing is recorded at first::

        class TestAcmeRuns(DurableRunsKit):
            @pytest.fixture
            async def runner(self, tmp_path):
                runner = AcmeRunner(AcmeSettings(path=tmp_path / "runs"), None)
                yield runner
                await runner.aclose()

            @pytest.fixture
            def reopen(self, tmp_path):
                async def again(runner):
                    await runner.aclose()
                    return AcmeRunner(AcmeSettings(path=tmp_path / "runs"), None)

                return again

    ``reopen`` opens another runner on what the first one recorded, as a later process does; the first may be closed.
    Without it, the record ends with the process. A fixture ``failing_runner`` gives one that cannot read and write its
    record. Where the runner has ``jobs``, a job that begins again continues the run of its name. ``patience`` is how
    many seconds small runs may take.
    """

    patience: ClassVar[float] = 60.0

    @pytest.fixture
    def reopen(self) -> Reopen | None:
        """Give nothing, for a record that ends with the process."""
        return None

    @pytest.fixture
    def failing_runner(self) -> Runner | None:
        """Give nothing, for a runner that cannot fail."""
        return None

    def _actions(self, runner: Runner, run: str) -> _Actions:
        return _Actions(runner, run, self.patience)

    @pytest.mark.asyncio
    async def test_an_error_of_the_work_comes_out_as_it_is(self, runner: Runner) -> None:
        actions = self._actions(runner, "errors")
        error, cause = LookupError("no such door"), ValueError("why")

        async def work() -> None:
            await actions.execute("s1", 1)
            actions.expected["s1"] = 1
            raise error from cause

        for _ in range(2):
            with pytest.raises(LookupError) as caught:
                await actions.do(work)
            assert caught.value is error, "another error came out of `run` than the work raised: not a copy"
            assert caught.value.__cause__ is cause, "the error lost its cause"

    @pytest.mark.asyncio
    async def test_cancelling_a_run_cancels_its_work(self, runner: Runner) -> None:
        actions = self._actions(runner, "given up")
        await actions.attempt(("s0", 0))  # what stays open is opened
        began, ended = asyncio.Event(), asyncio.Event()
        tasks = asyncio.all_tasks()

        async def endless() -> None:
            await actions.execute("s1", 1)
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        running = asyncio.ensure_future(actions.durable.run("given up", endless))
        await in_time(began.wait(), "the work did not begin", seconds=self.patience)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await in_time(running, "a cancelled run goes on", seconds=self.patience)
        assert ended.is_set(), "the work goes on after its run was cancelled"
        await no_tasks_but(tasks)
        actions.expected["s1"] = 1
        await actions.attempt(("s2", 2), ("s1", "again"))

    @pytest.mark.asyncio
    async def test_an_action_may_run_another_run(self, runner: Runner) -> None:
        outer, inner = self._actions(runner, "outer"), self._actions(runner, "inner")
        downs = [ConnectionError("down")]

        async def inside() -> Any:
            return [await inner.execute("s1", "inner 1"), await inner.execute("s2", "inner 2")]

        async def step() -> Any:
            results = await outer.durable.run("inner", inside)
            if downs:
                raise downs.pop()
            return results

        async def work() -> Any:
            first = await outer.execute("s0", "outer 0")
            return [first, *await runner.execute("outer", "s1", step), await outer.execute("s2", "outer 2")]

        with pytest.raises(ConnectionError):
            await outer.do(work)
        inner.expected = {"s1": "inner 1", "s2": "inner 2"}
        outer.expected = {"s0": "outer 0"}
        await outer.check_record()
        for _ in range(2):
            assert await outer.do(work) == ["outer 0", "inner 1", "inner 2", "outer 2"]
        outer.expected |= {"s1": ["inner 1", "inner 2"], "s2": "outer 2"}
        await outer.check_record()
        await inner.check_record()

    @pytest.mark.asyncio
    async def test_a_job_continues_the_run_of_its_name(self, runner: Runner) -> None:
        queue = runner.jobs
        if queue is None:
            pytest.skip("this runner has no `jobs`")
        actions = self._actions(runner, "job")
        waits = asyncio.Event()

        async def carry_out(job: Job) -> Any:
            async def work() -> Any:
                first = await actions.execute("s1", "first")
                if not waits.is_set():
                    waits.set()
                    await asyncio.Event().wait()
                return [first, await actions.execute("s2", "second")]

            return await actions.durable.run(job.name, work)

        await queue.submit([Job("job", "run")])
        async with at_work(queue, {"run": carry_out}):
            await in_time(waits.wait(), "a job did not begin", seconds=self.patience)
        actions.expected["s1"] = "first"
        await actions.check_record()
        async with at_work(queue, {"run": carry_out}) as worker:
            (status,) = await until(queue, ["job"], seconds=self.patience, worker=worker)
        assert (status.state, status.result) == ("done", ["first", "second"]), f"a job that began again is {status}"
        actions.expected["s2"] = "second"
        await actions.attempt(("s2", "again"), ("s3", "third"), ("s1", "again"))  # by hand, after the job

    @pytest.mark.asyncio
    async def test_a_run_leaves_the_event_loop_free(self, runner: Runner) -> None:
        async def run_one(number: int) -> None:
            calls = [(f"s{at}", ["x" * 500] * 20) for at in range(10)]
            await self._actions(runner, f"free {number}").attempt(*calls)

        await leaves_the_event_loop_free(run_one)

    @pytest.mark.asyncio
    async def test_a_result_is_recorded_when_its_call_ends(self, runner: Runner) -> None:
        actions = self._actions(runner, "at once")
        await actions.check_record()

        async def work() -> None:
            for number, value in enumerate([None, *ODD_ENTRIES]):
                await actions.execute(f"s{number}", value)
                actions.expected[f"s{number}"] = value
                await actions.check_record()

        await actions.do(work)
        await actions.check_record()

    @pytest.mark.asyncio
    async def test_an_action_that_failed_is_executed_anew(self, runner: Runner) -> None:
        actions = self._actions(runner, "failures")
        error = ConnectionError("down")

        async def work() -> None:
            for _ in range(2):
                with pytest.raises(ConnectionError) as caught:
                    await actions.execute("s1", error=error)
                assert caught.value is error, "another error came out than the action raised: not a copy"
            await actions.check_record()

        await actions.do(work)
        assert actions.called == ["s1", "s1"], f"s1 failed and was executed again; its action: {actions.called}"
        await actions.attempt(("s2", 2), ("s1", 1))
        await actions.attempt(("s1", "other"), ("s2", "other"))

    @pytest.mark.asyncio
    async def test_an_action_that_was_cancelled_is_executed_anew(self, runner: Runner) -> None:
        actions = self._actions(runner, "cancelled actions")
        began = asyncio.Event()

        async def endless() -> None:
            began.set()
            await asyncio.Event().wait()

        async def work() -> None:
            running = asyncio.ensure_future(runner.execute("cancelled actions", "s1", endless))
            await began.wait()
            running.cancel()
            await asyncio.wait([running])
            assert running.cancelled(), "the call of an action that was cancelled did not end so"
            await actions.check_record()
            await actions.execute("s1", 1)

        await actions.do(work)
        actions.expected["s1"] = 1
        await actions.check_record()

    @pytest.mark.asyncio
    async def test_any_text_names_a_run_and_an_action_or_is_refused(self, runner: Runner) -> None:
        named = self._actions(runner, "odd names")
        for text in ODD_NAMES:
            for actions, name in ((self._actions(runner, f"odd {text}"), "s1"), (named, text)):
                try:
                    await actions.attempt((name, repr(text)))
                except ValueError as error:
                    assert text not in ("a", "A", "a b", "a-b"), f"people use {text!r}, which is refused: {error}"
                else:
                    await actions.attempt((name, "executed again"))

    @pytest.mark.asyncio
    async def test_a_result_that_is_not_json_is_not_recorded(self, runner: Runner) -> None:
        actions = self._actions(runner, "no JSON")

        async def work() -> None:
            for number, value in enumerate([*NOT_JSON, object()]):
                with suppress(ValueError, TypeError, StoreError):
                    await actions.execute(f"s{number}", value)

        await actions.do(work)
        await actions.check_record()

    @pytest.mark.asyncio
    async def test_the_record_outlives_the_process(self, runner: Runner, reopen: Reopen | None) -> None:
        if reopen is None:
            pytest.skip("there is no fixture `reopen`: what this runner records ends with the process")
        actions = self._actions(runner, "kept")
        calls = [(name, {"name": name, "": [None, 0.1, 2**60]}) for name in ("s1", "s2", "s3", "s4")]
        await actions.attempt(calls[0])
        for chosen in (calls[1::-1], calls[::2], calls[::-1]):
            actions.runner = await reopen(actions.runner)
            await actions.check_record()
            await actions.attempt(*chosen)

    @pytest.mark.asyncio
    async def test_a_record_that_cannot_be_kept_is_a_store_error(self, failing_runner: Runner | None) -> None:
        if failing_runner is None:
            pytest.skip("there is no fixture `failing_runner`: a runner that cannot fail")
        actions = self._actions(failing_runner, "r")
        never = "it has no end where its record cannot be kept"
        run = actions.durable.run("r", lambda: actions.execute("s1"))
        await in_time(fails_as(StoreError, run, "run"), never, seconds=self.patience)
        await in_time(fails_as(StoreError, actions.durable.recorded("r"), "recorded"), never, seconds=self.patience)
