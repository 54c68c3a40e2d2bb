"""What every DurableRuns must do, with the runner that it belongs to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import ClassVar, TypeAlias

import pytest
from hypothesis import settings

from portico.errors import StoreError
from portico.ports import Runner
from portico_testkit._durable_attempts import Attempt, Call, Doing, durable_of
from portico_testkit._durable_runs import DurableRuns as _DurableRuns
from portico_testkit._failing import fails_as
from portico_testkit._job_cases import NOT_JSON, ODD_TEXTS
from portico_testkit._run_store_cases import ODD_ENTRIES
from portico_testkit.tasks import in_time

__all__ = ["DurableRunsKit", "Reopen"]

Reopen: TypeAlias = Callable[[Runner], Awaitable[Runner]]

_BETWEEN = ("", "/", ":", "-", ".", "_", " ", "|")
"""What run and name might be joined with to one key."""

_NO_END = "a run had no end"

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
        """The process may be killed at any moment after it. None is a result too, and so is any other JSON."""
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
        """In the same attempt and in the next: a failure is no result."""
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
        """A step has a time-out, and is tried again."""
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
        """One that makes one text of both gives a step what another one did."""
        runs: dict[str, Doing] = {}
        for between in _BETWEEN:
            for run, name in ((f"a{between}b", "c"), ("a", f"b{between}c")):
                doing = runs.setdefault(run, Doing(runner, f"pair {run}"))
                await doing.attempt(Attempt((Call(name, f"{run!r} {name!r}"),)), self.patience)

    @pytest.mark.asyncio
    async def test_any_text_names_a_run_and_an_action_or_is_refused(self, runner: Runner) -> None:
        """Names are data: none is a path or a command, and no two are one."""
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
        """It may be an error or come back; later it would be something else."""
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
        """That is what it is for."""
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
        """A run that nobody records is not begun as if it were; what a database raised is the cause."""
        if failing_runner is None:
            pytest.skip("there is no fixture `failing_runner`: a runner that cannot fail")
        doing = Doing(failing_runner, "r")
        durable = durable_of(failing_runner)
        never = "it has no end where its record cannot be kept"
        run = durable.run("r", lambda: doing.do("s1"))
        await in_time(fails_as(StoreError, run, "run"), never, seconds=self.patience)
        await in_time(fails_as(StoreError, durable.recorded("r"), "recorded"), never, seconds=self.patience)
