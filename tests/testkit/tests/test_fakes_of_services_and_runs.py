"""The fakes that have no kit of their own do what they say."""

from __future__ import annotations

import asyncio

import pytest

from portico.errors import PlanError, PluginNotInstalled, StoreBusy, StoreError
from portico.plans import Answer, Finding, Plan, Refusal, Task
from portico.ports import Job, Planner, TextSearch
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


async def test_the_jobs_of_a_silent_worker_are_done_by_another_one() -> None:
    queue, begun, go = MemoryJobQueue(), list[str](), asyncio.Event()

    async def wait(job: Job) -> str:
        begun.append(job.name)
        await go.wait()
        return "done"

    workers = [asyncio.create_task(queue.work({"long": wait}))]
    await queue.submit([Job("j", "long")])
    async with asyncio.timeout(10):
        while not begun:
            await asyncio.sleep(0)
    (silent,) = await queue.workers()
    queue.silence(silent.name)
    assert await queue.workers() == []
    assert (await queue.status(["j"]))[0].state == "waiting"
    workers.append(asyncio.create_task(queue.work({"long": wait})))
    go.set()
    (done,) = await queue.ended(["j"])
    assert (done.state, done.attempts, done.worker != silent.name) == ("done", 2, True)
    for working in workers:
        working.cancel()
        await asyncio.wait([working])


async def test_a_durable_runner_records_while_the_run_is_run_and_refuses_what_is_no_json() -> None:
    runner = MemoryDurableRunner()

    async def action() -> object:
        return {1, 2}

    assert await runner.execute("r", "s1", action) == {1, 2}
    with pytest.raises(ValueError, match="s1 of the run r is not JSON"):
        await runner.durable.run("r", lambda: runner.execute("r", "s1", action))
    assert await runner.durable.recorded("r") == {}
