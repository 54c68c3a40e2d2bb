"""`portico cancel`: what waits is given up, and what cannot be cancelled is told in a sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from portico_basics.sqlite.store import SqliteRunStore
from portico_cli.commands import cancel


@pytest.fixture(autouse=True)
def crew(configured: Path) -> None:
    """Configure a runner with workers."""
    configured.write_text(f'{configured.read_text()}[runner]\nuse = "crew"\n')


def shared() -> Any:
    """Return the queue of the commands that this process runs."""
    from portico_shelf.crew import SHARED

    return SHARED[0]


@contextmanager
def at_work_on(run: str) -> Iterator[None]:
    """Hold the lease of a run that has begun, as who runs it does."""
    store = SqliteRunStore()

    async def begin() -> None:
        lease = await store.acquire(run, owner="me:1:ab", seconds=60)
        await store.append(lease, [{"type": "pursuit", "version": 1, "goal": "q", "planner": "p", "at": "2026-01-01"}])

    asyncio.run(begin())
    try:
        yield
    finally:
        asyncio.run(store.aclose())


def test_a_run_that_waits_is_given_up_and_listed_as_cancelled(in_process: Any) -> None:
    name = in_process("submit", "Sum up").out.strip()
    done = in_process("cancel", name[16:24])
    assert (done.code, done.out, done.err) == (0, f"The run {name[16:24]} is cancelled.\n", "")
    told = in_process("cancel", name, "--json").json
    assert told == in_process("runs", name, "--json").json
    assert (told["run"], told["state"], told["goal"], told["attempts"]) == (name, "cancelled", "Sum up", 0)
    assert in_process("worker", "--until-empty").code == 0
    assert [run["state"] for run in in_process("runs", "--json").json["runs"]] == ["cancelled"]


def test_a_run_that_is_over_and_one_that_nobody_knows_are_mistakes(in_process: Any) -> None:
    name = in_process("submit", "Sum up").out.strip()
    in_process("worker", "--until-empty")
    done = in_process("cancel", name)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"Error: The run {name} is done: it neither waits for a worker nor is in one.\n"
    done = in_process("cancel", "nobody", "--json")
    assert (done.code, done.json["error"]["type"]) == (2, "Misused")
    assert "There is no run 'nobody'." in done.json["error"]["message"]


def test_a_runner_without_a_queue_has_nothing_to_cancel(in_process: Any, configured: Path) -> None:
    configured.write_text(configured.read_text().replace('"crew"', '"local"'))
    done = in_process("cancel", "last")
    assert done.code == 2
    assert done.err.startswith("Error: The runner 'local' has no workers. Set `use` under [runner]")


def test_a_run_that_another_process_carries_out_is_its_to_stop(in_process: Any) -> None:
    with at_work_on("mine"):
        done = in_process("cancel", "mine")
    assert done.code == 2, done.out
    assert "The run mine is in no worker: stop the process that runs it" in done.err


def test_a_run_that_ends_before_it_can_be_cancelled_is_told_as_that(
    in_process: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = in_process("submit", "Sum up").out.strip()
    entry = shared()._entries[name]

    async def too_late(names: Any) -> None:
        entry.status = replace(entry.status, state="failed", error="no such door")

    monkeypatch.setattr(shared(), "cancel", too_late)
    done = in_process("cancel", name)
    assert (done.code, done.out) == (1, "")
    assert done.err == f"Error: The run {name} ended before it could be cancelled: it is failed.\n"


def test_a_worker_that_does_not_stop_is_told(in_process: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancel, "_PATIENCE", 0.2)
    name = in_process("submit", "Sum up").out.strip()
    with at_work_on(name):
        done = in_process("cancel", name)
    assert (done.code, done.out) == (0, f"The run {name[16:24]} is cancelled.\n")
    assert done.err == (f"Its worker has not stopped yet; `portico runs {name[16:24]}` shows the run when it has.\n")
