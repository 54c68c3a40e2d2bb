"""Values that not every program can read: they are shown, and break neither a page nor a stream."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.desks import Client, plan, step, workshop
from tests.support.guarded import Served

HALF = "\ud800"


@pytest.fixture
async def client(folder: Path) -> AsyncIterator[Client]:
    async with workshop(folder) as made:
        yield made


async def test_a_result_with_half_of_a_character_is_shown(client: Client) -> None:
    run = await client.start(plan(step("s1", "tools-shout", text=HALF), result="s1"))

    assert (await client.until(run, "done"))["answer"] == HALF

    assert (await client.get(f"/runs/{run}/steps/s1"))["result"] == HALF
    async with client.events(f"/runs/{run}") as events:
        assert (await anext(events))[1]["answer"] == HALF


async def test_half_of_a_character_is_shown_in_a_page(served: Served) -> None:
    goal = json.dumps({"plans": [plan(step("s1", "tools-shout", text=HALF), result="s1")]})
    async with served.browser() as browser:
        run = (await browser.post("/api/runs", json={"goal": goal})).json()["run"]
        await Client(browser, served.desk).until(run, "done")  # type: ignore[arg-type]

        assert (await browser.get(f"/runs/{run}")).status_code == 200


async def test_a_plan_with_half_of_a_character_in_a_name_is_checked(client: Client) -> None:
    body = json.dumps({"plan": {"version": 2, "goal": "", **plan(step(HALF, HALF))}})

    found = await client.http.post("/api/plans/check", content=body)

    assert found.json()["findings"]


@pytest.mark.parametrize("arguments", ['{"text": "a", "times": NaN}', '{"text": "\\ud800", "times": 1e999}'])
async def test_a_conversation_stays_readable_after_arguments_that_are_no_json(client: Client, arguments: str) -> None:
    chat = (await client.post("/chats", 201))["chat"]
    async with client.events(f"/chats/{chat}") as events:
        await client.post(f"/chats/{chat}/messages", 202, {"text": f"call tools-repeat {arguments}"})
        async for event, data in events:
            if event == "message" and data["role"] == "assistant":
                break

    assert data["tools"][0]["arguments"] == arguments
    assert (await client.get(f"/chats/{chat}"))["failed"] is None


@pytest.mark.parametrize("path", ["/api/runs?limit=1" + "0" * 5_000, "/api/runs/x/passages/" + "1" * 5_000])
async def test_a_very_long_number_is_refused(served: Served, path: str) -> None:
    async with served.program() as program:
        assert (await program.get(path)).status_code in (404, 422)

    assert served.reported == []
