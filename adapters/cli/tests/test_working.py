"""What a worker does with the jobs of a queue, and how a run in a worker is followed."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from portico import From, Kernel, Paused, Plan, Step, Value, function
from portico.errors import StoreError, StoreUnavailable
from portico.plans import Answer, Event, Infeasible, RunEvent, Task
from portico.ports import Job, JobStatus, Planner
from portico_cli.commands.submit import RunFailed, follow, read_outcome
from portico_cli.commands.worker import Working
from portico_cli.invocation import Invocation
from portico_cli.runs import list_runs
from portico_cli.terminal.progress import Progress
from portico_testkit.fakes.durable_runs import MemoryDurableRunner
from portico_testkit.fakes.job_queue import MemoryJobQueue
from portico_testkit.fakes.planner import ScriptedPlanner
from portico_testkit.fakes.run_store import MemoryRunStore
from portico_testkit.fakes.services import FixedServices


class Bench:
    """A kernel with a queue and functions that a test lets go on, and what the worker told."""

    def __init__(self, queue: MemoryJobQueue | None = None) -> None:
        self.queue = queue or MemoryJobQueue(concurrency=2)
        self.store = MemoryRunStore()
        self.kernel = Kernel(
            FixedServices({Planner: ScriptedPlanner(self.plan)}),
            runner=MemoryDurableRunner(jobs=self.queue),
            run_store=self.store,
        )
        self.go_on = asyncio.Event()
        self.begun = asyncio.Event()
        self.sent: list[str] = []
        self.told: list[dict[str, Any]] = []

        @function
        async def work(text: str) -> str:
            self.begun.set()
            await self.go_on.wait()
            return text

        @function(effects=True)
        async def send(text: str) -> str:
            self.begun.set()
            await self.go_on.wait()
            self.sent.append(text)
            return text

        @function
        async def fail(text: str) -> str:
            raise ValueError("no such thing")

        for each in (work, send, fail):
            self.kernel.add_function(each)

    def plan(self, task: Task) -> Plan | Answer | Infeasible:
        """A goal names the functions to call, one after the other."""
        if task.goal == "nothing":
            return Infeasible("nobody can do this")
        names = task.goal.split()
        given = {"text": Value(task.goal)}
        steps = [Step(f"s{at}", name, given, after=(f"s{at - 1}",) if at else ()) for at, name in enumerate(names)]
        return Plan(task.goal, tuple(steps), result=From(steps[-1].id))

    def working(self, grace: float = 0.0) -> Working:
        return Working(self.kernel, self.queue, self.told.append, grace=grace)

    def of(self, name: str) -> list[Any]:
        return [SimpleNamespace(**each) for each in self.told if each["event"] == name]


async def stopped(task: asyncio.Task[None]) -> None:
    """Tell a worker to stop, and wait until it has."""
    task.cancel()
    await asyncio.wait_for(task, 10)


async def test_a_worker_that_is_to_end_when_the_queue_is_empty_does() -> None:
    bench = Bench()
    bench.go_on.set()
    runs = await bench.kernel.submit_all(["work send", "nothing", "fail"])
    working = bench.working()
    await working.work(until_empty=True)
    assert dict(working.ended) == {"done": 1, "infeasible": 1, "failed": 1}
    assert {each.job: each.state for each in bench.of("job-ended")} == dict(
        zip(runs, ("done", "infeasible", "failed"), strict=True)
    )
    assert [each.error for each in bench.of("step-ended") if each.job == runs[0]] == [None, None]
    (failed,) = [each for each in bench.of("step-ended") if each.job == runs[2]]
    assert "no such thing" in failed.error


async def test_when_told_to_stop_no_step_begins_and_those_with_effects_end() -> None:
    bench = Bench()
    await bench.kernel.submit("send work", run="r")
    task = asyncio.create_task(bench.working(grace=30).work())
    await bench.begun.wait()
    task.cancel()
    while not bench.of("stopping"):
        await asyncio.sleep(0)
    bench.go_on.set()
    await asyncio.wait_for(task, 10)
    assert bench.sent == ["send work"]
    assert [each.step for each in bench.of("step-ended")] == ["s0"], "the next one has not begun"
    assert [each.state for each in bench.of("job-ended")] == ["waiting"]
    entries = [entry["type"] for entry in await bench.store.read("r")]
    assert entries[-3:] == ["step-started", "step-finished", "interrupted"]
    await bench.working().work(until_empty=True)
    assert bench.sent == ["send work"], "what is done is not done again"
    assert bench.of("job-ended")[-1].state == "done"


async def test_a_step_without_effects_is_not_waited_for() -> None:
    bench = Bench()
    await bench.kernel.submit("work", run="r")
    task = asyncio.create_task(bench.working(grace=600).work())
    await bench.begun.wait()
    await stopped(task)
    assert [each.jobs for each in bench.of("stopping")] == [["r"]]


@pytest.mark.parametrize("grace", [0.0, 0.05])
async def test_a_step_with_effects_that_does_not_end_in_time_is_uncertain(grace: float) -> None:
    bench = Bench()
    await bench.kernel.submit("send", run="r")
    task = asyncio.create_task(bench.working(grace=grace).work())
    await bench.begun.wait()
    await stopped(task)
    bench.go_on.set()
    await bench.working().work(until_empty=True)
    assert bench.of("job-ended")[-1].state == "uncertain"
    assert bench.sent == []


async def test_who_says_it_twice_does_not_wait() -> None:
    bench = Bench()
    await bench.kernel.submit("send", run="r")
    task = asyncio.create_task(bench.working(grace=600).work())
    await bench.begun.wait()
    task.cancel()
    while not bench.of("stopping"):
        await asyncio.sleep(0)
    await stopped(task)


async def test_a_listener_that_fails_stops_the_worker_and_fails_no_job() -> None:
    bench = Bench()
    await bench.kernel.submit("work", run="r")

    def tell(event: dict[str, Any]) -> None:
        if event["event"] == "job-begun":
            raise OSError("nobody reads")

    with pytest.raises(OSError, match="nobody reads"):
        await asyncio.wait_for(Working(bench.kernel, bench.queue, tell, grace=0).work(), 10)
    (status,) = await bench.queue.status(["r"])
    assert status is not None
    assert status.state == "waiting"


async def test_what_the_queue_raises_comes_out() -> None:
    class Broken(MemoryJobQueue):
        async def work(self, carry_out: Any, *, emit: Any = None) -> None:
            raise StoreError("The database is gone.")

    with pytest.raises(StoreError, match="gone"):
        await Bench(Broken()).working().work()


async def test_a_queue_that_is_away_for_now_is_not_empty() -> None:
    class Away(MemoryJobQueue):
        asked = 0

        async def jobs(self, kind: str, **options: Any) -> list[JobStatus]:
            self.asked += 1
            if self.asked == 1:
                raise StoreUnavailable("The database starts up.")
            return await super().jobs(kind, **options)

    bench = Bench(Away())
    await bench.working().work(until_empty=True)
    assert bench.queue.asked > 1


async def test_of_a_long_goal_the_beginning_is_told() -> None:
    bench = Bench()
    await bench.kernel.submit(f"two\nlines {'x' * 10_000}")
    await bench.working().work(until_empty=True)
    (begun,) = bench.of("job-begun")
    assert begun.about.startswith("two lines xxx")
    assert len(begun.about) <= 500


async def test_a_job_that_asks_for_nothing_is_a_failed_job() -> None:
    bench = Bench()
    await bench.queue.submit([Job("j", "pursuit", {"version": 1, "goal": 3})])
    working = bench.working()
    await working.work(until_empty=True)
    assert dict(working.ended) == {"failed": 1}
    assert "The job j " in bench.of("job-ended")[0].reason


async def test_a_run_is_followed_by_its_steps(capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench()
    await bench.kernel.submit("work fail", run="r")
    seen: list[RunEvent] = []
    said: list[str] = []

    class Line(Progress):
        def __call__(self, event: RunEvent) -> None:
            seen.append(event)
            bench.go_on.set()

        def say(self, idle: str) -> None:
            said.append(idle)

    following = asyncio.create_task(follow(bench.queue, bench.store, "r", Line()))
    while not said:
        await asyncio.sleep(0.01)
    assert said == ["Waiting for a worker…"]
    await asyncio.sleep(0.5)
    assert capsys.readouterr().err.count("`portico worker`") == 1, "it is told once that there is none"
    worker = asyncio.create_task(bench.working().work())
    status = await asyncio.wait_for(following, 10)
    await stopped(worker)
    assert status.state == "done"
    assert [type(each) for each in seen if each.step.id == "s0"] == [Event.StepStarted, Event.StepFinished]
    assert [type(each) for each in seen if each.step.id == "s1"][-1] is Event.StepFailed
    assert any(each.startswith("Thinking… (in the worker ") for each in said)
    assert not capsys.readouterr().err
    invocation = Invocation()
    with pytest.raises(RunFailed, match="1 parts and no more"):
        await read_outcome(invocation, bench.store, status)
    assert (invocation.run, invocation.failed) == ("r", "s1")


async def test_a_run_that_was_cancelled_is_told_so() -> None:
    bench = Bench()
    await bench.kernel.submit("work", run="r")
    await bench.queue.cancel(["r"])
    with pytest.raises(RunFailed, match="cancelled before it ended"):
        await read_outcome(Invocation(), bench.store, await follow(bench.queue, bench.store, "r", Progress()))


async def test_a_run_that_another_journal_has_is_told_so() -> None:
    bench = Bench()
    bench.go_on.set()
    await bench.kernel.submit("work", run="r")
    await bench.working().work(until_empty=True)
    (status,) = await bench.queue.status(["r"])
    assert status is not None
    invocation = Invocation(submitted=True, run="r")
    with pytest.raises(RunFailed, match="Do the workers use another journal"):
        await read_outcome(invocation, MemoryRunStore(), status)
    assert (invocation.run, invocation.submitted) == (None, False)


async def test_an_uncertain_step_is_told_of_with_what_it_was_sent() -> None:
    bench = Bench()
    await bench.kernel.submit("send", run="r")
    task = asyncio.create_task(bench.working().work())
    await bench.begun.wait()
    await stopped(task)
    await bench.working().work(until_empty=True)
    ended = await read_outcome(Invocation(), bench.store, (await bench.queue.status(["r"]))[0])
    assert isinstance(ended.run.outcome, Paused)
    assert ended.run.outcome.uncertain
    assert {step: dict(begun.arguments) for step, begun in ended.uncertain.items()} == {"s0": {"text": "send"}}


async def test_the_newest_of_both_are_listed_and_what_ended_is_as_its_journal_says() -> None:
    bench = Bench()
    bench.go_on.set()
    await bench.kernel.submit_all(["work", "nothing"])
    await bench.working().work(until_empty=True)
    await bench.kernel.run_plan(bench.plan(Task("send")))
    await bench.kernel.submit("work", run="waits")
    listing = await list_runs(bench.store, bench.queue, 3)
    assert [each.state for each in listing.runs][:2] == ["waiting", "done"]
    assert len(listing.runs) == 3
    assert listing.workers == []
    everything = await list_runs(bench.store, bench.queue, 100)
    assert sorted(each.state for each in everything.runs) == ["done", "done", "infeasible", "waiting"]
    assert everything.runs[0].name == "waits"
    alone = await list_runs(bench.store, None, 100)
    assert (len(alone.runs), alone.workers) == (3, None)


@pytest.mark.parametrize(("state", "shown"), [("waiting", "waiting"), ("failed", "failed"), ("cancelled", "cancelled")])
async def test_a_run_that_broke_off_is_as_its_job_is(state: str, shown: str) -> None:
    bench = Bench()
    await bench.kernel.submit("work", run="r")
    task = asyncio.create_task(bench.working().work())
    await bench.begun.wait()
    listing = await list_runs(bench.store, bench.queue, 5)
    (run,) = listing.runs
    assert (run.state, run.worker) == ("running", listing.workers[0].name)
    await stopped(task)
    if state == "cancelled":
        await bench.queue.cancel(["r"])
    if state == "failed":

        async def fail(job: Job) -> None:
            raise ValueError("the store is away for too long")

        async with asyncio.timeout(10):
            failing = asyncio.create_task(bench.queue.work({"pursuit": fail}))
            await bench.queue.ended(["r"])
            failing.cancel()
    (run,) = (await list_runs(bench.store, bench.queue, 5)).runs
    assert (run.state, run.worker) == (shown, None)
    assert run.run_state is not None
