"""The fakes that have no kit of their own do what they say."""

from __future__ import annotations

import asyncio

import pytest

from portico.errors import PlanError, PluginNotInstalled
from portico.plans import Answer, Finding, Plan, Refusal, Task
from portico.ports import Job, Planner, TextSearch
from portico_testkit.fakes.job_queue import MemoryJobQueue
from portico_testkit.fakes.planner import ScriptedPlanner
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
