"""What is done to a run in one attempt after another, and what has to be recorded of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, TypeAlias

import pytest
from hypothesis import settings

from portico.errors import StoreError
from portico.ports import DurableRuns, Job, Runner
from portico_testkit._failing import fails_as
from portico_testkit._job_cases import NOT_JSON, ODD_TEXTS, at_work, until
from portico_testkit._run_store_cases import ODD_ENTRIES, short
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.tasks import in_time, no_tasks_but, still_answers

__all__ = ["Attempt", "Call", "Doing", "DurableRunsKit", "Reopen", "durable_of"]


@dataclass(frozen=True, slots=True)
class Call:
    """An action's name, what it gives, whether it fails instead, and in how many turns of the event loop."""

    name: str
    value: Any
    fails: bool = False
    turns: int = 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is executed of a run before it is begun again; ``fails`` says that its work raises in the end."""

    calls: tuple[Call, ...]
    side_by_side: bool = False
    fails: bool = False


@dataclass(slots=True)
class Doing:
    """Executes actions of a run, and notes which of them were called."""

    runner: Runner
    run: str
    called: list[str] = field(default_factory=list)
    recorded: dict[str, Any] = field(default_factory=dict)
    """What has to be recorded by now."""

    async def do(self, name: str, value: Any = "done") -> Any:
        """Execute an action that gives the value."""
        return await self.call(Call(name, value))

    async def call(self, call: Call) -> Any:
        """Execute an action; return what it gave, or the error of one that fails."""
        error = ConnectionError(f"{call.name} is down")

        async def action() -> Any:
            self.called.append(call.name)
            for _ in range(call.turns):
                await asyncio.sleep(0)
            if call.fails:
                raise error
            return call.value

        try:
            return await self.runner.execute(self.run, call.name, action)
        except ConnectionError as raised:
            assert raised is error, "another error came out than the action raised: raise it as it is, not a copy"
            return raised

    async def attempt(self, attempt: Attempt, seconds: float) -> None:
        """Do an attempt, and hold it against what has to be recorded before and after it."""
        before, self.called = dict(self.recorded), []
        failure = RuntimeError("the work failed")

        async def work() -> list[Any]:
            if attempt.side_by_side:
                results = list(await asyncio.gather(*map(self.call, attempt.calls)))
            else:
                results = [await self.call(call) for call in attempt.calls]
            if attempt.fails:
                raise failure
            return results

        durable = durable_of(self.runner)
        run = in_time(durable.run(self.run, work), "a run had no end", seconds=seconds)
        if attempt.fails:
            with pytest.raises(RuntimeError) as caught:
                await run
            assert caught.value is failure, "another error came out of `run_goal` than the work raised"
        else:
            for call, result in zip(attempt.calls, await run, strict=True):
                self._is_right(call, result, before)
        for call in attempt.calls:
            if call.name not in before and not call.fails:
                self.recorded[call.name] = call.value
        expected = [call.name for call in attempt.calls if call.name not in before]
        told = f"{sorted(before)} were recorded, {[call.name for call in attempt.calls]} were executed"
        assert sorted(self.called) == sorted(expected), f"{told}, and the actions called were {self.called}"
        await self.is_recorded()

    async def is_recorded(self) -> None:
        """Fail unless `recorded` tells what has to be recorded, and nothing else."""
        recorded = dict(await durable_of(self.runner).recorded(self.run))
        told = f"of the run {self.run!r}, {sorted(self.recorded)} succeeded, and {sorted(recorded)} are recorded"
        assert recorded.keys() == self.recorded.keys(), told
        for name, value in self.recorded.items():
            assert repr(recorded[name]) == repr(value), f"{short(value)} is recorded as {short(recorded[name])}"

    def _is_right(self, call: Call, result: Any, before: dict[str, Any]) -> None:
        if call.name in before:
            expected = before[call.name]
            assert repr(result) == repr(expected), f"{call.name} gave {expected!r}, and {result!r} is given back"
        elif call.fails:
            assert isinstance(result, ConnectionError), f"{call.name} failed, and gave {result!r}"
        else:
            assert repr(result) == repr(call.value), f"{call.name} gave {call.value!r}, which came as {result!r}"


def durable_of(runner: Runner) -> DurableRuns:
    """Return what the runner records with."""
    durable = runner.durable
    assert durable is not None, "the runner has no `durable`: give the fixture `runner` one that records"
    return durable


_NAMES = ("s1", "s2", "s3", "s1/s2", "S1", "proposal-1-0af3", "с1", " s1", 'a b\'s "c" %s')


_NO_END = "a run had no end"


class _DurableRuns:
    """Subclass `DurableRunsKit`, which has these."""

    patience: ClassVar[float] = 60.0

    @pytest.mark.asyncio
    async def test_running_gives_what_the_work_gives_each_time(self, runner: Runner) -> None:
        for number in range(3):
            given = object()

            async def work(given: object = given) -> object:
                return given

            run = durable_of(runner).run("work", work)
            told = f"the work gave {given!r} the {number + 1}. time, and `run_goal` something else: call it each time"
            assert await in_time(run, _NO_END, seconds=self.patience) is given, told

    @pytest.mark.asyncio
    async def test_an_error_of_the_work_comes_out_as_it_is(self, runner: Runner) -> None:
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

        async def run_one(number: int) -> None:
            doing = Doing(runner, f"free {number}")
            calls = tuple(Call(f"s{at}", ["x" * 500] * 20) for at in range(10))
            await doing.attempt(Attempt(calls, side_by_side=True), self.patience)

        await leaves_the_event_loop_free(run_one)


async def _all(*calls: Any) -> list[Any]:
    """Return what each gives. A bare `gather` that is given up has an error that nobody looks at."""
    return list(await asyncio.gather(*calls))


Reopen: TypeAlias = Callable[[Runner], Awaitable[Runner]]

_BETWEEN = ("", "/", ":", "-", ".", "_", " ", "|")
"""What run and name might be joined with to one key."""


_USUAL = ("a", "A", "a b", "a/b", "a-b", "ключ")
"""Names that nobody may refuse."""


class DurableRunsKit(_DurableRuns):
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

    ``reopen`` opens another runner on what the first one recorded, as a process does that comes after it; the first may
    be closed. Without it, what is recorded ends with the process. A fixture ``failing_runner`` gives one that cannot
    read and write its record. Where the runner has ``jobs``, it is tested that a job goes on in the run of its name.
    ``patience`` (seconds) is how long runs may take that do next to nothing, and ``effort`` how hard random ones are
    tried.
    """

    effort: ClassVar[settings] = settings(max_examples=25)

    @pytest.fixture
    def reopen(self) -> Reopen | None:
        """Nothing, for a record that ends with the process."""
        return None

    @pytest.fixture
    def failing_runner(self) -> Runner | None:
        """Nothing, for a runner that cannot fail."""
        return None

    @pytest.mark.asyncio
    async def test_a_result_is_recorded_when_its_call_ends(self, runner: Runner) -> None:
        doing = Doing(runner, "at once")
        assert dict(await durable_of(runner).recorded("at once")) == {}, "a run that nobody knows has results"

        async def work() -> None:
            for number, value in enumerate([None, *ODD_ENTRIES, {"b": [{"z": None}], "a": 1e-9}]):
                await doing.do(f"s{number}", value)
                doing.recorded[f"s{number}"] = value
                await doing.is_recorded()

        await in_time(durable_of(runner).run("at once", work), _NO_END, seconds=self.patience)
        await doing.is_recorded()

    @pytest.mark.asyncio
    async def test_an_action_that_failed_is_executed_anew(self, runner: Runner) -> None:
        doing = Doing(runner, "failures")

        async def work() -> None:
            for _ in range(2):
                await doing.call(Call("s1", None, fails=True))
            await doing.is_recorded()

        await in_time(durable_of(runner).run("failures", work), _NO_END, seconds=self.patience)
        assert doing.called == ["s1", "s1"], (
            f"s1 failed and was executed again, and its action was called {doing.called}"
        )
        await doing.attempt(Attempt((Call("s2", 2), Call("s1", 1))), self.patience)
        await doing.attempt(Attempt((Call("s1", "other"), Call("s2", "other"))), self.patience)

    @pytest.mark.asyncio
    async def test_an_action_that_was_cancelled_is_executed_anew(self, runner: Runner) -> None:
        doing = Doing(runner, "cancelled actions")
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
            await doing.is_recorded()
            assert await doing.do("s1", 1) == 1, "an action that was cancelled was taken for done"

        await in_time(durable_of(runner).run("cancelled actions", work), _NO_END, seconds=self.patience)
        doing.recorded["s1"] = 1
        await doing.is_recorded()

    @pytest.mark.asyncio
    async def test_runs_and_actions_are_known_by_the_pair_of_their_names(self, runner: Runner) -> None:
        runs: dict[str, Doing] = {}
        for between in _BETWEEN:
            for run, name in ((f"a{between}b", "c"), ("a", f"b{between}c")):
                doing = runs.setdefault(run, Doing(runner, f"pair {run}"))
                await doing.attempt(Attempt((Call(name, f"{run!r} {name!r}"),)), self.patience)

    @pytest.mark.asyncio
    async def test_any_text_names_a_run_and_an_action_or_is_refused(self, runner: Runner) -> None:
        named = Doing(runner, "odd names")
        for text in ODD_TEXTS:
            for doing, name in ((Doing(runner, f"odd {text}"), "s1"), (named, text)):
                try:
                    await doing.attempt(Attempt((Call(name, repr(text)),)), self.patience)
                except ValueError as error:
                    assert text not in _USUAL, f"people name things {text!r}, which is refused: {error}"
                else:
                    await doing.attempt(Attempt((Call(name, "executed again"),)), self.patience)

    @pytest.mark.asyncio
    async def test_a_result_that_is_not_json_is_not_recorded(self, runner: Runner) -> None:
        doing = Doing(runner, "no JSON")

        async def work() -> None:
            for number, value in enumerate([*NOT_JSON, object()]):
                with suppress(Exception):
                    given = await doing.do(f"s{number}", value)
                    assert given is value, f"an action gave {value!r}, which came as {given!r}"

        await in_time(durable_of(runner).run("no JSON", work), _NO_END, seconds=self.patience)
        await doing.is_recorded()

    @pytest.mark.asyncio
    async def test_what_is_recorded_outlives_the_process(self, runner: Runner, reopen: Reopen | None) -> None:
        if reopen is None:
            pytest.skip("there is no fixture `reopen`: what this runner records ends with the process")
        doing = Doing(runner, "kept")
        calls = [Call(name, {"name": name, "": [None, 0.1, 2**60]}) for name in ("s1", "s2", "s3", "s4")]
        await doing.attempt(Attempt((calls[0], Call("s2", None, fails=True)), fails=True), self.patience)
        for chosen in ((calls[1], calls[0]), (calls[2], calls[0]), tuple(calls[::-1])):
            doing.runner = await reopen(doing.runner)
            await doing.is_recorded()
            await doing.attempt(Attempt(chosen, side_by_side=True), self.patience)

    @pytest.mark.asyncio
    async def test_a_record_that_cannot_be_kept_is_a_store_error(self, failing_runner: Runner | None) -> None:
        if failing_runner is None:
            pytest.skip("there is no fixture `failing_runner`: a runner that cannot fail")
        doing = Doing(failing_runner, "r")
        durable = durable_of(failing_runner)
        never = "it has no end where its record cannot be kept"
        run = durable.run("r", lambda: doing.do("s1"))
        await in_time(fails_as(StoreError, run, "run"), never, seconds=self.patience)
        await in_time(fails_as(StoreError, durable.recorded("r"), "recorded"), never, seconds=self.patience)
