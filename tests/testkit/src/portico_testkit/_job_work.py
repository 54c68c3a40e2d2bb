"""What a JobQueue must do at work: bounds, cancelled jobs and workers, many calls; tests of `JobQueueKit`."""

from __future__ import annotations

import asyncio

import pytest

from portico.ports import Job, JobQueue
from portico_testkit._job_cases import ENDED, Paused, at_work, echo, filled, known, until
from portico_testkit._job_sharing import JobSharing
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.tasks import in_time

__all__ = ["JobWork"]

_LOOKS = 10
"""Looks at a queue in which a job begins that nothing keeps back."""


class JobWork(JobSharing):
    """Subclass `JobQueueKit`, which has these."""

    @pytest.mark.asyncio
    async def test_cancelling_takes_a_job_that_waits_out_of_the_queue(self, queue: JobQueue) -> None:
        """It is never begun, also where its name is submitted again; unknown names are no error."""
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
        """What it is at is cancelled, and its worker goes on."""
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
        """Ctrl-C, or a new version: the next worker begins them again."""
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
        """Whoever sets a bound has a machine, or a service, that takes no more."""
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
        """A worker carries out others meanwhile, and an application answers people."""

        async def submit_and_work(number: int) -> None:
            jobs = [Job(f"{number} {at}", "free", {"text": "x" * 500}) for at in range(20)]
            async with at_work(queue, {"free": echo}) as worker:
                await queue.submit(jobs)
                await until(queue, [job.name for job in jobs], seconds=self.patience, worker=worker)
                await queue.jobs("free", states=ENDED)
                await queue.workers()

        await leaves_the_event_loop_free(submit_and_work)
