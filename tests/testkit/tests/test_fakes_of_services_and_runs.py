"""The fakes that have no kit of their own do what they say."""

from __future__ import annotations

import asyncio

import pytest

from portico.errors import PlanError, PluginNotInstalled, StoreBusy, StoreError
from portico.plans import Answer, Finding, Plan, Refusal, Task
from portico.ports import Job, JobStatus, Planner, TextSearch
from portico_testkit.fakes.durable_runs import MemoryDurableRunner
from portico_testkit.fakes.job_queue import MemoryJobQueue
from portico_testkit.fakes.planner import ScriptedPlanner
from portico_testkit.fakes.run_store import MemoryRunStore
from portico_testkit.fakes.services import FixedServices


def test_services_are_found_by_port_and_by_name() -> None:
    planner = ScriptedPlanner()
    services = FixedServices({Planner: planner, (TextSearch, "docs"): 1, (TextSearch, "web"): 2})
    assert services.get(Planner) is services.get(Planner, "scripted") is planner
    assert (services.get(TextSearch), services.get(TextSearch, "web")) == (1, 2)
    assert services.names(TextSearch) == ("docs", "web")
    assert services.names(Planner) == ("scripted",)
    for name in ("other", ""):
        with pytest.raises(PluginNotInstalled, match="docs, web"):
            services.get(TextSearch, name)
    with pytest.raises(PluginNotInstalled):
        FixedServices().get(Planner)


async def test_only_the_newest_lease_may_write() -> None:
    store = MemoryRunStore()
    first = await store.acquire("r", owner="a", seconds=60)
    second = await store.acquire("r", owner="a", seconds=60)
    assert second.token > first.token
    await store.append(second, [{"n": 1}, {"n": 2}])
    with pytest.raises(StoreBusy):
        await store.append(first, [{"n": 3}])
    with pytest.raises(StoreBusy):
        await store.acquire("r", owner="b", seconds=60)
    await store.release(first)
    assert store.holder("r") == second
    await store.release(second)
    with pytest.raises(StoreBusy):
        await store.append(second, [{"n": 3}])
    assert await store.read("r") == [{"n": 1}, {"n": 2}]


async def test_a_lease_runs_out() -> None:
    now = [0.0]
    store = MemoryRunStore(clock=lambda: now[0])
    old = await store.acquire("r", owner="a", seconds=60)
    now[0] = 61
    with pytest.raises(StoreBusy):
        await store.append(old, [{}])
    await store.renew(old, seconds=60)
    await store.append(old, [{}])
    now[0] = 130
    new = await store.acquire("r", owner="b", seconds=60)
    assert new.token > old.token
    with pytest.raises(StoreBusy, match="b holds the run"):
        await store.renew(old, seconds=60)
    await store.release(new)
    with pytest.raises(StoreBusy):
        await store.renew(old, seconds=60)


async def test_entries_are_whole_or_not_there_and_are_copies() -> None:
    store = MemoryRunStore()
    lease = await store.acquire("r", owner="a", seconds=60)
    with pytest.raises(StoreError, match="not JSON"):
        await store.append(lease, [{"n": 1}, {"n": object()}])
    assert await store.read("r") == []
    entry = {"n": [1]}
    await store.append(lease, [entry])
    entry["n"].append(2)
    assert await store.read("r") == [{"n": [1]}]
    await store.acquire("q", owner="a", seconds=1)
    assert await store.runs() == ["r", "q"]
    assert await store.read("unknown") == []


async def test_a_script_goes_on_by_what_the_task_says() -> None:
    planner = ScriptedPlanner(Plan("one"), lambda task: Plan("two"), Answer("three"))
    first = await planner.propose(Task("g"), emit=print)
    assert isinstance(first, Plan)
    second = await planner.propose(Task("g", notes=first.notes), emit=print)
    assert isinstance(second, Plan)
    assert (first.goal, second.goal) == ("one", "two")
    refused = Task("g", notes=first.notes, refused=(Refusal(second, (Finding("no"),)),))
    assert await planner.propose(refused, emit=print) == Answer("three")
    assert (await planner.propose(Task("g"), emit=print)) == first
    with pytest.raises(PlanError, match="3 parts"):
        await planner.propose(Task("g", notes={"script": 3}), emit=print)


class _Long:
    """Carries out jobs that go on until they are let go, and notes in which order they begin and stop."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.go = asyncio.Event()

    async def __call__(self, job: Job) -> str:
        self.notes.append("begins")
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.notes.append("stops")
            raise
        return "done"

    async def noted(self, count: int) -> None:
        async with asyncio.timeout(10):
            while len(self.notes) < count:
                await asyncio.sleep(0)


async def test_the_jobs_of_a_silent_worker_are_anothers_and_it_stops_them_when_it_is_heard_again() -> None:
    queue, long, told = MemoryJobQueue(), _Long(), list[JobStatus]()
    silent = asyncio.create_task(queue.work({"long": long}, emit=told.append))
    await queue.submit([Job("j", "long")])
    await long.noted(1)
    (worker,) = await queue.workers()
    queue.silence(worker.name)
    assert await queue.workers() == []
    assert (await queue.status(["j"]))[0].state == "waiting"
    other = asyncio.create_task(queue.work({"long": long}))
    await long.noted(2)
    queue.hear(worker.name)
    await long.noted(3)
    assert long.notes == ["begins", "begins", "stops"]
    assert len(await queue.workers()) == 2
    long.go.set()
    (done,) = await queue.ended(["j"])
    assert (done.state, done.attempts, done.worker != worker.name) == ("done", 2, True)
    assert [each.state for each in told] == ["running"], "what became of it is the other worker's to tell"
    for working in (silent, other):
        working.cancel()
        await asyncio.wait([working])


async def test_what_a_silent_worker_ends_with_is_nobodys() -> None:
    queue, long = MemoryJobQueue(), _Long()
    working = asyncio.create_task(queue.work({"long": long}))
    await queue.submit([Job("j", "long")])
    await long.noted(1)
    (worker,) = await queue.workers()
    queue.silence(worker.name)
    long.go.set()
    await asyncio.sleep(0.01)
    assert (await queue.status(["j"]))[0].state == "waiting"
    working.cancel()
    await asyncio.wait([working])


async def test_a_worker_whose_emit_raises_ends_with_that_and_gives_its_jobs_back() -> None:
    def emit(status: JobStatus) -> None:
        raise OSError("the terminal is gone")

    queue, long = MemoryJobQueue(), _Long()
    await queue.submit([Job("j", "long")])
    with pytest.raises(OSError, match="terminal"):
        await queue.work({"long": long}, emit=emit)
    assert (await queue.status(["j"]))[0].state == "waiting"
    assert await queue.workers() == []


def test_a_queue_is_of_no_event_loop() -> None:
    queue = MemoryJobQueue()

    async def shout(job: Job) -> str:
        return job.name.upper()

    async def worked() -> list[JobStatus]:
        working = asyncio.create_task(queue.work({"shout": shout}))
        try:
            return await queue.ended(["j"])
        finally:
            working.cancel()
            await asyncio.wait([working])

    asyncio.run(queue.submit([Job("j", "shout")]))
    assert asyncio.run(worked())[0].result == "J"
    assert asyncio.run(queue.status(["j"]))[0].result == "J"


async def test_a_durable_runner_records_while_the_run_is_run_and_refuses_what_is_no_json() -> None:
    runner = MemoryDurableRunner()

    async def action() -> object:
        return {1, 2}

    assert await runner.execute("r", "s1", action) == {1, 2}
    with pytest.raises(ValueError, match="s1 of the run r is not JSON"):
        await runner.durable.run("r", lambda: runner.execute("r", "s1", action))
    assert await runner.durable.recorded("r") == {}
