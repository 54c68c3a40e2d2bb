"""Runs that wait for workers, flows that a person must agree to, and plans inside of steps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.desks import CONFIGURATION, Client, eventually, plan, step, workshop

from portico import plan_from_json, plan_function
from portico.ports import Runner
from portico_testkit.fakes.job_queue import MemoryJobQueue

POLICY = """
[policy]
mode = "enforce"
[policy.functions."tools-repeat"]
gives = "untrusted"
[policy.functions."tools-send"]
takes = { text = "trusted" }
"""


class _Crew(Runner):
    name = "crew"

    def __init__(self) -> None:
        self.jobs = MemoryJobQueue()

    async def execute(self, run: str, name: str, action: Any) -> Any:
        return await action()


@pytest.fixture
async def client(folder: Path) -> AsyncIterator[Client]:
    async with workshop(folder) as made:
        made.desk.kernel.runner = _Crew()
        yield made


async def test_a_run_that_waits_for_a_worker_is_listed_watched_and_cancelled(client: Client) -> None:
    run = await client.desk.kernel.submit("Wait here")
    [found] = (await client.get("/runs", query="wait here"))["runs"]
    assert (found["run"], found["state"]) == (run, "waiting")
    async with client.events(f"/runs/{run}") as events:
        assert (await anext(events))[1]["state"] == "waiting"
        await client.post(f"/runs/{run}/resume", 409)

        await client.post(f"/runs/{run}/cancel", 202)

        assert (await anext(events))[1]["state"] == "cancelled"
    await client.post(f"/runs/{run}/cancel", 409)


async def test_a_run_of_a_worker_is_seen_and_cancelled(client: Client) -> None:
    kernel = client.desk.kernel
    run = await kernel.submit(
        '{"plans": [{"steps": [{"id": "s1", "function": "tools-wait", "arguments": {"text": {"value": "a"}}}]}]}'
    )
    working = asyncio.create_task(
        kernel.require_jobs(kernel.runner).work(
            {kind: lambda job, each=each: each(kernel, job) for kind, each in kernel.job_handlers().items()}
        )
    )
    await eventually(Path("begun.txt").exists)
    found = await client.get(f"/runs/{run}")
    assert (found["state"], found["here"], found["steps"]["s1"]["state"]) == ("running", False, "running")
    assert found["worker"]

    await client.post(f"/runs/{run}/cancel", 202)

    assert (await client.until(run, "cancelled", "interrupted"))["resumable"]
    working.cancel()


async def test_the_plan_of_a_function_is_agreed_to_as_a_step(client: Client) -> None:
    inner = plan_from_json({"version": 1, "goal": "Send it", **plan(step("a", "tools-send", text="hey"), result="a")})
    client.desk.kernel.add_function(plan_function("deliver", inner))
    run = await client.start(plan({"id": "s1", "function": "deliver"}, result="s1"))
    await client.until(run, "held")
    await client.post(f"/runs/{run}/approve", 202)
    held = await client.until(run, "held")
    assert held["held"]["step"] == "s1"
    assert "tools-send" in held["held"]["text"]
    await client.post(f"/runs/{run}/approve", 409)
    await client.post(f"/runs/{run}/refuse", 409, {"reason": "No."})

    await client.post(f"/runs/{run}/approve", 202, {"step": "s1"})

    assert (await client.until(run, "done"))["answer"] == "sent hey"


async def test_a_value_that_is_not_trusted_waits_for_a_person(folder: Path) -> None:
    (folder / "portico.toml").write_text(CONFIGURATION + POLICY)
    async with workshop(folder) as client:
        flowing = plan(
            step("s1", "tools-repeat", text="hey", times=2), step("s2", "tools-send", text={"from": "s1"}), result="s2"
        )
        run = await client.start(flowing)
        held = await client.until(run, "held")
        assert held["held"]["flows"]
        await client.post(f"/runs/{run}/approve", 202)
        held = await client.until(run, "held")
        assert (held["held"]["step"], held["held"]["arguments"]) == ("s2", {"text": "heyhey"})
        assert [each["step"] for each in held["held"]["flows"]] == ["s2"]
        assert held["steps"]["s2"]["state"] == "held"
        assert not Path("sent.txt").exists()

        await client.post(f"/runs/{run}/approve", 202, {"step": "s2"})

        assert (await client.until(run, "done"))["answer"] == "sent heyhey"
