"""What every JobQueue must do."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from portico.ports import Job, JobQueue, JobStatus
from portico_testkit._job_cases import ENDED, NOT_JSON, ODD_TEXTS, at_work, echo, is_moment, known, until
from portico_testkit._job_work import JobWork as _JobWork
from portico_testkit._run_store_cases import ODD_ENTRIES, short
from portico_testkit.strategies import json_values

__all__ = ["JobQueueKit"]


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
        """People choose it by name."""
        assert isinstance(queue.name, str), f"the name is {queue.name!r}, not a str"
        assert queue.name.strip(), "the name is empty"

    @pytest.mark.asyncio
    async def test_each_job_is_carried_out_once_and_gives_its_result(self, queue: JobQueue) -> None:
        """Whatever JSON the bodies and results are, and though names come several times: the first one stays."""
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
        """`portico runs` shows it before any worker is there."""
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
        """Another process could not read it; who mends it submits all of them again."""
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
        """It is told, not raised: other jobs of the worker go on, and those that come after it."""
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
        """By their states; without any said, those that have not ended."""
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
        """`portico runs` shows the goal of what waits; who watches thousands of large jobs reads none of them."""
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
        """Names are data: none is a path or a command, and no two are one."""
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
