"""The kit of job queues passes the fake, and catches what is broken."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from portico.errors import StoreError
from portico.jobs import Job, JobState, JobStatus, Worker
from portico.ports.job_queue import JobQueue
from portico_testkit.fakes.job_queue import MemoryJobQueue
from portico_testkit.job_queue import JobQueueKit
from portico_testkit.job_workers import Elsewhere, OtherWorker, noted, worker_process
from portico_testkit.kit_failures import KnownFaults, keeps_its_lock, kit_failures
from portico_testkit.kit_of_a_kit import KitOfAKit


class _Beside:
    """Another worker of a queue that has all of them in one process; who is killed is not heard of any more."""

    def __init__(self, queue: MemoryJobQueue, working: asyncio.Task[None]) -> None:
        self.queue = queue
        self.working = working

    async def kill(self) -> None:
        (worker,) = await self.queue.workers()
        self.queue.silence(worker.name)
        self.working.cancel()
        await asyncio.wait([self.working])

    def complaint(self) -> str | None:
        return None


def beside(queue: MemoryJobQueue) -> Elsewhere:
    @asynccontextmanager
    async def begin() -> AsyncIterator[OtherWorker]:
        working = asyncio.create_task(queue.work({"noted": noted}))
        try:
            yield _Beside(queue, working)
        finally:
            working.cancel()
            await asyncio.wait([working])

    return begin


class TestMemoryJobQueue(JobQueueKit):
    silence = 0.02

    @pytest.fixture
    def queue(self) -> MemoryJobQueue:
        return MemoryJobQueue()

    @pytest.fixture
    def elsewhere(self, queue: MemoryJobQueue) -> Elsewhere:
        return beside(queue)


class TestOneJobAtATime(JobQueueKit):
    concurrency = 1
    silence = 0.02

    @pytest.fixture
    def queue(self) -> MemoryJobQueue:
        return MemoryJobQueue(concurrency=1)

    @pytest.fixture
    def elsewhere(self, queue: MemoryJobQueue) -> Elsewhere:
        return beside(queue)


async def test_a_worker_elsewhere_that_cannot_begin_is_told_at_once(tmp_path: Path) -> None:
    elsewhere = worker_process("async def opened():\n    raise RuntimeError('no such queue')")
    fixtures = {"queue": MemoryJobQueue, "elsewhere": lambda: elsewhere, "tmp_path": lambda: tmp_path}
    for test in (
        "test_two_workers_share_the_jobs_and_none_runs_twice",
        "test_a_job_of_another_worker_can_be_cancelled",
    ):
        said = await kit_failures(JobQueueKit, fixtures, [test])
        assert "the worker that is elsewhere stopped: it ended with code 1" in said[test]
        assert "RuntimeError: no such queue" in said[test]


class Served(MemoryJobQueue):
    """Stands for one with a server, which may be away."""

    away = False

    async def submit(self, jobs: Sequence[Job]) -> None:
        self.reach()
        await super().submit(jobs)

    async def work(self, carry_out: Any, *, emit: Any = None) -> None:
        self.reach()
        await super().work(carry_out, emit=emit)

    async def status(self, names: Sequence[str], **options: Any) -> list[JobStatus | None]:
        self.reach()
        return await super().status(names, **options)

    async def jobs(
        self, kind: str, *, states: Collection[JobState] = ("waiting", "running"), limit: int = 100, **options: Any
    ) -> list[JobStatus]:
        self.reach()
        return await super().jobs(kind, states=states, limit=limit, **options)

    async def cancel(self, names: Sequence[str]) -> None:
        self.reach()
        await super().cancel(names)

    async def workers(self) -> list[Worker]:
        self.reach()
        return await super().workers()

    def reach(self) -> None:
        if self.away:
            raise StoreError("The queue at db.example cannot be reached: nobody answers there.")


def fixtures_of(kind: type[Served]) -> dict[str, Callable[..., object]]:
    def failing_queue() -> JobQueue:
        queue = kind()
        queue.away = True
        return queue

    return {"queue": kind, "elsewhere": beside, "failing_queue": failing_queue}


FAULTS = KnownFaults(JobQueueKit, fixtures_of, attributes=lambda kind: {"silence": 0.02, "password": "hunter2"})


@FAULTS.caught_by("name_is_filled", "the name is empty")
class _Nameless(Served):
    name = " "


class _Results(Served):
    """Writes down results in a way of its own."""

    def written(self, result: Any) -> Any:
        return result

    async def work(self, carry_out: Mapping[str, Callable[[Job], Awaitable[Any]]], *, emit: Any = None) -> None:
        def other(each: Callable[[Job], Awaitable[Any]]) -> Callable[[Job], Awaitable[Any]]:
            async def carried_out(job: Job) -> Any:
                return self.written(await each(job))

            return carried_out

        await super().work({kind: other(each) for kind, each in carry_out.items()}, emit=emit)


@FAULTS.caught_by("each_job_is_carried_out_once_and_gives_its_result", "the result .* came as [\"']")
class _TextsAsResults(_Results):
    def written(self, result: Any) -> Any:
        return str(result)


@FAULTS.caught_by("each_job_is_carried_out_once_and_gives_its_result", r"the result \{.* came as \{")
class _SortsKeys(_Results):
    def written(self, result: Any) -> Any:
        return json.loads(json.dumps(result, sort_keys=True))


@FAULTS.caught_by("a_result_that_is_not_json_is_a_failure", "gave what is no JSON, and is done")
class _TakesAnythingForAResult(_Results):
    def written(self, result: Any) -> Any:
        return json.loads(json.dumps(result, default=repr).replace("NaN", "null"))


@FAULTS.caught_by("each_job_is_carried_out_once_and_gives_its_result", "the job '.' failed: .* came as")
class _TheLastStays(Served):
    async def submit(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            entry = self._entries.get(job.name)
            if entry is not None and entry.status.state == "waiting":
                entry.body = json.dumps(dict(job.body))
        await super().submit(jobs)


@FAULTS.caught_by("each_job_is_carried_out_once_and_gives_its_result", "jobs were begun so often: {")
class _BeginsAgainWhatHasEnded(Served):
    async def submit(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            entry = self._entries.get(job.name)
            if entry is not None and entry.status.state == "done" and job.body == {"value": "again"}:
                self._note(entry, state="waiting")
        await super().submit(jobs)


class _Tells(Served):
    """Tells jobs in a way of its own."""

    def told(self, status: JobStatus) -> JobStatus | None:
        return status

    async def status(self, names: Sequence[str], **options: Any) -> list[JobStatus | None]:
        return [each and self.told(each) for each in await super().status(names, **options)]


@FAULTS.caught_by("a_job_that_waits_is_told_with_all_that_is_known", "submitted_at is '12 May'")
class _TellsTimesAsPeopleDo(_Tells):
    def told(self, status: JobStatus) -> JobStatus | None:
        return replace(status, submitted_at="12 May")


@FAULTS.caught_by("a_job_that_waits_is_told_with_all_that_is_known", r"updated_at is '2026-05-12T12:00:00\+02:00'")
class _TellsTimesOfItsOwnZone(_Tells):
    def told(self, status: JobStatus) -> JobStatus | None:
        return replace(status, updated_at="2026-05-12T12:00:00+02:00")


@FAULTS.caught_by("a_job_that_waits_is_told_with_all_that_is_known", "it has not begun, and is told as")
class _CountsAttemptsFromOne(_Tells):
    def told(self, status: JobStatus) -> JobStatus | None:
        return replace(status, attempts=status.attempts + 1)


@FAULTS.caught_by("names_are_told_in_the_order_asked_and_unknown_ones_are_none", r"it told \['c', 'a', 'b', 'a'\]")
class _LeavesUnknownOnesOut(Served):
    async def status(self, names: Sequence[str], **options: Any) -> list[JobStatus | None]:
        return [each for each in await super().status(names, **options) if each is not None]


@FAULTS.caught_by("names_are_told_in_the_order_asked_and_unknown_ones_are_none", r"it told \['a', 'b', 'c'\]")
class _TellsInItsOwnOrder(Served):
    async def status(self, names: Sequence[str], **options: Any) -> list[JobStatus | None]:
        return [each for each in await super().status(sorted(set(names)), **options) if each is not None]


@FAULTS.caught_by(
    "what_is_done_to_a_body_or_a_result_afterwards_changes_nothing", r"gave the list \[1\], and .* 'spoilt'"
)
class _SharesItsResults(_Tells):
    def __init__(self) -> None:
        super().__init__()
        self.shared: dict[str, Any] = {}

    def told(self, status: JobStatus) -> JobStatus | None:
        return replace(status, result=self.shared.setdefault(status.name, status.result)) if status.result else status


@FAULTS.caught_by("a_body_that_is_not_json_is_refused_before_anything_is_queued", "DID NOT RAISE")
class _WritesAnyBody(Served):
    async def submit(self, jobs: Sequence[Job]) -> None:
        await super().submit([replace(job, body={"text": repr(job.body)}) for job in jobs])


@FAULTS.caught_by("a_body_that_is_not_json_is_refused_before_anything_is_queued", "some of it is in the queue")
class _SubmitsOneByOne(Served):
    async def submit(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            await super().submit([job])


class _Carries(Served):
    """Carries jobs out in a way of its own."""

    async def carried_out(self, job: Job, carry_out: Callable[[Job], Awaitable[Any]]) -> Any:
        return await carry_out(job)

    async def work(self, carry_out: Mapping[str, Callable[[Job], Awaitable[Any]]], *, emit: Any = None) -> None:
        def other(each: Callable[[Job], Awaitable[Any]]) -> Callable[[Job], Awaitable[Any]]:
            return lambda job: self.carried_out(job, each)

        await super().work({kind: other(each) for kind, each in carry_out.items()}, emit=emit)


@FAULTS.caught_by("what_carrying_out_raises_is_the_failure_of_that_job_alone", "its error is told as 'it failed'")
class _KeepsErrorsToItself(_Carries):
    async def carried_out(self, job: Job, carry_out: Callable[[Job], Awaitable[Any]]) -> Any:
        try:
            return await carry_out(job)
        except Exception as error:
            raise RuntimeError("it failed") from error


@FAULTS.caught_by("what_carrying_out_raises_is_the_failure_of_that_job_alone", "a job that raised is told as .*'done'")
class _TakesErrorsForResults(_Carries):
    async def carried_out(self, job: Job, carry_out: Callable[[Job], Awaitable[Any]]) -> Any:
        try:
            return await carry_out(job)
        except Exception as error:
            return str(error)


@FAULTS.caught_by("what_carrying_out_raises_is_the_failure_of_that_job_alone", "a worker stopped that nobody cancelled")
class _StopsWithAJob(Served):
    async def work(self, carry_out: Mapping[str, Callable[[Job], Awaitable[Any]]], *, emit: Any = None) -> None:
        raised: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def watching(each: Callable[[Job], Awaitable[Any]]) -> Callable[[Job], Awaitable[Any]]:
            async def carried_out(job: Job) -> Any:
                try:
                    return await each(job)
                except Exception as error:
                    if not raised.done():
                        raised.set_exception(error)
                    await asyncio.sleep(1)

            return carried_out

        watched = {kind: watching(each) for kind, each in carry_out.items()}
        working = asyncio.ensure_future(super().work(watched, emit=emit))
        try:
            await asyncio.wait([working, raised], return_when=asyncio.FIRST_COMPLETED)
            if raised.done():
                raised.result()
        finally:
            working.cancel()
            await asyncio.wait([working])


@FAULTS.caught_by("a_job_that_cancels_itself_has_failed", "'j' running")
class _TakesItForSomebodysCancel(_Carries):
    async def carried_out(self, job: Job, carry_out: Callable[[Job], Awaitable[Any]]) -> Any:
        try:
            return await carry_out(job)
        except asyncio.CancelledError:
            await asyncio.sleep(5)  # somebody else says what becomes of it


@FAULTS.caught_by(
    "jobs_of_a_kind_that_nobody_carries_out_wait_for_who_can", "nobody carries out its kind, and .* failed"
)
class _FailsUnknownKinds(Served):
    async def work(self, carry_out: Mapping[str, Callable[[Job], Awaitable[Any]]], *, emit: Any = None) -> None:
        for entry in self._entries.values():
            if entry.status.kind not in carry_out and entry.status.state == "waiting":
                self._note(entry, state="failed", error="unknown kind")
        await super().work(carry_out, emit=emit)


@FAULTS.caught_by("cancelling_takes_a_job_that_waits_out_of_the_queue", "assert 'waiting' == 'cancelled'")
class _CancelsOnlyWhatRuns(Served):
    async def cancel(self, names: Sequence[str]) -> None:
        told = await self.status(names)
        await super().cancel([each.name for each in told if each is not None and each.state == "running"])


@FAULTS.caught_by("cancelling_takes_a_job_that_waits_out_of_the_queue", "'cancelled', 'cancelled', 'cancelled'")
class _CancelsWhatHasEnded(Served):
    async def cancel(self, names: Sequence[str]) -> None:
        await super().cancel(names)
        for name in names:
            if name in self._entries:
                self._note(self._entries[name], state="cancelled")


@FAULTS.caught_by("cancelling_takes_a_job_that_waits_out_of_the_queue", "cancelled while it waited, and was begun")
class _SubmitsTheCancelledAgain(Served):
    async def submit(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            entry = self._entries.get(job.name)
            if entry is not None and entry.status.state == "cancelled":
                del self._entries[job.name]
        await super().submit(jobs)


@FAULTS.caught_by("cancelling_stops_a_job_that_runs_and_no_other", "what a cancelled job is at goes on")
@FAULTS.caught_by("a_job_of_another_worker_can_be_cancelled", "not every job stops")
class _CancelsOnPaper(Served):
    async def cancel(self, names: Sequence[str]) -> None:
        for name in names:
            entry = self._entries.get(name)
            if entry is not None and entry.status.state in ("waiting", "running"):
                self._note(entry, state="cancelled")


@FAULTS.caught_by("cancelling_stops_a_job_that_runs_and_no_other", "'unwanted' running")
class _CannotCancelWhatRuns(Served):
    async def cancel(self, names: Sequence[str]) -> None:
        told = await self.status(names)
        await super().cancel([each.name for each in told if each is not None and each.state == "waiting"])


@FAULTS.caught_by("cancelling_stops_a_job_that_runs_and_no_other", "these were stopped: .*'wanted'")
class _CancelsAllThatItHas(Served):
    async def cancel(self, names: Sequence[str]) -> None:
        for worker in self._workers.values():
            for task in worker.tasks.values():
                task.cancel()
        await super().cancel(names)


@FAULTS.caught_by("a_worker_that_is_cancelled_gives_back_what_it_has", "its worker has ended, and a job is cancelled")
class _EndsWhatItHas(Served):
    async def work(self, carry_out: Mapping[str, Callable[[Job], Awaitable[Any]]], *, emit: Any = None) -> None:
        try:
            await super().work(carry_out, emit=emit)
        finally:
            for entry in self._entries.values():
                if entry.status.state == "waiting":
                    self._note(entry, state="cancelled")


@FAULTS.caught_by("a_worker_that_is_cancelled_gives_back_what_it_has", r"`work` cancelled \[\] before it ended")
class _LetsItsJobsGoOn(_Carries):
    async def carried_out(self, job: Job, carry_out: Callable[[Job], Awaitable[Any]]) -> Any:
        return await asyncio.shield(asyncio.ensure_future(carry_out(job)))


@FAULTS.caught_by("a_worker_that_is_cancelled_gives_back_what_it_has", "attempts count how often a job was begun")
@FAULTS.caught_by("another_worker_carries_out_what_one_had_that_is_gone", "they were begun twice, and are told as")
class _CountsOneAttempt(_Tells):
    def told(self, status: JobStatus) -> JobStatus | None:
        return replace(status, attempts=min(status.attempts, 1))


@FAULTS.caught_by("no_more_jobs_run_at_a_time_than_a_worker_takes_and_no_fewer", "8 jobs run at a time, .* is 4")
class _TakesAllThatWait(Served):
    def __init__(self) -> None:
        super().__init__(concurrency=1_000)


@FAULTS.caught_by("no_more_jobs_run_at_a_time_than_a_worker_takes_and_no_fewer", "4 jobs did not run side by side")
class _TakesOneAfterTheOther(Served):
    def __init__(self) -> None:
        super().__init__(concurrency=1)


class _Lists(Served):
    """Lists jobs in a way of its own."""

    def listed(self, found: list[JobStatus], states: Collection[JobState], limit: int) -> list[JobStatus]:
        return found

    async def jobs(
        self, kind: str, *, states: Collection[JobState] = ("waiting", "running"), limit: int = 100, **options: Any
    ) -> list[JobStatus]:
        every: list[JobState] = ["waiting", "running", "done", "failed", "cancelled"]
        return self.listed(await super().jobs(kind, states=every, limit=1_000, **options), states, limit)


@FAULTS.caught_by("jobs_of_a_kind_are_listed_the_newest_first", r"with \{\}, it lists \['k', 'a', 'z', 'm'\]")
class _ListsAllStates(_Lists):
    def listed(self, found: list[JobStatus], states: Collection[JobState], limit: int) -> list[JobStatus]:
        return found[:limit]


@FAULTS.caught_by("jobs_of_a_kind_are_listed_the_newest_first", r"with \{'limit': 2\}, it lists \['k', 'a', 'm'\]")
class _KnowsNoLimit(_Lists):
    def listed(self, found: list[JobStatus], states: Collection[JobState], limit: int) -> list[JobStatus]:
        return [each for each in found if each.state in states]


@FAULTS.caught_by("jobs_of_a_kind_are_listed_the_newest_first", r"with \{\}, it lists \['m', 'a', 'k'\]")
class _ListsTheOldestFirst(_Lists):
    def listed(self, found: list[JobStatus], states: Collection[JobState], limit: int) -> list[JobStatus]:
        return [each for each in found[::-1] if each.state in states][:limit]


@FAULTS.caught_by("jobs_of_a_kind_are_listed_the_newest_first", "`jobs` and `status` differ")
class _ListsWithoutResults(_Lists):
    def listed(self, found: list[JobStatus], states: Collection[JobState], limit: int) -> list[JobStatus]:
        return [replace(each, result=None) for each in found if each.state in states][:limit]


@FAULTS.caught_by("what_was_submitted_is_told_where_it_is_asked_for", "asked for bodies, `jobs` told None")
class _ListsWithoutBodies(_Lists):
    def listed(self, found: list[JobStatus], states: Collection[JobState], limit: int) -> list[JobStatus]:
        return [replace(each, body=None) for each in found if each.state in states][:limit]


@FAULTS.caught_by("what_was_submitted_is_told_where_it_is_asked_for", "nobody asked for bodies, and `status` told")
class _TellsEveryBody(Served):
    async def status(self, names: Sequence[str], **options: Any) -> list[JobStatus | None]:
        return await super().status(names, body=True)


@FAULTS.caught_by("what_a_worker_does_is_told_by_emit", "not all was told to `emit`")
class _TellsTheEndOnly(Served):
    async def work(self, carry_out: Mapping[str, Callable[[Job], Awaitable[Any]]], *, emit: Any = None) -> None:
        def ends(status: JobStatus) -> None:
            if emit is not None and status.state != "running":
                emit(status)

        await super().work(carry_out, emit=ends)


@FAULTS.caught_by(
    "what_a_worker_does_is_told_by_emit", r"which is done, it told \[\('running', 1\), \('running', 1\)\]"
)
class _TellsTheBeginningTwice(Served):
    async def work(self, carry_out: Mapping[str, Callable[[Job], Awaitable[Any]]], *, emit: Any = None) -> None:
        def begins(status: JobStatus) -> None:
            if emit is not None:
                emit(replace(status, state="running"))

        await super().work(carry_out, emit=begins)


class _Names(Served):
    """Names jobs in a way of its own."""

    def named(self, name: str) -> str:
        return name

    async def submit(self, jobs: Sequence[Job]) -> None:
        await super().submit([replace(job, name=self.named(job.name)) for job in jobs])

    async def status(self, names: Sequence[str], **options: Any) -> list[JobStatus | None]:
        told = await super().status([self.named(name) for name in names], **options)
        return [each and replace(each, name=name) for name, each in zip(names, told, strict=True)]


@FAULTS.caught_by("any_text_names_a_job_and_a_kind_or_is_refused", "the job .* was mixed up")
class _StripsNames(_Names):
    def named(self, name: str) -> str:
        return name.strip()


@FAULTS.caught_by("any_text_names_a_job_and_a_kind_or_is_refused", "the job 'A' was mixed up")
class _FoldsNames(_Names):
    def named(self, name: str) -> str:
        return name.lower()


@FAULTS.caught_by("any_text_names_a_job_and_a_kind_or_is_refused", r"are refused: \['A'\]")
class _TakesSmallLettersOnly(Served):
    async def submit(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            if job.name != job.name.lower():
                raise ValueError(f"A job is named in small letters, not {job.name!r}.")
        await super().submit(jobs)


@FAULTS.caught_by("any_text_names_a_job_and_a_kind_or_is_refused", "so None")
class _RefusesToBeAskedForNames(_Names):
    def named(self, name: str) -> str:
        if not name:
            raise ValueError("The name of a job is not empty.")
        return name


@FAULTS.caught_by("any_text_names_a_job_and_a_kind_or_is_refused", "all that is said is 'No.'")
class _RefusesWithoutReason(Served):
    async def submit(self, jobs: Sequence[Job]) -> None:
        if not all(job.name for job in jobs):
            raise ValueError("No.")
        await super().submit(jobs)


@FAULTS.caught_by("many_submit_at_once", "of jobs that many submit at once|they were begun so")
class _LooksBeforeItWrites(Served):
    async def submit(self, jobs: Sequence[Job]) -> None:
        new = [job for job in jobs if job.name not in self._entries]
        for job in new:
            await super().submit([job])
            self._entries.pop(job.name, None)
            await super().submit([job])


@FAULTS.caught_by("thousands_of_names_are_asked_for_in_one_call", "too many SQL variables")
class _AsksForAllInOneStatement(Served):
    async def status(self, names: Sequence[str], **options: Any) -> list[JobStatus | None]:
        if len(names) > 32_766:
            raise StoreError("The queue cannot be read: too many SQL variables.")
        return await super().status(names, **options)


@FAULTS.caught_by("thousands_of_names_are_asked_for_in_one_call", "among 40,100 names, it told 0")
class _TellsTheFirstTenThousand(Served):
    async def status(self, names: Sequence[str], **options: Any) -> list[JobStatus | None]:
        return await super().status(names[:10_000], **options)


@FAULTS.caught_by("thousands_of_names_are_asked_for_in_one_call", "and 100 wait")
class _CancelsTheFirstTenThousand(Served):
    async def cancel(self, names: Sequence[str]) -> None:
        await super().cancel(names[:10_000])


@FAULTS.caught_by("calls_given_up_leave_it_usable", "after a cancelled call it never answers")
class _KeepsItsLock(Served):
    submit = keeps_its_lock(Served.submit)


@FAULTS.caught_by("calls_given_up_leave_it_usable", "1 tasks go on|[0-9]+ tasks go on")
class _LeavesItsHeartbeat(Served):
    async def work(self, carry_out: Mapping[str, Callable[[Job], Awaitable[Any]]], *, emit: Any = None) -> None:
        beating = asyncio.create_task(asyncio.sleep(30))
        await super().work(carry_out, emit=emit)
        beating.cancel()


@FAULTS.caught_by("a_queue_leaves_the_event_loop_free", "waits by time.sleep in submit")
class _BlocksTheLoop(Served):
    async def submit(self, jobs: Sequence[Job]) -> None:
        time.sleep(0.001)
        await super().submit(jobs)


@FAULTS.caught_by("a_worker_is_told_while_it_is_at_work", "there were not 0 workers")
class _TellsWorkersForEver(Served):
    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, Worker] = {}

    async def workers(self) -> list[Worker]:
        self.seen |= {worker.name: worker for worker in await super().workers()}
        return list(self.seen.values())


@FAULTS.caught_by("a_worker_is_told_while_it_is_at_work", "the job is told as that of ''")
class _TellsNobodysJobs(_Tells):
    def told(self, status: JobStatus) -> JobStatus | None:
        return replace(status, worker="")


@FAULTS.caught_by("a_worker_is_told_while_it_is_at_work", "the workers do not have 1 jobs")
class _CountsNoJobs(Served):
    async def workers(self) -> list[Worker]:
        return [replace(worker, jobs=0) for worker in await super().workers()]


@FAULTS.caught_by("two_workers_share_the_jobs_and_none_runs_twice", "not every job begins .*'j3', 'j0'")
class _TellsNobodyThatItHasAJob(Served):
    def _taken(self, worker: Any, kinds: Collection[str]) -> list[Any]:
        free = self._concurrency - len(worker.tasks)
        waiting = [each for each in self._entries.values() if each.status.state in ("waiting", "running")]
        able = [each for each in waiting if each.status.kind in kinds and each.status.name not in worker.tasks]
        for each in able[:free]:
            self._note(each, state="running", worker=worker.name, attempts=each.status.attempts + 1)
        return able[:free]


@FAULTS.caught_by("two_workers_share_the_jobs_and_none_runs_twice", "not every job begins")
class _HasOneWorkerAtATime(Served):
    def _taken(self, worker: Any, kinds: Collection[str]) -> list[Any]:
        first = next(iter(self._workers.values()))
        return super()._taken(worker, kinds) if worker is first else []


@FAULTS.caught_by("another_worker_carries_out_what_one_had_that_is_gone", "'j0' running")
class _WaitsForWhoIsGone(Served):
    def silence(self, worker: str) -> None:
        self._workers[worker].silent = True


@FAULTS.caught_by("another_worker_carries_out_what_one_had_that_is_gone", "there were not 1 workers")
class _TellsWhoIsGone(Served):
    async def workers(self) -> list[Worker]:
        gone = [worker for worker in self._workers.values() if worker.silent]
        return [*await super().workers(), *(Worker(f"gone {at}", "", "") for at, _ in enumerate(gone))] or self.last()

    def last(self) -> list[Worker]:
        return []

    def silence(self, worker: str) -> None:
        super().silence(worker)
        self._workers["stays"] = self._workers[worker]


@FAULTS.caught_by(
    "a_job_that_takes_long_is_not_taken_from_a_worker_that_is_there", "jobs were begun anew while they ran"
)
class _HasNoPatience(_Carries):
    def __init__(self) -> None:
        super().__init__()
        self.again: set[str] = set()

    async def carried_out(self, job: Job, carry_out: Callable[[Job], Awaitable[Any]]) -> Any:
        try:
            async with asyncio.timeout(0.02):
                return await carry_out(job)
        except TimeoutError:
            self.again.add(job.name)
            return await carry_out(job)

    async def status(self, names: Sequence[str], **options: Any) -> list[JobStatus | None]:
        told = await super().status(names, **options)
        return [replace(each, attempts=2) if each and each.name in self.again else each for each in told]


@FAULTS.caught_by("a_queue_that_cannot_be_reached_is_a_store_error", "submit raised ConnectionRefusedError")
class _LetsItsDriversErrorsThrough(Served):
    def reach(self) -> None:
        if self.away:
            raise ConnectionRefusedError(111, "Connection refused")


@FAULTS.caught_by("a_queue_that_cannot_be_reached_is_a_store_error", "the password is in the error")
class _TellsThePassword(Served):
    def reach(self) -> None:
        if self.away:
            cause = OSError("no answer from postgresql://me:hunter2@db.example/jobs")
            raise StoreError("The queue at db.example cannot be reached: nobody answers there.") from cause


class TestTheJobQueueKit(KitOfAKit):
    faults = FAULTS
    correct = (Served,)
