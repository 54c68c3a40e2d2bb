"""`portico serve` as a service of another Portico: its OpenAPI document becomes functions of a kernel."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.desks import PATIENCE, enter_workshop, plan, step
from tests.support.guarded import TOKEN, Served, guarded

import portico_host
from portico import Kernel

GOAL = json.dumps({"plans": [plan(step("s1", "tools-send", text="hey"), result="s1")]})
CONFIGURATION = """
[functions.serve]
use = "openapi"
document = "openapi.json"
exclude = ["GET /**/events"]
[functions.serve.credentials]
token = { env = "THE_TOKEN" }
"""


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    """Serve a workshop."""
    enter_workshop(tmp_path, monkeypatch)
    monkeypatch.setenv("THE_TOKEN", TOKEN)
    async with guarded(tmp_path) as made:
        yield made


@pytest.fixture
async def kernel(served: Served, tmp_path: Path) -> AsyncIterator[Kernel]:
    """Open the kernel of another application, which has the document of the server."""
    folder = tmp_path / "other"
    folder.mkdir()
    async with served.program() as http:
        (folder / "openapi.json").write_bytes((await http.get("/api/openapi.json")).content)
    (folder / "portico.toml").write_text(CONFIGURATION)
    async with portico_host.load(folder / "portico.toml").kernel([]) as made:
        yield made


async def test_no_operation_is_lost(kernel: Kernel) -> None:
    functions = [function.name for function in kernel.plugins["serve"]]

    assert {"list_runs", "start_run", "approve_run", "describe_step", "create_chat_completion"} <= set(functions)
    assert len(functions) == 25


async def test_runs_are_begun_agreed_to_and_listed_by_functions(served: Served, kernel: Kernel) -> None:
    async def call(name: str, **arguments: Any) -> Any:
        return await kernel.invoke_json(f"serve-{name}", arguments)

    run = (await call("start_run", goal=GOAL))["run"]

    assert [each["run"] for each in (await call("list_runs"))["runs"]] == [run]
    async with asyncio.timeout(PATIENCE):
        while (await call("describe_run", run=run))["state"] != "held":
            await asyncio.sleep(0.02)
    assert (await call("list_runs", state="held", limit=1))["runs"][0]["run"] == run
    await call("approve_run", run=run)
    async with asyncio.timeout(PATIENCE):
        while (found := await call("describe_run", run=run))["state"] != "done":
            await asyncio.sleep(0.02)
    assert found["answer"] == "sent hey"
    assert (await call("describe_step", run=run, id="s1"))["result"] == "sent hey"


async def test_what_begins_or_changes_something_has_effects_and_looking_has_none(kernel: Kernel) -> None:
    functions = kernel.plugins["serve"]

    assert functions["start_run"].effects
    assert functions["approve_run"].effects
    assert not functions["list_runs"].effects


async def test_a_chat_completion_is_a_function_too(kernel: Kernel) -> None:
    asked = {"model": "portico-agent", "messages": [{"role": "user", "content": "Hello"}]}
    reply = await kernel.invoke_json("serve-create_chat_completion", asked)

    assert reply["choices"][0]["message"]["content"] == "You said: Hello"
