"""Runs that stop: cancelled, failed, killed with their server; and how they continue, and are repeated."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.desks import PATIENCE, Client, another_server, command_line, eventually, plan, step, workshop
from tests.support.processes import killed_at_the_end

from portico.errors import PorticoError, StoreBusy
from portico_serve._runs.runs import Runs

WAITING = plan(step("s1", "tools-shout", text="hey"), step("s2", "tools-wait", text={"from": "s1"}), result="s2")
SEND = plan(step("s1", "tools-shout", text="hey"), step("s2", "tools-send", text={"from": "s1"}), result="s2")


@pytest.fixture
async def client(folder: Path) -> AsyncIterator[Client]:
    async with workshop(folder) as made:
        yield made


async def test_a_run_here_is_cancelled_and_resumed(client: Client) -> None:
    run = await client.start(WAITING)
    await eventually(Path("begun.txt").exists)

    both = await asyncio.gather(*(client.http.post(f"/api/runs/{run}/cancel", json={}) for _ in range(2)))
    assert {each.status_code for each in both} == {202}

    stopped = await client.get(f"/runs/{run}")
    assert (stopped["state"], stopped["here"], stopped["resumable"]) == ("interrupted", False, True)
    Path("on").touch()
    await client.post(f"/runs/{run}/resume", 202)
    assert (await client.until(run, "done"))["answer"] == "HEY"


async def test_there_is_nothing_to_cancel_where_no_process_is_at_work(client: Client) -> None:
    held = await client.start(SEND)
    await client.until(held, "held")

    said = await client.post(f"/runs/{held}/cancel", 409)

    assert "nothing to cancel" in said["error"]["message"]
    await client.post("/runs/nothing/cancel", 404)


async def test_a_step_with_effects_that_was_interrupted_waits_for_a_word(client: Client) -> None:
    Path("hold-after").touch()
    run = await client.start(SEND)
    await client.until(run, "held")
    await client.post(f"/runs/{run}/approve", 202)
    await eventually(Path("sent.txt").exists)
    await client.post(f"/runs/{run}/cancel", 202)

    doubtful = await client.get(f"/runs/{run}")

    assert (doubtful["state"], doubtful["steps"]["s2"]["state"]) == ("uncertain", "uncertain")
    assert (doubtful["held"]["step"], doubtful["held"]["uncertain"]) == ("s2", True)
    assert doubtful["uncertain"] == [{"id": "s2", "function": "tools-send", "arguments": {"text": "HEY"}}]
    await client.post(f"/runs/{run}/approve", 409, {"step": "s2"})
    await client.post(f"/runs/{run}/resume", 409, {"results": {"s9": "x"}})
    await client.post(f"/runs/{run}/resume", 202, {"results": {"s2": "it was sent"}})
    assert (await client.until(run, "done"))["answer"] == "it was sent"
    assert Path("sent.txt").read_text() == "HEY\n"


async def test_a_failed_step_is_tried_again(client: Client) -> None:
    first = await client.start(
        plan(step("s1", "tools-shout", text="a"), step("s2", "tools-fetch", text="b"), result="s2")
    )
    await client.until(first, "done")
    Path("broken").touch()
    run = (await client.post(f"/runs/{first}/replay", 201))["run"]
    failed = await client.until(run, "failed")
    assert (failed["steps"]["s2"]["state"], failed["resumable"]) == ("failed", True)
    assert "the line is cut" in (await client.get(f"/runs/{run}/steps/s2"))["error"]
    Path("broken").unlink()

    await client.post(f"/runs/{run}/resume", 202, {"retry": ["s2"]})

    assert (await client.until(run, "done"))["answer"] == "b"


async def test_a_run_with_an_answer_is_repeated_and_asks_again_before_effects(client: Client) -> None:
    run = await client.start(SEND)
    await client.until(run, "held")
    await client.post(f"/runs/{run}/replay", 409)
    await client.post(f"/runs/{run}/approve", 202)
    await client.until(run, "done")

    again = (await client.post(f"/runs/{run}/replay", 201))["run"]

    held = await client.until(again, "held")
    assert [each["state"] for each in held["proposals"]] == ["waits"]
    await client.post(f"/runs/{again}/refuse", 409, {"reason": "No."})
    await client.post(f"/runs/{again}/approve", 202)
    assert (await client.until(again, "done"))["answer"] == "sent HEY"
    assert Path("sent.txt").read_text() == "HEY\n" * 2


async def test_what_the_planner_raises_is_why_the_run_failed(client: Client) -> None:
    run = await client.start(crash=True)

    found = await client.until(run, "failed")

    assert "fell over" in found["reason"]
    assert [each["state"] for each in (await client.get("/runs", state="failed"))["runs"]] == ["failed"]


@pytest.mark.parametrize("stop", [lambda runs, run: runs.cancel(run), lambda runs, run: runs.aclose()])
async def test_a_run_that_is_stopped_before_it_begins_answers_and_can_be_continued(
    client: Client, stop: Callable[[Runs, str], Awaitable[None]]
) -> None:
    run = await client.start(SEND)
    await client.until(run, "held")
    approving = asyncio.create_task(client.desk.runs.approve(run))
    before = asyncio.all_tasks()
    while not asyncio.all_tasks() - before:
        await asyncio.sleep(0)

    with suppress(PorticoError):
        await stop(client.desk.runs, run)

    with pytest.raises(StoreBusy):
        await asyncio.wait_for(approving, PATIENCE)
    await client.post(f"/runs/{run}/approve", 202)
    assert (await client.until(run, "done"))["answer"] == "sent HEY"


@pytest.mark.process
async def test_a_server_that_is_killed_loses_nothing_and_another_one_continues(folder: Path) -> None:
    inner = [step("s1", "tools-send", text="once"), step("s2", "tools-wait", text={"from": "s1"}, after=["s1"])]
    goal = json.dumps({"plans": [plan(*inner, result="s2")]})
    async with another_server(folder) as (http, process):
        run = (await http.post("/api/runs", json={"goal": goal})).json()["run"]
        async with asyncio.timeout(60):
            while (await http.get(f"/api/runs/{run}")).json()["state"] != "held":
                await asyncio.sleep(0.05)
        process.kill()
        process.wait()
    async with another_server(folder) as (http, process):
        found = (await http.get(f"/api/runs/{run}")).json()
        assert (found["state"], found["proposals"][0]["state"]) == ("held", "waits")
        assert (await http.post(f"/api/runs/{run}/approve", json={})).status_code == 202
        await eventually(Path("begun.txt").exists)
        process.kill()
        process.wait()
    Path("on").touch()
    async with workshop(folder) as client:
        assert (await client.get(f"/runs/{run}"))["state"] == "interrupted"
        await client.post(f"/runs/{run}/resume", 202)
        assert (await client.until(run, "done"))["answer"] == "sent once"
    assert Path("sent.txt").read_text() == "once\n"


@pytest.mark.process
async def test_the_command_line_and_the_server_share_the_runs_and_their_decisions(client: Client) -> None:
    run = await client.start(SEND)
    await client.until(run, "held")
    process = command_line(Path.cwd(), "resume", run, "--yes", "--json")
    with killed_at_the_end(process):
        out, _ = process.communicate(timeout=60)
    assert json.loads(out)["answer"] == "sent HEY", out
    assert (await client.get(f"/runs/{run}"))["state"] == "done"
