"""What a JobQueue must do for several workers, and when what it stands on fails; tests of `JobQueueKit`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from portico.errors import StoreError
from portico.ports import Job, JobQueue
from portico_testkit._failing import fails_as
from portico_testkit._job_cases import at_work, echo, known, there_are_workers, until
from portico_testkit.job_workers import Elsewhere, OtherWorker, noted, notes_of
from portico_testkit.tasks import in_time

__all__ = ["JobSharing"]

_ALONE = "there is no fixture `elsewhere`: this queue has one worker at a time"


class JobSharing:
    """Subclass `JobQueueKit`, which has these."""

    concurrency: ClassVar[int] = 4
    silence: ClassVar[float | None] = None
    patience: ClassVar[float] = 60.0
    password: ClassVar[str] = ""

    @pytest.fixture
    def elsewhere(self) -> Elsewhere | None:
        """Nothing, for a queue with one worker at a time."""
        return None

    @pytest.fixture
    def failing_queue(self) -> JobQueue | None:
        """Nothing, for a queue that cannot fail."""
        return None

    @pytest.mark.asyncio
    async def test_two_workers_share_the_jobs_and_none_runs_twice(
        self, queue: JobQueue, elsewhere: Elsewhere | None, tmp_path: Path
    ) -> None:
        """One worker at a time carries a job out, and no worker has nothing to do while jobs wait."""
        names = [f"j{at}" for at in range(2 * self.concurrency)]
        async with _begun(elsewhere)() as other, at_work(queue, {"noted": noted}) as worker:
            await there_are_workers(queue, 2, seconds=self.patience, complaint=other.complaint)
            await queue.submit([_noted(name, tmp_path) for name in names])
            await _notes(tmp_path, "begins", names, self.patience, other)
            (tmp_path / "go").touch()
            more = [f"k{at}" for at in range(4 * self.concurrency)]
            await queue.submit([_noted(name, tmp_path) for name in more])
            told = await until(queue, [*names, *more], seconds=self.patience, worker=worker)
        assert {each.state for each in told} == {"done"}, f"they are {told}"
        had = [each.worker for each in told[: len(names)]]
        shares = sorted(had.count(worker) for worker in set(had))
        assert shares == [self.concurrency] * 2, f"of {len(names)} jobs, the workers had {shares}: {had}"
        began = notes_of(tmp_path, "begins")
        assert sorted(began) == sorted([*names, *more]), f"jobs were begun so: {began}"
        assert [each.attempts for each in told] == [1] * len(told), f"they were begun once, and are told as {told}"

    @pytest.mark.asyncio
    async def test_another_worker_carries_out_what_one_had_that_is_gone(
        self, queue: JobQueue, elsewhere: Elsewhere | None, tmp_path: Path
    ) -> None:
        """Its process was killed, or its machine has no power: nobody gives its jobs back."""
        names = [f"j{at}" for at in range(self.concurrency)]
        await queue.submit([_noted(name, tmp_path) for name in names])
        async with _begun(elsewhere)() as other:
            await _notes(tmp_path, "begins", names, self.patience, other)
            gone = (await known(queue, names[0])).worker
            await other.kill()
            (tmp_path / "go").touch()
            async with at_work(queue, {"noted": noted}) as worker:
                told = await until(queue, names, seconds=self.patience, worker=worker)
                await there_are_workers(queue, 1, seconds=self.patience)
        assert [each.state for each in told] == ["done"] * len(names), f"the jobs of a worker that is gone are {told}"
        assert [each.attempts for each in told] == [2] * len(names), f"they were begun twice, and are told as {told}"
        assert gone not in {each.worker for each in told}, "who had them last is the worker that is gone"
        assert sorted(notes_of(tmp_path, "ends")) == names

    @pytest.mark.asyncio
    async def test_a_job_of_another_worker_can_be_cancelled(
        self, queue: JobQueue, elsewhere: Elsewhere | None, tmp_path: Path
    ) -> None:
        """People stop from their own machine what a server is at."""
        async with _begun(elsewhere)() as other:
            await queue.submit([_noted("unwanted", tmp_path)])
            await _notes(tmp_path, "begins", ["unwanted"], self.patience, other)
            await queue.cancel(["unwanted"])
            await _notes(tmp_path, "stops", ["unwanted"], self.patience, other)
            (tmp_path / "go").touch()
            await queue.submit([_noted("wanted", tmp_path)])
            told = await until(queue, ["unwanted", "wanted"], seconds=self.patience)
        assert [each.state for each in told] == ["cancelled", "done"], f"one of two jobs was cancelled: {told}"

    @pytest.mark.asyncio
    async def test_a_queue_that_cannot_be_reached_is_a_store_error(self, failing_queue: JobQueue | None) -> None:
        """It says what is not there, and no password."""
        if failing_queue is None:
            pytest.skip("there is no fixture `failing_queue`: a queue that cannot fail")
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "submit": lambda: failing_queue.submit([Job("j", "echo")]),
            "work": lambda: failing_queue.work({"echo": echo}),
            "status": lambda: failing_queue.status(["j"]),
            "jobs": lambda: failing_queue.jobs("echo"),
            "cancel": lambda: failing_queue.cancel(["j"]),
            "workers": failing_queue.workers,
        }
        for what, call in calls.items():
            never = f"`{what}` of a queue that cannot be reached has no end"
            await in_time(fails_as(StoreError, _discreet(call, self.password), what), never, seconds=self.patience)


def _begun(elsewhere: Elsewhere | None) -> Elsewhere:
    if elsewhere is None:
        pytest.skip(_ALONE)
    return elsewhere


def _noted(name: str, folder: Path) -> Job:
    return Job(name, "noted", {"folder": str(folder)})


async def _notes(folder: Path, what: str, names: list[str], seconds: float, other: OtherWorker) -> None:
    """Wait until all of these have noted it; fail when the other worker has ended by itself."""

    async def look() -> None:
        while not set(names) <= set(notes_of(folder, what)):
            said = other.complaint()
            assert said is None, f"the worker that is elsewhere stopped: {said}"
            await asyncio.sleep(0.02)

    try:
        await in_time(look(), f"not every job {what}", seconds=seconds)
    except pytest.fail.Exception as error:
        pytest.fail(f"{error}: of {names}, {notes_of(folder, what)}")


async def _discreet(call: Callable[[], Awaitable[object]], password: str) -> object:
    try:
        return await call()
    except Exception as error:
        for each in _chain(error):
            assert not password or password not in f"{each} {each!r}", "the password is in the error, or in its cause"
        raise


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
