"""Plans that wait for a person: what is agreed to runs, once, and nothing else does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.desks import Client, plan, step, workshop

SEND = plan(step("s1", "tools-shout", text="hey"), step("s2", "tools-send", text={"from": "s1"}), result="s2")
SHOUT = plan(step("s1", "tools-shout", text="hey"), result="s1")


@pytest.fixture
async def client(folder: Path) -> AsyncIterator[Client]:
    async with workshop(folder) as made:
        yield made


async def test_a_plan_without_effects_runs_at_once(client: Client) -> None:
    run = await client.start(SHOUT)

    found = await client.until(run, "done")

    assert (found["answer"], found["steps"]["s1"]["state"]) == ("HEY", "done")
    assert [each["state"] for each in found["proposals"]] == ["ran"]


async def test_a_plan_with_effects_waits_and_runs_when_it_is_agreed_to(client: Client) -> None:
    run = await client.start(SEND)
    held = await client.until(run, "held")
    assert held["held"]["step"] is None
    assert [each["state"] for each in held["proposals"]] == ["waits"]
    assert not Path("sent.txt").exists()

    await client.post(f"/runs/{run}/approve", 202)

    found = await client.until(run, "done")
    assert found["answer"] == "sent HEY"
    assert Path("sent.txt").read_text() == "HEY\n"


async def test_every_plan_waits_where_that_is_asked_also_after_a_refusal(client: Client) -> None:
    run = await client.start(SHOUT, plan(step("s1", "tools-shout", text="ho"), result="s1"), approve="always")
    await client.until(run, "held")

    await client.post(f"/runs/{run}/refuse", 202, {"reason": "Say ho instead."})

    held = await client.until(run, "held")
    assert [each["state"] for each in held["proposals"]] == ["refused", "waits"]
    refused, waiting = held["proposals"]
    assert (refused["by"], refused["findings"][0]["message"]) == ("person", "Say ho instead.")
    assert '"hey" → "ho"' in waiting["difference"]
    await client.post(f"/runs/{run}/approve", 202)
    assert (await client.until(run, "done"))["answer"] == "HO"


async def test_an_edited_plan_runs_in_place_of_the_one_that_waits(client: Client) -> None:
    run = await client.start(SEND)
    await client.until(run, "held")
    edited = {"version": 1, "goal": "", **plan(step("s1", "tools-send", text="softly"), result="s1")}

    await client.post(f"/runs/{run}/approve", 202, {"plan": edited})

    found = await client.until(run, "done")
    assert [each["state"] for each in found["proposals"]] == ["edited", "ran"]
    assert found["proposals"][1]["by"] == "person"
    assert list(found["steps"]) == ["s1"]
    assert Path("sent.txt").read_text() == "softly\n"


async def test_an_edited_plan_that_cannot_run_is_refused_and_the_run_still_waits(client: Client) -> None:
    run = await client.start(SEND)
    await client.until(run, "held")
    wrong = {"version": 1, "goal": "", **plan(step("s1", "tools-sing", text="softly"))}

    said = await client.post(f"/runs/{run}/approve", 422, {"plan": wrong})

    assert "tools-sing" in said["error"]["findings"][0]["message"]
    assert (await client.get(f"/runs/{run}"))["held"] is not None
    assert (await client.get(f"/runs/{run}"))["here"] is False


async def test_of_two_tabs_that_agree_at_once_one_is_told_no_and_nothing_happens_twice(client: Client) -> None:
    run = await client.start(SEND)
    await client.until(run, "held")

    both = await asyncio.gather(*(client.http.post(f"/api/runs/{run}/approve", json={}) for _ in range(5)))

    assert sorted(each.status_code for each in both) == [202, 409, 409, 409, 409]
    await client.until(run, "done")
    assert Path("sent.txt").read_text() == "HEY\n"


async def test_only_the_proposal_that_was_shown_is_agreed_to(client: Client) -> None:
    run = await client.start(SHOUT, SEND, approve="always")
    await client.until(run, "held")
    await client.post(f"/runs/{run}/refuse", 202, {"reason": "No.", "proposal": 1})
    await client.until(run, "held")

    said = await client.post(f"/runs/{run}/approve", 409, {"proposal": 1})

    assert "proposal 2" in said["error"]["message"]
    await client.post(f"/runs/{run}/approve", 202, {"proposal": 2})
    await client.until(run, "done")


async def test_what_is_not_held_cannot_be_agreed_to(client: Client) -> None:
    run = await client.start(SHOUT)
    await client.until(run, "done")

    assert "done" in (await client.post(f"/runs/{run}/approve", 409))["error"]["message"]
    assert "done" in (await client.post(f"/runs/{run}/refuse", 409, {"reason": "No."}))["error"]["message"]
    await client.post("/runs/nothing/approve", 404)


async def test_resuming_without_a_decision_leaves_the_plan_waiting(client: Client) -> None:
    run = await client.start(SEND)
    await client.until(run, "held")

    await client.post(f"/runs/{run}/resume", 202)

    await client.until(run, "held")
    assert not Path("sent.txt").exists()


async def test_a_plan_is_checked_while_it_is_edited(client: Client) -> None:
    run = await client.start(SEND)
    held = await client.until(run, "held")

    good = await client.post("/plans/check", 200, {"plan": held["plan"], "run": run})
    wrong = await client.post("/plans/check", 200, {"plan": {**held["plan"], "steps": 7}, "run": run})

    assert (good["findings"], good["text"]) == ([], held["text"])
    assert good["graph"] == held["graph"]
    assert "steps" in wrong["findings"][0]["message"]
    assert (wrong["text"], wrong["graph"]) == (None, None)
