"""The journal that a kernel has by default, how to do without, and what the loop is told by `[planner]`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import portico_host
from portico.errors import ConfigurationError, PluginNotInstalled, StoreError
from portico.ports import Runner, RunStore


def configured(**tables: Any) -> portico_host.Application:
    return portico_host.load(overrides=tables)


async def test_a_kernel_keeps_a_journal_without_being_told_to(tmp_path: Path) -> None:
    async with configured().kernel() as kernel:
        assert kernel.run_store is not None
        assert kernel.run_store.name == "sqlite"


async def test_none_switches_the_journal_off() -> None:
    application = configured(runs={"use": "none"})
    async with application.kernel() as kernel:
        assert kernel.run_store is None
        with pytest.raises(ConfigurationError, match=r'runs\.use is "none", so there is no run store'):
            kernel.service(RunStore)
    assert application.check() == []
    (use,) = [setting for setting in application.settings() if setting.key.startswith("runs")]
    assert (use.key, use.value) == ("runs.use", "none")
    assert "none" in application.schema()["properties"]["runs"]["properties"]["use"]["anyOf"][0]["enum"]


def test_none_is_no_choice_where_a_kernel_needs_one() -> None:
    with pytest.raises(PluginNotInstalled, match="none"):
        configured(planner={"use": "none"}).services().prepare_all()
    assert "none" not in portico_host.load().schema()["properties"]["planner"]["properties"]["use"]["anyOf"][0]["enum"]


def test_none_is_a_choice_of_every_port_that_may_be_missing() -> None:
    for table in ("runs", "runner", "plans", "pages", "schemas"):
        configured(**{table: {"use": "none"}}).services().prepare_all()
    assert configured(runner={"use": "none"}).services().names(Runner) == ()


@pytest.fixture
def file_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the user's state folder one that cannot be made, also for root."""
    (tmp_path / "state").write_text("a file where a folder is wanted")
    monkeypatch.setenv("XDG_STATE_HOME", os.fspath(tmp_path / "state"))
    return tmp_path / "state"


async def test_a_journal_that_was_chosen_must_be_written(file_in_the_way: Path) -> None:
    async with configured(runs={"use": "sqlite"}).kernel() as kernel:
        assert kernel.run_store is not None
        with pytest.raises(StoreError, match="cannot be opened"):
            await kernel.run_store.acquire("r1", owner="me", seconds=5)


def test_what_stands_beside_use_of_the_planner_is_the_loops() -> None:
    planner = {"max_steps": 3, "step_seconds": 2.5, "step_attempts": 4, "reuse": True}
    application = configured(planner=planner)
    budget = application.budget
    assert (budget.steps, budget.step_seconds, budget.step_attempts) == (3, 2.5, 4)
    assert application.configuration.budget.reuse
    plain = configured()
    assert (plain.budget.step_seconds, plain.budget.step_attempts, plain.configuration.budget.reuse) == (None, 1, False)


async def test_plans_are_not_used_again_without_a_store_of_them() -> None:
    with pytest.raises(ConfigurationError, match=r"planner\.reuse needs a store of plans: set `use` in \[plans\]"):
        async with configured(planner={"reuse": True}).kernel():
            pass


@pytest.mark.parametrize("key", ["step_seconds", "step_attempts"])
def test_a_step_needs_some_time_and_an_attempt(key: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"planner\.{key}: '{key}' must be >=? [01]"):
        configured(planner={key: 0})


@pytest.mark.parametrize("key", ["step_seconds", "max_seconds"])
def test_without_end_is_said_by_leaving_it_out(key: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"planner\.{key}: '{key}' must be <= 31536000"):
        configured(planner={key: float("inf")})
    with pytest.raises(ConfigurationError, match=r"planner\.max_cost: 'max_cost' must be < inf"):
        configured(planner={"max_cost": float("inf")})


PLANS = """
    from portico.plugins import Registration

    def portico_plan_stores():
        return [Registration(name="shelf", factory="portico_shelved._plugin:Shelf", summary="Plans on a shelf.")]

    class Shelf:
        name = "shelf"
        def __init__(self, settings, services): ...
        async def get(self, goal, catalogue): ...
        async def put(self, saved): ...
        async def remove(self, goal, catalogue): ...
        async def plans(self): ...
"""


async def test_a_kernel_uses_plans_again_where_the_configuration_says_so(site: Any) -> None:
    site.install("portico-shelved", PLANS)
    async with configured(planner={"reuse": True}, plans={"use": "shelf"}).kernel() as kernel:
        assert kernel.reuse
    async with configured().kernel() as kernel:
        assert not kernel.reuse
