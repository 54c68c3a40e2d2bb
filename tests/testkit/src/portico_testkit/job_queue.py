"""What every JobQueue must do, and the jobs that its tests carry out."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, ClassVar, TypeAlias

import pytest

from portico.errors import StoreError
from portico.ports import Job, JobQueue, JobStatus
from portico_testkit._failing import fails_as
from portico_testkit._odd import NOT_JSON, ODD_ENTRIES, ODD_NAMES, short
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.tasks import in_time

__all__ = ["CarryOut", "JobQueueKit", "Paused", "at_work", "echo", "until"]

CarryOut: TypeAlias = Callable[[Job], Awaitable[Any]]

_ENDED: Collection[str] = ("done", "failed", "cancelled")
_PAUSE = 0.01
"""Seconds between two looks."""


async def echo(job: Job) -> Any:
    """Give the body of a job as its result."""
    return dict(job.body)


class Paused:
    """Carries out jobs that wait for ``go``, and notes what becomes of each."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.ended: list[str] = []
        self.cancelled: list[str] = []
        self.go = asyncio.Event()

    async def __call__(self, job: Job) -> str:
        """Hold a job until ``go`` is set, and give its name."""
        self.began.append(job.name)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.append(job.name)
            raise
        self.ended.append(job.name)
        return job.name

    async def holds(self, names: Collection[str], seconds: float) -> None:
        """Wait until each of these has begun."""
        await _wait_for(lambda: set(names) <= set(self.began), f"not all of {sorted(names)} began", seconds)


@asynccontextmanager
async def at_work(queue: JobQueue, carry_out: Mapping[str, CarryOut]) -> AsyncIterator[asyncio.Task[None]]:
    """Run a worker within the block; fail unless it works until it is cancelled, and ends then."""
    working: asyncio.Task[None] = asyncio.ensure_future(queue.work(carry_out))
    try:
        yield working
    finally:
        stopped = working.done()
        working.cancel()
        await asyncio.wait([working], timeout=60)
        if stopped:
            _require_cancelled(working)  # this is why a test waited in vain
    assert working.done(), "a worker that was cancelled goes on"
    _require_cancelled(working)


async def until(
    queue: JobQueue, names: Sequence[str], *, seconds: float, worker: asyncio.Task[None] | None = None
) -> list[JobStatus]:
    """Return the states of jobs when all have ended; fail when that takes longer, or the worker has stopped."""
    seen: list[JobStatus | None] = []

    async def look() -> None:
        while True:
            seen[:] = await queue.status(names)
            if all(each is not None and each.state in _ENDED for each in seen):
                return
            if worker is not None and worker.done():
                _require_cancelled(worker)
            await asyncio.sleep(_PAUSE)

    try:
        await in_time(look(), "not all jobs ended", seconds=seconds)
    except pytest.fail.Exception as error:
        pytest.fail(f"{error}: they are {[each and (each.name, each.state) for each in seen[:10]]}")
    return [each for each in seen if each is not None]


class JobQueueKit:
    """Subclass it and give a fixture named ``queue``, an empty one for each test::

        class TestAcmeJobs(JobQueueKit):
            concurrency = 4

            @pytest.fixture
            async def queue(self, tmp_path):
                runner = AcmeRunner(AcmeSettings(path=tmp_path / "jobs"), None)
                yield runner.jobs
                await runner.aclose()

    ``concurrency`` is how many jobs a worker carries out at a time. A fixture ``failing_queue``
    gives a queue whose server is away, or whose file is damaged; ``password`` is its password, which must be in no
    error. ``patience`` is how many seconds small jobs may take. The kit has one worker: several, and what happens when
    they are killed, are for the package's own tests with processes.
    """

    concurrency: ClassVar[int] = 4
    patience: ClassVar[float] = 60.0
    password: ClassVar[str] = ""

    @pytest.fixture
    def failing_queue(self) -> JobQueue | None:
        """Give nothing, for a queue that cannot fail."""
        return None

    @pytest.mark.asyncio
    async def test_name_is_filled(self, queue: JobQueue) -> None:
        assert isinstance(queue.name, str), f"the name is {queue.name!r}, not a str"
        assert queue.name.strip(), "the name is empty"

    @pytest.mark.asyncio
    async def test_each_job_is_carried_out_once_and_gives_its_result(self, queue: JobQueue) -> None:
        began: Counter[str] = Counter()
        first: dict[str, Any] = {f"j{at}": {"value": entry} for at, entry in enumerate(ODD_ENTRIES)}

        async def carry_out(job: Job) -> Any:
            began[job.name] += 1
            assert repr(dict(job.body)) == repr(first[job.name]), f"{short(first[job.name])} came as {short(job.body)}"
            return job.body["value"]

        await queue.submit([Job(name, "drawn", body) for name, body in first.items()])
        again = [Job(name, "drawn", {"value": "again"}) for name in first]
        await queue.submit(again)
        async with at_work(queue, {"drawn": carry_out}) as worker:
            ended = await until(queue, list(first), seconds=self.patience, worker=worker)
            for status in ended:
                value = first[status.name]["value"]
                assert status.state == "done", f"the job {status.name!r} {status.state}: {status.error}"
                assert repr(status.result) == repr(value), f"the result {short(value)} came as {short(status.result)}"
            await queue.submit([*again, Job("last", "drawn", first.setdefault("last", {"value": 1}))])
            await until(queue, ["last"], seconds=self.patience, worker=worker)
        assert began == dict.fromkeys(first, 1), f"jobs began so often: {began}"
        assert await queue.status(list(first)) == [*ended, *await queue.status(["last"])], "what has ended changed"

    @pytest.mark.asyncio
    async def test_a_waiting_job_is_known_with_its_times(self, queue: JobQueue) -> None:
        await queue.submit([Job("j", "kind of it", {"a": 1})])
        status = await _known(queue, "j")
        assert (status.name, status.kind, status.state) == ("j", "kind of it", "waiting")
        assert (status.attempts, status.result, status.error) == (0, None, None), f"it has not begun, and is {status}"
        for moment in (status.submitted_at, status.updated_at):
            assert datetime.fromisoformat(moment).utcoffset() == timedelta(0), f"{moment!r} is not ISO 8601 in UTC"

    @pytest.mark.asyncio
    @pytest.mark.parametrize("body", NOT_JSON, ids=["an object", "not a number", "a set", "bytes"])
    async def test_a_body_that_is_not_json_is_refused_before_anything_is_queued(
        self, queue: JobQueue, body: Any
    ) -> None:
        with pytest.raises(ValueError, match=r"\w+ \w+"):
            await queue.submit([Job("fine", "bodies"), Job("wrong", "bodies", body), Job("fine too", "bodies")])
        found = await queue.status(["fine", "wrong", "fine too"])
        assert found == [None, None, None], f"a submit was refused, and part of it is in the queue: {found}"

    @pytest.mark.asyncio
    @pytest.mark.parametrize("error", [ValueError("no such door"), RuntimeError()], ids=["text", "no text"])
    async def test_what_carrying_out_raises_is_the_failure_of_that_job_alone(
        self, queue: JobQueue, error: Exception
    ) -> None:
        async def fail(job: Job) -> None:
            raise error

        async with at_work(queue, {"fails": fail, "echoes": echo}) as worker:
            await queue.submit([Job("well", "echoes"), Job("ill", "fails"), Job("after", "echoes")])
            well, ill, after = await until(queue, ["well", "ill", "after"], seconds=self.patience, worker=worker)
        assert (ill.state, ill.result) == ("failed", None), f"a job that raised is {ill}"
        assert ill.error, "it does not say why it failed"
        assert str(error) in ill.error, f"a job raised {error!r}, and its error is {ill.error!r}"
        assert (well.state, after.state) == ("done", "done"), "others suffered from one that failed"

    @pytest.mark.asyncio
    async def test_jobs_of_a_kind_are_listed_the_newest_first_with_bodies_where_wanted(self, queue: JobQueue) -> None:
        async def lists(expected: list[str], **options: Any) -> None:
            listed = [each.name for each in await queue.jobs("listed", **options)]
            assert listed == expected, f"m, z (cancelled), a and k were submitted; with {options}, it lists {listed}"

        names = ["m", "z", "a", "k"]
        for name in names:
            await queue.submit([Job(name, "listed", {"of": name}), Job(f"other {name}", "other")])
            await asyncio.sleep(0.01)  # times may be kept in milliseconds
        await queue.cancel(["z"])
        await lists(["k", "a", "m"])
        await lists(["z"], states=["cancelled"])
        await lists(["k", "a"], limit=2)
        await lists([], states=())
        async with at_work(queue, {"listed": echo}) as worker:
            await until(queue, names, seconds=self.patience, worker=worker)
        await lists([])
        await lists(["k", "a", "z", "m"], states=_ENDED)
        for body in (True, False):
            listed = await queue.jobs("listed", states=["done"], body=body)
            assert listed == await queue.status(["k", "a", "m"], body=body), "`jobs` and `status` differ"
            bodies = [each.body for each in listed]
            expected = [{"of": each.name} for each in listed] if body else [None] * 3
            assert bodies == expected, f"with body={body}, the bodies are {bodies}"

    @pytest.mark.asyncio
    async def test_any_text_names_a_job_and_a_kind_or_is_refused(self, queue: JobQueue) -> None:
        taken: dict[str, str] = {}
        for number, text in enumerate(ODD_NAMES):
            for name, kind in ((text, "plain"), (f"of kind {number}", text)):
                try:
                    await queue.submit([Job(name, kind, {"text": repr(text)})])
                    taken[name] = kind
                except ValueError as error:
                    assert text not in ("a", "A", "a-b"), f"people name jobs {text!r}, which is refused: {error}"
        async with at_work(queue, dict.fromkeys(taken.values(), echo)) as worker:
            ended = await until(queue, list(taken), seconds=self.patience, worker=worker)
        for (name, kind), status in zip(taken.items(), ended, strict=True):
            expected = (name, kind, {"text": repr(name if kind == "plain" else kind)})
            assert (status.name, status.kind, status.result) == expected, f"the job {name!r} was mixed up: {status}"

    @pytest.mark.asyncio
    async def test_cancelling_takes_a_job_that_waits_out_of_the_queue(self, queue: JobQueue) -> None:
        held = Paused()
        held.go.set()
        await queue.submit([Job("unwanted", "cancelled"), Job("wanted", "cancelled")])
        await queue.cancel(["unwanted", "no such job"])
        assert (await _known(queue, "unwanted")).state == "cancelled"
        await queue.submit([Job("unwanted", "cancelled")])
        async with at_work(queue, {"cancelled": held}) as worker:
            await until(queue, ["wanted"], seconds=self.patience, worker=worker)
            await queue.cancel(["wanted"])
        assert held.began == ["wanted"], f"of two jobs, one was cancelled while it waited; {held.began} began"
        states = [each and each.state for each in await queue.status(["unwanted", "wanted", "no such job"])]
        assert states == ["cancelled", "done", None], f"what had ended was cancelled, or began: {states}"

    @pytest.mark.asyncio
    async def test_cancelling_stops_a_job_that_runs_and_no_other(self, queue: JobQueue) -> None:
        held = Paused()
        names = ["unwanted", "wanted"][: self.concurrency]
        await queue.submit([Job(name, "running") for name in names])
        async with at_work(queue, {"running": held}) as worker:
            await held.holds(names, self.patience)
            await queue.cancel(["unwanted"])
            (status,) = await until(queue, ["unwanted"], seconds=self.patience, worker=worker)
            await _wait_for(lambda: bool(held.cancelled), "the work of a cancelled job goes on", self.patience)
            held.go.set()
            await queue.submit([Job("wanted", "running"), Job("after", "running")])
            others = await until(queue, ["wanted", "after"], seconds=self.patience, worker=worker)
        assert status.state == "cancelled", f"a job that ran was cancelled, and is {status.state}"
        assert [each.state for each in others] == ["done", "done"], f"others suffered from a cancelled job: {others}"
        assert held.cancelled == ["unwanted"], f"one was cancelled, and these were stopped: {held.cancelled}"

    @pytest.mark.asyncio
    async def test_a_worker_that_is_cancelled_gives_its_jobs_back(self, queue: JobQueue) -> None:
        held = Paused()
        names = [f"j{at}" for at in range(2 * self.concurrency)]
        await queue.submit([Job(name, "given back") for name in names])
        async with at_work(queue, {"given back": held}):
            await held.holds(names[: self.concurrency], self.patience)
            running = [each.name for each in await queue.jobs("given back", states=["running"])]
            assert len(running) == len(held.began) == self.concurrency, f"`concurrency` jobs run, not {held.began}"
        assert sorted(held.cancelled) == sorted(held.began), f"of {held.began}, `work` cancelled {held.cancelled}"
        states = [each and each.state for each in await queue.status(names)]
        assert states == ["waiting"] * len(names), f"their worker has ended, and jobs are {states}"
        held.go.set()
        async with at_work(queue, {"given back": held}) as worker:
            ended = await until(queue, names, seconds=self.patience, worker=worker)
        attempts = [each.attempts for each in ended]
        assert attempts == [held.began.count(name) for name in names], f"attempts count how often a job began: {ended}"

    @pytest.mark.asyncio
    async def test_a_queue_leaves_the_event_loop_free(self, queue: JobQueue) -> None:
        async def submit_and_work(number: int) -> None:
            jobs = [Job(f"{number} {at}", "free", {"text": "x" * 500}) for at in range(20)]
            async with at_work(queue, {"free": echo}) as worker:
                await queue.submit(jobs)
                await until(queue, [job.name for job in jobs], seconds=self.patience, worker=worker)
                await queue.jobs("free", states=_ENDED)
                await queue.workers()

        await leaves_the_event_loop_free(submit_and_work)

    @pytest.mark.asyncio
    async def test_a_queue_that_cannot_be_reached_is_a_store_error(self, failing_queue: JobQueue | None) -> None:
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
            await in_time(fails_as(StoreError, call(), what, hidden=self.password), never, seconds=self.patience)


def _require_cancelled(worker: asyncio.Task[None]) -> None:
    if worker.done() and not worker.cancelled():
        error = worker.exception()
        why = "returned" if error is None else f"raised {type(error).__name__}: {error}"
        raise AssertionError(f"a worker stopped without being cancelled: `work` {why}") from error


async def _known(queue: JobQueue, name: str) -> JobStatus:
    (status,) = await queue.status([name])
    assert status is not None, f"the job {name!r} was submitted and is not known"
    return status


async def _wait_for(holds: Callable[[], bool], otherwise: str, seconds: float) -> None:
    async def look() -> None:
        while not holds():
            await asyncio.sleep(_PAUSE)

    await in_time(look(), otherwise, seconds=seconds)
