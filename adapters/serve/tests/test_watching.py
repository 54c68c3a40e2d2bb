"""Runs that are watched: what changes arrives, in order and bounded, and nothing is left when the last one leaves."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.desks import Client, command_line, eventually, plan, step, workshop
from tests.support.processes import killed_at_the_end

WAITING = plan(step("s1", "tools-shout", text="hey"), step("s2", "tools-wait", text={"from": "s1"}), result="s2")


@pytest.fixture
async def client(folder: Path) -> AsyncIterator[Client]:
    async with workshop(folder) as made:
        yield made


async def follow(
    events: AsyncIterator[tuple[str, Any]], *states: str, shown: dict[str, Any] | None = None
) -> list[tuple[str, dict[str, Any]]]:
    """Return the events up to one after which the run is in a state, each with the whole run as a page has it then."""
    seen: list[tuple[str, dict[str, Any]]] = []
    shown = shown or {}
    async for event, data in events:
        if event == "snapshot":
            shown = data
        elif event == "steps":
            shown = {**shown, **data, "steps": {**shown["steps"], **data["steps"]}}
        elif event == "text":
            shown = {**shown, "writing": shown["writing"] + data["text"]}
        seen.append((event, shown))
        if shown["state"] in states and not shown["here"]:
            return seen
    raise AssertionError(f"the stream ended after {seen}")


async def test_a_page_that_applies_the_changes_has_what_a_new_page_gets(client: Client) -> None:
    run = await client.start(WAITING)
    async with client.events(f"/runs/{run}") as events:
        first, shown = await anext(events)
        assert first == "snapshot"
        await eventually(Path("begun.txt").exists)
        Path("on").touch()

        seen = await follow(events, "done", shown=shown)

    assert seen[-1][1] == await client.get(f"/runs/{run}")
    assert seen[-1][1]["answer"] == "HEY"


async def test_a_step_lights_up_without_a_new_snapshot(client: Client) -> None:
    slow = [step(f"s{n}", "tools-sleep", after=[f"s{n - 1}"] if n else (), milliseconds=200) for n in range(4)]
    run = await client.start(plan(*slow))
    async with client.events(f"/runs/{run}") as events:
        seen = await follow(events, "done", "failed")

    changes = [shown["steps"] for event, shown in seen if event == "steps"]
    assert len(changes) >= 3
    assert {each["s2"]["state"] for each in changes} == {"waiting", "running", "done"}


async def test_the_words_of_an_answer_arrive_as_they_come(client: Client) -> None:
    run = await client.start(answer="All is well in the house.", pause=0.05)
    async with client.events(f"/runs/{run}") as events:
        seen = await follow(events, "done")

    assert "text" in {event for event, _ in seen}
    assert any(shown["writing"].startswith("All is") for _, shown in seen)
    assert seen[-1][1]["answer"] == "All is well in the house."


async def test_every_watcher_of_a_run_sees_it_end_and_nothing_is_left_of_them(client: Client) -> None:
    run = await client.start(WAITING)
    await eventually(Path("begun.txt").exists)
    before = len(asyncio.all_tasks())

    async def watch() -> dict[str, Any]:
        async with client.events(f"/runs/{run}") as events:
            return (await follow(events, "done"))[-1][1]

    watching = [asyncio.create_task(watch()) for _ in range(20)]
    await asyncio.sleep(0.3)
    for gone in watching[:10]:
        gone.cancel()
    Path("on").touch()
    ends = await asyncio.gather(*watching, return_exceptions=True)

    assert {each["answer"] for each in ends[10:] if isinstance(each, dict)} == {"HEY"}
    await eventually(lambda: len(asyncio.all_tasks()) <= before)


async def test_one_who_does_not_read_gets_a_snapshot_in_place_of_what_was_missed(client: Client) -> None:
    words = " ".join(["word"] * 1_000)
    run = await client.start(answer=words, plans=[])
    async with client.desk.runs.watch(run) as slow:
        await client.until(run, "done")
        pieces = await slow.take(1)

    assert pieces is not None
    assert [event for event, _ in pieces] == ["snapshot"]


async def test_a_run_that_is_not_there_is_not_watched(client: Client) -> None:
    said = await client.get("/runs/nothing/events", 404)
    assert said["error"]["kind"] == "RunNotFound"


@pytest.mark.process
async def test_a_run_of_another_process_is_seen_live_and_taken_over_when_it_is_killed(client: Client) -> None:
    asked = '{"plans": [%s]}'
    asked %= str(WAITING).replace("'", '"')
    process = command_line(Path.cwd(), "ask", asked, "--yes", "--json")
    with killed_at_the_end(process):
        await eventually(Path("begun.txt").exists)
        [found] = (await client.get("/runs"))["runs"]
        run = found["run"]
        async with client.events(f"/runs/{run}") as events:
            _, first = await anext(events)
            assert (first["state"], first["here"]) == ("running", False)
            assert first["steps"]["s2"]["state"] == "running"
            assert "not begun here" in (await client.post(f"/runs/{run}/cancel", 409))["error"]["message"]

            process.send_signal(signal.SIGKILL)

            seen = await follow(events, "interrupted")
            assert seen[-1][1]["steps"]["s2"]["state"] == "waiting"
            Path("on").touch()
            await client.post(f"/runs/{run}/resume", 202)
            ended = (await follow(events, "done"))[-1][1]
    assert (ended["answer"], ended["steps"]["s1"]["state"]) == ("HEY", "done")
    assert Path("begun.txt").read_text() == "HEY\n" * 2
