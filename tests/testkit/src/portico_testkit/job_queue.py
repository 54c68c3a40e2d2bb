"""What a JobQueue must do for several workers, and when what it stands on fails; tests of `JobQueueKit`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from portico.errors import StoreError
from portico.ports import Job, JobQueue, JobStatus
from portico_testkit._failing import fails_as
from portico_testkit._job_cases import (
    ENDED,
    NOT_JSON,
    ODD_TEXTS,
    Paused,
    at_work,
    echo,
    filled,
    is_moment,
    known,
    there_are_workers,
    until,
)
from portico_testkit._run_store_cases import ODD_ENTRIES, short
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.job_workers import Elsewhere, OtherWorker, noted, notes_of
from portico_testkit.strategies import json_values
from portico_testkit.tasks import in_time

__all__ = ["JobQueueKit", "JobSharing"]

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


_LOOKS = 10
"""Looks at a queue in which a job begins that nothing keeps back."""


class _JobWork(JobSharing):
    """Subclass `JobQueueKit`, which has these."""

    @pytest.mark.asyncio
    async def test_cancelling_takes_a_job_that_waits_out_of_the_queue(self, queue: JobQueue) -> None:
        held = Paused()
        held.go.set()
        await queue.submit([Job("unwanted", "cancelled"), Job("wanted", "cancelled")])
        await queue.cancel(["unwanted", "no such job"])
        assert (await known(queue, "unwanted")).state == "cancelled"
        await queue.submit([Job("unwanted", "cancelled")])
        async with at_work(queue, {"cancelled": held}) as worker:
            await until(queue, ["wanted"], seconds=self.patience, worker=worker)
            await queue.submit([Job("after", "cancelled")])
            await until(queue, ["after"], seconds=self.patience, worker=worker)
            await queue.cancel(["wanted", "after"])
        assert "unwanted" not in held.began, "a job was cancelled while it waited, and was begun"
        states = [each and each.state for each in await queue.status(["unwanted", "wanted", "after", "no such job"])]
        assert states == ["cancelled", "done", "done", None], f"what had ended was cancelled, or begun: {states}"

    @pytest.mark.asyncio
    async def test_cancelling_stops_a_job_that_runs_and_no_other(self, queue: JobQueue) -> None:
        held = Paused()
        await queue.submit([Job("unwanted", "running")])
        async with at_work(queue, {"running": held, "echo": echo}) as worker:
            await held.holds(["unwanted"], self.patience)
            beside = ["wanted"] if self.concurrency > 1 else []
            await queue.submit([Job(name, "running") for name in beside])
            await held.holds(beside, self.patience)
            await queue.cancel(["unwanted"])
            (told,) = await until(queue, ["unwanted"], seconds=self.patience, worker=worker)
            assert told.state == "cancelled", f"a job that ran was cancelled, and is {told.state}"
            await in_time(filled(held.cancelled), "what a cancelled job is at goes on", seconds=self.patience)
            held.go.set()
            await queue.submit([Job("wanted", "running"), Job("after", "echo")])
            told_of = await until(queue, ["wanted", "after"], seconds=self.patience, worker=worker)
        assert [each.state for each in told_of] == ["done", "done"], (
            f"others suffered from one that was cancelled: {told_of}"
        )
        assert held.cancelled == ["unwanted"], f"one was cancelled, and these were stopped: {held.cancelled}"
        assert (await known(queue, "unwanted")).state == "cancelled", "a cancelled job did not stay so"

    @pytest.mark.asyncio
    async def test_a_worker_that_is_cancelled_gives_back_what_it_has(self, queue: JobQueue) -> None:
        held = Paused()
        names = [f"j{at}" for at in range(self.concurrency)]
        await queue.submit([Job(name, "given back") for name in names])
        async with at_work(queue, {"given back": held}):
            await held.holds(names, self.patience)
            states = [each and each.state for each in await queue.status(names)]
            assert states == ["running"] * len(names), f"jobs that run are told as {states}"
        assert sorted(held.cancelled) == sorted(names), f"of {names}, `work` cancelled {held.cancelled} before it ended"
        for each in await queue.status(names):
            assert each is not None, "a job was forgotten"
            assert each.state == "waiting", f"its worker has ended, and a job is {each.state}, not waiting"
        held.go.set()
        async with at_work(queue, {"given back": held}) as worker:
            told = await until(queue, names, seconds=self.patience, worker=worker)
        assert [each.state for each in told] == ["done"] * len(names), f"jobs that were given back are {told}"
        assert [each.attempts for each in told] == [2] * len(names), "attempts count how often a job was begun"
        assert sorted(held.began) == sorted(names * 2), f"they were begun so: {held.began}"

    @pytest.mark.asyncio
    async def test_no_more_jobs_run_at_a_time_than_a_worker_takes_and_no_fewer(self, queue: JobQueue) -> None:
        held = Paused()
        names = [f"j{at}" for at in range(2 * self.concurrency)]
        await queue.submit([Job(name, "bound") for name in names])
        async with at_work(queue, {"bound": held}) as worker:
            fewer = f"{self.concurrency} jobs did not run side by side"
            await in_time(filled(held.began, self.concurrency), fewer, seconds=self.patience)
            for _ in range(_LOOKS):  # one that nothing keeps back begins now
                await asyncio.sleep(0.01)
                running = await queue.jobs("bound", states=["running"])
            told = f"{len(held.began)} jobs run at a time, {len(running)} are told to, and its `concurrency` is"
            assert len(held.began) == len(running) == self.concurrency, f"{told} {self.concurrency}"
            held.go.set()
            await until(queue, names, seconds=self.patience, worker=worker)
        assert sorted(held.ended) == sorted(names)

    @pytest.mark.asyncio
    async def test_a_queue_leaves_the_event_loop_free(self, queue: JobQueue) -> None:

        async def submit_and_work(number: int) -> None:
            jobs = [Job(f"{number} {at}", "free", {"text": "x" * 500}) for at in range(20)]
            async with at_work(queue, {"free": echo}) as worker:
                await queue.submit(jobs)
                await until(queue, [job.name for job in jobs], seconds=self.patience, worker=worker)
                await queue.jobs("free", states=ENDED)
                await queue.workers()

        await leaves_the_event_loop_free(submit_and_work)


class JobQueueKit(_JobWork):
    """Subclass it and give a fixture named ``queue``, an empty one for each test::

        class TestAcmeJobs(JobQueueKit):
            concurrency = 4
            silence = 1.0

            @pytest.fixture
            async def queue(self, tmp_path):
                runner = AcmeRunner(AcmeSettings(path=tmp_path / "jobs", worker_timeout=1), None)
                yield runner.jobs
                await runner.aclose()

            @pytest.fixture
            def elsewhere(self, queue, tmp_path):
                return worker_process(f'''
            from portico_acme.config import AcmeSettings
            from portico_acme.runner import AcmeRunner

            async def opened():
                return AcmeRunner(AcmeSettings(path={str(tmp_path / "jobs")!r}, worker_timeout=1), None).jobs
            ''')

    ``concurrency`` is how many jobs a worker of it carries out at a time. ``elsewhere`` begins another worker of the
    same queue, in a process that can be killed (`portico_testkit.job_workers.worker_process`); without it, the tests of
    several workers skip. ``silence`` is for how many seconds a worker may not be heard of before it is taken for gone:
    make it short. A fixture ``failing_queue`` gives a queue whose server is not there, or whose file is damaged; if it
    has a password, that is ``password``, which must be in no error. ``patience`` (seconds) is how long jobs may take
    that do next to nothing, and ``effort`` how hard random jobs are tried.
    """

    effort: ClassVar[settings] = settings(max_examples=30)

    @pytest.mark.asyncio
    async def test_name_is_filled(self, queue: JobQueue) -> None:
        assert isinstance(queue.name, str), f"the name is {queue.name!r}, not a str"
        assert queue.name.strip(), "the name is empty"

    @pytest.mark.asyncio
    async def test_each_job_is_carried_out_once_and_gives_its_result(self, queue: JobQueue) -> None:
        bodies, submits = _drawn(self.effort)
        began: Counter[str] = Counter()

        async def carry_out(job: Job) -> Any:
            began[job.name] += 1
            assert repr(dict(job.body)) == repr(first[job.name]), f"{short(first[job.name])} came as {short(job.body)}"
            return job.body["value"]

        first: dict[str, Any] = {}
        for jobs in [*submits, [Job(f"body {at}", "drawn", body) for at, body in enumerate(bodies)]]:
            for job in jobs:
                first.setdefault(job.name, dict(job.body))
            await queue.submit(jobs)
        async with at_work(queue, {"drawn": carry_out}) as worker:
            told = await until(queue, list(first), seconds=self.patience, worker=worker)
            for status in told:
                assert status.state == "done", f"the job {status.name!r} {status.state}: {status.error}"
                expected = first[status.name]["value"]
                assert repr(status.result) == repr(expected), (
                    f"the result {short(expected)} came as {short(status.result)}"
                )
            for jobs in submits:  # what has ended is not begun again
                await queue.submit([Job(job.name, job.kind, {"value": "again"}) for job in jobs])
            await queue.submit([Job("after all", "drawn", first.setdefault("after all", {"value": 1}))])
            await until(queue, ["after all"], seconds=self.patience, worker=worker)
        assert began == dict.fromkeys(first, 1), f"jobs were begun so often: {_others(began)}"
        assert await queue.status(list(first)) == [*told, *await queue.status(["after all"])], "what has ended changed"

    @pytest.mark.asyncio
    async def test_a_job_that_waits_is_told_with_all_that_is_known(self, queue: JobQueue) -> None:
        await queue.submit([Job("j", "kind of it", {"a": 1})])
        told = await known(queue, "j")
        assert (told.name, told.kind, told.state) == ("j", "kind of it", "waiting")
        assert (told.attempts, told.result, told.error) == (0, None, None), f"it has not begun, and is told as {told}"
        assert is_moment(told.submitted_at), f"submitted_at is {told.submitted_at!r}: ISO 8601, in UTC"
        assert is_moment(told.updated_at), f"updated_at is {told.updated_at!r}: ISO 8601, in UTC"

    @pytest.mark.asyncio
    @pytest.mark.parametrize("body", NOT_JSON, ids=["an object", "not a number", "a set", "bytes"])
    async def test_a_body_that_is_not_json_is_refused_before_anything_is_queued(
        self, queue: JobQueue, body: Any
    ) -> None:
        with pytest.raises(ValueError, match=r"\w+ \w+"):
            await queue.submit([Job("fine", "bodies"), Job("wrong", "bodies", body), Job("fine too", "bodies")])
        told = await queue.status(["fine", "wrong", "fine too"])
        assert told == [None, None, None], f"a submit was refused, and some of it is in the queue: {told}"

    @pytest.mark.asyncio
    @pytest.mark.parametrize(
        "error",
        [ValueError("no such door"), RuntimeError(), ExceptionGroup("two doors", [ValueError("no such door")])],
        ids=["text", "no text", "group"],
    )
    async def test_what_carrying_out_raises_is_the_failure_of_that_job_alone(
        self, queue: JobQueue, error: Exception
    ) -> None:
        together = asyncio.Event()
        if self.concurrency == 1:
            together.set()

        async def fail(job: Job) -> None:
            raise error

        async def wait(job: Job) -> str:
            await together.wait()
            return "well"

        async with at_work(queue, {"fails": fail, "waits": wait}) as worker:
            await queue.submit([Job("well", "waits"), Job("ill", "fails")])
            (ill,) = await until(queue, ["ill"], seconds=self.patience, worker=worker)
            together.set()
            await queue.submit([Job("after", "waits")])
            told = await until(queue, ["well", "after"], seconds=self.patience, worker=worker)
        assert (ill.state, ill.result) == ("failed", None), f"a job that raised is told as {ill}"
        assert ill.error, "it does not say why it failed"
        assert str(error) in ill.error, f"a job raised {error!r}, and its error is told as {ill.error!r}"
        assert [each.result for each in told] == ["well", "well"], f"others suffered from one that failed: {told}"

    @pytest.mark.asyncio
    async def test_jobs_of_a_kind_are_listed_the_newest_first(self, queue: JobQueue) -> None:
        names = ["m", "z", "a", "k"]
        for name in names:
            await queue.submit([Job(name, "listed"), Job(f"other {name}", "other")])
            await asyncio.sleep(0.01)  # times may be kept in milliseconds
        await queue.cancel(["z"])
        await _lists(queue, ["k", "a", "m"])
        await _lists(queue, ["z"], states=["cancelled"])
        await _lists(queue, ["k", "a", "z", "m"], states=("waiting", "cancelled"))
        await _lists(queue, ["k", "a"], limit=2)
        await _lists(queue, [], states=["running"])
        await _lists(queue, [], states=())
        assert list(await queue.jobs("no such kind")) == []
        async with at_work(queue, {"listed": echo}) as worker:
            await until(queue, names, seconds=self.patience, worker=worker)
        await _lists(queue, [])
        await _lists(queue, ["k", "a", "m"], states=["done"])
        assert await queue.jobs("listed", states=["done"]) == await queue.status(["k", "a", "m"]), (
            "`jobs` and `status` differ about the same jobs"
        )

    @pytest.mark.asyncio
    async def test_what_was_submitted_is_told_where_it_is_asked_for(self, queue: JobQueue) -> None:
        body = {"goal": "Sum up", "input": [1, {"ä": None}]}
        await queue.submit([Job("j", "bodies", body), Job("plain", "bodies")])
        for _ in range(2):  # as it waits, and as it has ended
            every: dict[str, dict[str, JobStatus]] = {}
            for told, asked in (("asked", True), ("unasked", False)):
                listed = await queue.jobs("bodies", states=("waiting", *ENDED), body=asked)
                names = await queue.status(["j", "plain", "no such job"], body=asked)
                every[f"jobs {told}"] = {each.name: each for each in listed}
                every[f"status {told}"] = {each.name: each for each in names if each is not None}
            for call in ("jobs", "status"):
                given = {name: each.body for name, each in every[f"{call} asked"].items()}
                assert given == {"j": body, "plain": {}}, f"asked for bodies, `{call}` told {given['j']}"
                without = [each.body for each in every[f"{call} unasked"].values()]
                assert without == [None, None], f"nobody asked for bodies, and `{call}` told {without}"
            async with at_work(queue, {"bodies": echo}) as worker:
                await until(queue, ["j", "plain"], seconds=self.patience, worker=worker)

    @pytest.mark.asyncio
    async def test_any_text_names_a_job_and_a_kind_or_is_refused(self, queue: JobQueue) -> None:
        names, kinds = [], ["plain"]
        for text in ODD_TEXTS:
            if await _taken(queue, Job(text, "plain", {"text": repr(text)})):
                names.append(text)
            if await _taken(queue, Job(f"of the kind {len(kinds)}", text, {"text": repr(text)})):
                names.append(f"of the kind {len(kinds)}")
                kinds.append(text)
        plain = {"a", "A", "a-b"} - set(names)
        assert not plain, f"these are names of jobs as people give them, and are refused: {sorted(plain)}"
        async with at_work(queue, dict.fromkeys(kinds, echo)) as worker:
            told = await until(queue, names, seconds=self.patience, worker=worker)
        for name, status in zip(names, told, strict=True):
            meant = repr(name) if status.kind == "plain" else repr(status.kind)
            assert (status.name, status.result) == (name, {"text": meant}), f"the job {name!r} was mixed up: {status}"
        for kind in kinds:
            listed = {status.name for status in await queue.jobs(kind, states=ENDED)}
            assert listed == {each.name for each in told if each.kind == kind}, (
                f"of the kind {kind!r}, it lists {listed}"
            )


def _drawn(effort: settings) -> tuple[list[dict[str, Any]], list[list[Job]]]:
    """Draw bodies, and what is submitted of a few names, some of them several times."""
    bodies: list[dict[str, Any]] = [{"value": entry} for entry in ODD_ENTRIES]
    submits = [[Job("a", "drawn", {"value": value})] for value in ({"b": [{"z": None}], "a": 1e-9}, 2)]
    jobs = st.builds(Job, st.sampled_from("abcdef"), st.just("drawn"), st.fixed_dictionaries({"value": json_values(3)}))

    @settings(effort, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(json_values(), st.dictionaries(st.text(max_size=5), json_values(3), max_size=2), st.lists(jobs, max_size=3))
    def draw(value: Any, more: dict[str, Any], batch: list[Job]) -> None:
        bodies.append({**more, "value": value})
        submits.append(batch)

    draw()
    return bodies, submits


def _others(began: Counter[str]) -> dict[str, int]:
    return {name: times for name, times in began.items() if times != 1}


async def _lists(queue: JobQueue, expected: list[str], **options: Any) -> None:
    listed = [each.name for each in await queue.jobs("listed", **options)]
    assert listed == expected, f"m, z (cancelled), a and k were submitted; with {options}, it lists {listed}"


async def _taken(queue: JobQueue, job: Job) -> bool:
    try:
        await queue.submit([job])
    except ValueError as error:
        assert len(str(error)) > 10, f"a job is refused, and all that is said is {str(error)!r}"
        try:
            told = await queue.status([job.name])
        except ValueError as raised:
            raise AssertionError(
                f"`status` of a name that was refused raised {raised!r}: nobody knows it, so None"
            ) from raised
        assert told == [None], f"the job {job.name!r} was refused, and is in the queue"
        return False
    return True
