"""The kit of durable runs passes the fake, and catches what is broken."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import pytest

from portico.errors import StoreError
from portico.ports.runner import Runner
from portico_testkit.durable_runs import DurableRunsKit, Reopen
from portico_testkit.fakes.durable_runs import MemoryDurableRunner, MemoryDurableRuns
from portico_testkit.fakes.job_queue import MemoryJobQueue
from portico_testkit.kit_failures import KnownFaults, keeps_its_lock
from portico_testkit.kit_of_a_kit import KitOfAKit
from portico_testkit.runner import RunnerKit

T = TypeVar("T")


async def again(runner: Any) -> Runner:
    """Open a runner on what another one recorded."""
    return type(runner)(record=runner.durable.record, jobs=runner.jobs)


class TestMemoryDurableRunner(DurableRunsKit):
    @pytest.fixture
    def runner(self) -> MemoryDurableRunner:
        return MemoryDurableRunner(jobs=MemoryJobQueue())

    @pytest.fixture
    def reopen(self) -> Reopen:
        return again


class TestMemoryDurableRunnerAsARunner(RunnerKit):
    @pytest.fixture
    def runner(self) -> MemoryDurableRunner:
        return MemoryDurableRunner()


class Runs(MemoryDurableRuns):
    """Stands for a record with a server, which may be away."""

    away = False

    async def pursue(self, run: str, work: Callable[[], Awaitable[T]]) -> T:
        self.reach()
        return await super().pursue(run, work)

    async def recorded(self, run: str) -> Mapping[str, Any]:
        self.reach()
        return await super().recorded(run)

    def reach(self) -> None:
        if self.away:
            raise StoreError("The record at db.example cannot be reached: nobody answers there.")


class Recording(MemoryDurableRunner):
    """A correct one, of which each part can be broken."""

    class Kept(Runs):
        pass

    def __init__(self, *, record: Any = None, jobs: Any = None) -> None:
        super().__init__(record=record, jobs=jobs or MemoryJobQueue())
        self.durable: Runs = self.Kept(record)


def fixtures_of(kind: type[Recording]) -> dict[str, Callable[..., object]]:
    def failing_runner() -> Recording:
        runner = kind()
        runner.durable.away = True
        return runner

    return {"runner": kind, "reopen": lambda: again, "failing_runner": failing_runner}


FAULTS = KnownFaults(DurableRunsKit, fixtures_of)


class _Executes(Recording):
    """Executes what is pursued in a way of its own, and keeps that as it likes."""

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        if not self.durable.is_pursued(run):
            return await action()
        key = self.key(run, name)
        done = self.durable.record.setdefault(key[0], {})
        if key[1] not in done:
            result = await action()
            done[key[1]] = self.written(result)
            return result
        return json.loads(done[key[1]])

    def key(self, run: str, name: str) -> tuple[str, str]:
        return run, name

    def written(self, result: Any) -> str:
        return json.dumps(result, allow_nan=False)


@FAULTS.caught_by(
    "whatever_is_attempted_only_what_is_not_recorded_is_executed", "of the run .* succeeded, and .* recorded"
)
@FAULTS.caught_by("an_action_that_failed_is_executed_anew", "succeeded, and .* recorded")
class _RecordsFailures(Recording):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        async def noted() -> Any:
            try:
                return await action()
            except Exception as error:
                if self.durable.is_pursued(run):
                    self.durable.record.setdefault(run, {})[name] = json.dumps(str(error))
                raise

        return await super().execute(run, name, noted)


@FAULTS.caught_by(
    "whatever_is_attempted_only_what_is_not_recorded_is_executed", "another error came out than the action"
)
class _WrapsErrors(Recording):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await super().execute(run, name, action)
        except ConnectionError as error:
            raise ConnectionError(f"{name} failed: {error}") from error


@FAULTS.caught_by(
    "whatever_is_attempted_only_what_is_not_recorded_is_executed", "the actions called were|is given back"
)
class _RecordsWithoutLooking(Recording):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        result = await action()
        if self.durable.is_pursued(run):
            self.durable.record.setdefault(run, {}).setdefault(name, json.dumps(result))
        return result


@FAULTS.caught_by("whatever_is_attempted_only_what_is_not_recorded_is_executed", "in the last of these attempts")
@FAULTS.caught_by("actions_come_in_another_order_when_a_run_is_begun_again", "came as|is given back")
class _CountsItsActions(Recording):
    """Knows an action by its place in the attempt, as a record of a sequence does."""

    def __init__(self, *, record: Any = None, jobs: Any = None) -> None:
        super().__init__(record=record, jobs=jobs)
        self.places: dict[str, int] = {}
        durable, pursue = self.durable, self.durable.pursue

        async def from_the_beginning(run: str, work: Callable[[], Awaitable[Any]]) -> Any:
            self.places[run] = 0
            return await pursue(run, work)

        durable.pursue = from_the_beginning  # type: ignore[method-assign]

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        if not self.durable.is_pursued(run):
            return await action()
        place = self.places[run]
        self.places[run] += 1
        done = list(self.durable.record.get(run, {}).values())
        return json.loads(done[place]) if place < len(done) else await super().execute(run, name, action)


@FAULTS.caught_by("a_result_is_recorded_when_its_call_ends", r"and \[\] are recorded")
class _WritesAtTheEnd(Recording):
    class Kept(Runs):
        async def recorded(self, run: str) -> Mapping[str, Any]:
            return {} if self.is_pursued(run) else await super().recorded(run)


@FAULTS.caught_by("a_result_is_recorded_when_its_call_ends", "is recorded as")
class _SortsKeys(_Executes):
    def written(self, result: Any) -> str:
        return json.dumps(result, sort_keys=True)


@FAULTS.caught_by("a_result_is_recorded_when_its_call_ends", "s0.* succeeded, and")
class _TakesNoneForNothing(Recording):
    class Kept(Runs):
        async def recorded(self, run: str) -> Mapping[str, Any]:
            return {name: value for name, value in (await super().recorded(run)).items() if value is not None}


@FAULTS.caught_by("an_action_that_was_cancelled_is_executed_anew", r"and \['s1'\] are recorded")
class _TakesCancelledForDone(Recording):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await super().execute(run, name, action)
        except asyncio.CancelledError:
            self.durable.record.setdefault(run, {}).setdefault(name, "null")
            raise


@FAULTS.caught_by("runs_and_actions_are_known_by_the_pair_of_their_names", "pair")
class _JoinsRunAndName(_Executes):
    def key(self, run: str, name: str) -> tuple[str, str]:
        return "every", f"{run}/{name}"


@FAULTS.caught_by("any_text_names_a_run_and_an_action_or_is_refused", "succeeded, and")
class _StripsNames(_Executes):
    def key(self, run: str, name: str) -> tuple[str, str]:
        return run.strip(), name.strip()


@FAULTS.caught_by("any_text_names_a_run_and_an_action_or_is_refused", "people name things 'a b', which is refused")
class _TakesNoSpaces(_Executes):
    def key(self, run: str, name: str) -> tuple[str, str]:
        if " " in name:
            raise ValueError("A name has no spaces.")
        return run, name


@FAULTS.caught_by("what_is_done_to_a_result_afterwards_changes_nothing", "'spoilt'.* given")
class _SharesResults(Recording):
    def __init__(self, *, record: Any = None, jobs: Any = None) -> None:
        super().__init__(record=record, jobs=jobs)
        self.shared: dict[tuple[str, str], Any] = {}

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        result = await super().execute(run, name, action)
        return self.shared.setdefault((run, name), result) if self.durable.is_pursued(run) else result


@FAULTS.caught_by("a_result_that_is_not_json_is_not_recorded", "are recorded")
class _WritesAnything(_Executes):
    def written(self, result: Any) -> str:
        return json.dumps(repr(result) if result.__class__ is object else json.loads(json.dumps(result, default=repr)))


@FAULTS.caught_by("many_actions_are_recorded_of_one_run", "succeeded, and")
class _ForgetsTheOldest(Recording):
    class Kept(Runs):
        async def recorded(self, run: str) -> Mapping[str, Any]:
            return dict(list((await super().recorded(run)).items())[-50:])


@FAULTS.caught_by("what_is_recorded_outlives_the_process", r"and \[\] are recorded")
class _ForgetsWithTheProcess(Recording):
    def __init__(self, *, record: Any = None, jobs: Any = None) -> None:
        super().__init__(jobs=jobs)


@FAULTS.caught_by("a_record_that_cannot_be_kept_is_a_store_error", "pursue raised ConnectionRefusedError")
class _LetsItsDriversErrorsThrough(Recording):
    class Kept(Runs):
        def reach(self) -> None:
            if self.away:
                raise ConnectionRefusedError(111, "Connection refused")


@FAULTS.caught_by("a_record_that_cannot_be_kept_is_a_store_error", "pursue gave 'done'")
class _PursuesWithoutARecord(Recording):
    class Kept(Runs):
        async def pursue(self, run: str, work: Callable[[], Awaitable[T]]) -> T:
            return await work() if self.away else await super().pursue(run, work)


@FAULTS.caught_by("pursuing_gives_what_the_work_gives_each_time", r"the 2\. time, and `pursue` something else")
class _GivesTheFirstResultAgain(Recording):
    class Kept(Runs):
        results: Any = None

        async def pursue(self, run: str, work: Callable[[], Awaitable[T]]) -> T:
            self.results = self.results or {}
            if run not in self.results:
                self.results[run] = await super().pursue(run, work)
            given: T = self.results[run]
            return given


@FAULTS.caught_by("an_error_of_the_work_comes_out_as_it_is", "the work failed: no such door")
class _WrapsErrorsOfTheWork(Recording):
    class Kept(Runs):
        async def pursue(self, run: str, work: Callable[[], Awaitable[T]]) -> T:
            try:
                return await super().pursue(run, work)
            except LookupError as error:
                raise RuntimeError(f"the work failed: {error}") from error


@FAULTS.caught_by("an_error_of_the_work_comes_out_as_it_is", "another error came out of `pursue`")
class _CopiesErrorsOfTheWork(Recording):
    class Kept(Runs):
        async def pursue(self, run: str, work: Callable[[], Awaitable[T]]) -> T:
            try:
                return await super().pursue(run, work)
            except LookupError as error:
                raise LookupError(*error.args) from error.__cause__


@FAULTS.caught_by("an_error_of_the_work_comes_out_as_it_is", "the error lost its cause")
class _DropsCauses(Recording):
    class Kept(Runs):
        async def pursue(self, run: str, work: Callable[[], Awaitable[T]]) -> T:
            try:
                return await super().pursue(run, work)
            except LookupError as error:
                raise error from None


@FAULTS.caught_by("cancelling_a_pursuit_cancels_its_work", "the work goes on after its pursuit was cancelled")
class _WorksOn(Recording):
    class Kept(Runs):
        async def pursue(self, run: str, work: Callable[[], Awaitable[T]]) -> T:
            return await asyncio.shield(asyncio.ensure_future(super().pursue(run, work)))


@FAULTS.caught_by("cancelling_a_pursuit_cancels_its_work", "a cancelled pursuit went on")
class _FinishesAllTheSame(Recording):
    class Kept(Runs):
        async def pursue(self, run: str, work: Callable[[], Awaitable[T]]) -> T:
            working = asyncio.ensure_future(super().pursue(run, work))
            with suppress(asyncio.CancelledError):
                return await asyncio.shield(working)
            return await working


@FAULTS.caught_by("calls_given_up_leave_it_usable", "after a cancelled call it never answers")
class _KeepsItsLock(Recording):
    class Kept(Runs):
        recorded = keeps_its_lock(Runs.recorded)


@FAULTS.caught_by("an_action_may_pursue_another_run", "succeeded, and")
class _RecordsTheInnerRunOnly(Recording):
    class Kept(Runs):
        def __init__(self, record: Any = None) -> None:
            super().__init__(record)
            self.stack: list[str] = []

        async def pursue(self, run: str, work: Callable[[], Awaitable[T]]) -> T:
            self.stack.append(run)
            return await super().pursue(run, work)

        def is_pursued(self, run: str) -> bool:
            return self.stack[-1:] == [run]


@FAULTS.caught_by("an_action_may_pursue_another_run", "a run had no end")
class _PursuesOneAtATime(Recording):
    class Kept(Runs):
        def __init__(self, record: Any = None) -> None:
            super().__init__(record)
            self.turn = asyncio.Lock()

        async def pursue(self, run: str, work: Callable[[], Awaitable[T]]) -> T:
            async with self.turn:
                return await super().pursue(run, work)


@FAULTS.caught_by("an_action_may_execute_others_of_its_run", "a run had no end")
class _ExecutesOneAtATime(Recording):
    def __init__(self, *, record: Any = None, jobs: Any = None) -> None:
        super().__init__(record=record, jobs=jobs)
        self.turn = asyncio.Lock()

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        async with self.turn:
            return await super().execute(run, name, action)


@FAULTS.caught_by("several_runs_are_pursued_side_by_side", "which came as")
class _MixesUpRuns(_Executes):
    def key(self, run: str, name: str) -> tuple[str, str]:
        return "every", name


@FAULTS.caught_by("what_nobody_pursues_is_executed_and_not_recorded", "what is not pursued was not executed again")
class _RecordsAlways(Recording):
    class Kept(Runs):
        def is_pursued(self, run: str) -> bool:
            return True


@FAULTS.caught_by("a_job_goes_on_in_the_run_of_its_name", "s1 was recorded, and the actions called were")
class _BeginsAJobFromTheBeginning(Recording):
    class Kept(Runs):
        async def pursue(self, run: str, work: Callable[[], Awaitable[T]]) -> T:
            if run == "job":
                self.record.pop(run, None)
            return await super().pursue(run, work)


@FAULTS.caught_by("a_pursuit_leaves_the_event_loop_free", "waits by time.sleep in execute")
class _BlocksTheLoop(Recording):
    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        time.sleep(0.001)
        return await super().execute(run, name, action)


class TestTheDurableRunsKit(KitOfAKit):
    faults = FAULTS
    correct = (Recording,)
