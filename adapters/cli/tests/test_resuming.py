"""What a run was begun with is known when it is gone on with."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from portico_basics.config import SqliteSettings
from portico_basics.sqlite.store import SqliteRunStore
from portico_cli.runs import list_runs
from portico_cli.show.runs import run_to_json

PLAN: dict[str, Any] = {
    "version": 1,
    "goal": "Look it up",
    "steps": [{"id": "s1", "function": "bare-Search", "arguments": {"query": {"value": "retry"}}}],
    "result": {"from": "s1"},
}


@pytest.fixture
def plan(folder: Path, configured: Path) -> Path:
    """Write a plan with a function that there is only where the source `bare` is named."""
    file = folder / "plan.json"
    file.write_text(json.dumps(PLAN))
    return file


def test_the_sources_of_a_run_need_not_be_named_again(in_process: Any, plan: Path) -> None:
    assert in_process("run", "plan.json").code == 1, "without the source its function is not there"
    assert in_process("run", "plan.json", "--source", "bare", "--approve").code == 4
    done = in_process("resume", "last")
    assert done.code == 0, done.err
    assert "Retry is set in settings.py." in done.out


def test_sources_that_are_named_take_the_place_of_those_of_the_run(in_process: Any, plan: Path) -> None:
    assert in_process("run", "plan.json", "--source", "bare", "--approve").code == 4
    done = in_process("resume", "last", "--source", "shelf")
    assert done.code == 1
    assert "bare-Search" in done.err


def test_the_planner_that_asks_is_that_of_the_run_and_so_are_its_sources(
    in_process: Any, plan: Path, configured: Path
) -> None:
    configured.write_text(configured.read_text() + '[planner.scripted]\nsearch = "bare-Search"\n')
    assert in_process("ask", "How?", "--source", "bare", "--approve").code == 4
    configured.write_text(configured.read_text().replace('use = "scripted"', 'use = "retrieval"'))
    done = in_process("resume", "last", "--json")
    assert done.code == 0, done.out
    assert (done.json["planner"], done.json["steps"][0]["function"]) == ("scripted", "bare-Search")


def test_a_folder_that_is_gone_is_told_before_anything_runs(in_process: Any, plan: Path, folder: Path) -> None:
    docs = folder / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# Retry\n")
    assert in_process("run", "plan.json", "--source", "bare", "--docs", "docs", "--approve").code == 4
    docs.rename(folder / "elsewhere")
    done = in_process("resume", "last")
    assert done.code == 2
    assert "--docs" in done.err
    assert str(docs) in done.err
    assert in_process("resume", "last", "--docs", "elsewhere").code == 0


def test_an_origin_of_another_application_says_nothing_and_is_no_reason_to_stop(in_process: Any, plan: Path) -> None:

    from portico_cli.runs import Origin

    for origin in ({}, {"docs": "x", "sources": [1, None], "chat": 3, "folder": []}, {"theirs": True}):
        assert Origin.from_json(origin) == Origin()


def test_asking_needs_no_journal(in_process: Any, configured: Path) -> None:
    configured.write_text(configured.read_text() + '[runs]\nuse = "none"\n')
    done = in_process("ask", "q")
    assert (done.code, done.err) == (0, "a library chatters\n")
    for command in (("runs",), ("resume", "last")):
        done = in_process(*command)
        assert done.code == 2
        assert "No journal is kept." in done.err


def test_a_run_that_was_interrupted_in_a_step_with_effects_is_listed_as_uncertain(
    portico: Any, in_process: Any, configured: Path, folder: Path
) -> None:
    configured.write_text(configured.read_text() + '[functions.tools]\nuse = "tools"\n')
    steps = [{"id": "s1", "function": "tools-stay", "arguments": {"text": {"value": "hey"}}}]
    (folder / "plan.json").write_text(json.dumps({**PLAN, "steps": steps}))
    assert portico("run", "plan.json").code == 130
    listed = in_process("runs", "last")
    assert "uncertain" in listed.out
    assert "says what to do about s1" in listed.out
    assert in_process("resume", "last").code == 4


@pytest.mark.parametrize("held", [False, True])
def test_a_list_of_runs_says_of_each_what_the_run_alone_says_wherever_it_stands(
    in_process: Any, configured: Path, folder: Path, tmp_path: Path, *, held: bool
) -> None:
    configured.write_text(configured.read_text() + '[functions.tools]\nuse = "tools"\n')
    send = {"id": "s1", "function": "tools-send", "arguments": {"text": {"from": "input", "path": "$.text"}}}
    inner = {**PLAN, "steps": [send]}
    outer = {**PLAN, "steps": [{"id": "s1", "function": inner, "arguments": send["arguments"]}]}
    loop: dict[str, Any] = {"id": "s1", "each": {"items": {"value": ["a", "b"]}}}
    steps = [
        {**loop, "function": "tools-shout", "arguments": {"text": {"from": "item"}}},
        {**loop, "id": "s2", "function": outer, "arguments": {"text": {"from": "item"}}},
    ]
    (folder / "plan.json").write_text(json.dumps({**PLAN, "version": 2, "steps": steps}))
    assert in_process("run", "plan.json").code == 0

    async def compare() -> None:
        journal = SqliteRunStore()
        entries = await journal.read((await journal.runs())[-1])
        await journal.aclose()
        assert len(entries) > 20
        store = SqliteRunStore(SqliteSettings(path=tmp_path / "runs.sqlite3"))
        for length in range(1, len(entries) + 1):
            lease = await store.acquire(f"r{length}", owner="me", seconds=60)
            await store.append(lease, entries[:length])
            if not held:
                await store.release(lease)
            [listed] = (await list_runs(store, None, 1)).runs
            [alone] = (await list_runs(store, None, 1, f"r{length}")).runs
            assert run_to_json(listed, details=False) == run_to_json(alone, details=False)
            assert len(listed.entries) <= len(alone.entries)
        assert len(listed.entries) < 10, "the list reads no steps inside steps"
        await store.aclose()

    asyncio.run(compare())
