"""What every PlanStore must do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import pytest
from hypothesis import settings

from portico.errors import StoreError
from portico.ports import PlanStore, SavedPlan
from portico_testkit._failing import fails_as
from portico_testkit._odd import ODD_NAMES
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.tasks import give_up, no_tasks_but, still_answers

__all__ = ["PlanStoreKit"]


_GOALS = sorted({name.strip() for name in ODD_NAMES})
"""A goal is known without the blanks around it."""


class PlanStoreKit:
    """Subclass it and give a fixture named ``plan_store``; a new, empty store for each test::

        class TestAcmePlans(PlanStoreKit):
            @pytest.fixture
            async def plan_store(self, tmp_path):
                store = AcmePlans(AcmeSettings(path=tmp_path), None)
                yield store
                await store.aclose()

            async def another(self, plan_store):
                return AcmePlans(plan_store.settings, None)

    ``another`` is a second store on the same plans, while the first is in use; one that keeps plans in memory only
    gives itself. A fixture ``failing_store`` gives one that cannot write: its folder is a file, or nobody is there.
    ``effort`` is how hard random plans are tried.
    """

    effort: ClassVar[settings] = settings(max_examples=25)

    async def another(self, plan_store: PlanStore) -> PlanStore:
        """Return another store on the plans of ``plan_store``."""
        return plan_store

    @pytest.fixture
    def failing_store(self) -> PlanStore | None:
        """Nothing, for a store that cannot fail."""
        return None

    @pytest.mark.asyncio
    async def test_it_has_a_name(self, plan_store: PlanStore) -> None:
        assert isinstance(plan_store.name, str)
        assert plan_store.name.strip(), "the name is blank"

    @pytest.mark.asyncio
    async def test_a_plan_comes_back_as_it_was(self, plan_store: PlanStore) -> None:
        saved = _saved(planner="structured")
        await plan_store.put(saved)
        for store in (plan_store, await self.another(plan_store)):
            _same(await store.get("Shout", "c1"), saved)
            _same((await store.plans())[0], saved)

    @pytest.mark.asyncio
    async def test_goal_and_catalogue_are_the_key(self, plan_store: PlanStore) -> None:
        keys = [(goal, catalogue) for goal in ("Shout", "Whisper") for catalogue in ("c1", "c2")]
        for goal, catalogue in keys:
            await plan_store.put(_saved(goal, catalogue, planner=f"{goal} {catalogue}"))
        for goal, catalogue in keys:
            found = await plan_store.get(goal, catalogue)
            assert found is not None, f"there is nothing for {goal} and {catalogue}"
            assert found.planner == f"{goal} {catalogue}", "the plan of another key came"
        assert await plan_store.get("Shout", "c3") is None
        assert await plan_store.get("Sing", "c1") is None
        assert len(await plan_store.plans()) == len(keys)

    @pytest.mark.asyncio
    async def test_saving_again_replaces(self, plan_store: PlanStore) -> None:
        await plan_store.put(_saved(planner="first", at=2))
        await plan_store.put(_saved(planner="second", at=1))
        found = await plan_store.get("Shout", "c1")
        assert found is not None
        assert found.planner == "second"
        assert len(await plan_store.plans()) == 1, "the plan that was replaced is there still"

    @pytest.mark.asyncio
    async def test_a_plan_that_was_removed_is_gone(self, plan_store: PlanStore) -> None:
        await plan_store.put(_saved("Shout"))
        await plan_store.put(_saved("Whisper"))
        assert await plan_store.remove("Shout", "c1") is True
        assert await plan_store.remove("Shout", "c1") is False
        assert await plan_store.get("Shout", "c1") is None
        assert [saved.goal for saved in await plan_store.plans()] == ["Whisper"]

    @pytest.mark.asyncio
    async def test_the_newest_come_first(self, plan_store: PlanStore) -> None:
        for minute in (3, 1, 5, 2, 4):
            await plan_store.put(_saved(f"goal {minute}", at=minute))
        early = replace(_saved("goal 0"), saved_at="2026-01-01T02:00:30+02:00")
        await plan_store.put(early)
        assert [saved.goal[-1] for saved in await plan_store.plans()] == ["5", "4", "3", "2", "1", "0"]

    @pytest.mark.asyncio
    async def test_odd_goals_are_kept_apart(self, plan_store: PlanStore) -> None:
        for number, goal in enumerate(_GOALS):
            await plan_store.put(_saved(goal, planner=str(number)))
        other = await self.another(plan_store)
        for number, goal in enumerate(_GOALS):
            found = await other.get(goal, "c1")
            assert found is not None, f"there is nothing for {goal[:40]!r}"
            assert (found.goal, found.planner) == (goal.strip(), str(number)), f"{goal[:40]!r} found another's plan"
        assert len(await plan_store.plans()) == len(_GOALS)
        for goal in _GOALS:
            assert await plan_store.remove(goal, "c1") is True, f"{goal[:40]!r} cannot be removed"
        assert await plan_store.plans() == []

    @pytest.mark.asyncio
    async def test_what_is_not_json_is_refused_and_nothing_is_lost(self, plan_store: PlanStore) -> None:
        saved = _saved()
        await plan_store.put(saved)
        for value in (float("nan"), {1, 2}, b"bytes", object()):
            with pytest.raises(StoreError) as raised:
                await plan_store.put(_saved(plan={"version": 1, "goal": "g", "steps": [], "notes": value}))
            assert "Shout" in str(raised.value), f"the message does not name the goal: {raised.value}"
            _same(await plan_store.get("Shout", "c1"), saved)
        with pytest.raises(StoreError):
            await plan_store.put(replace(saved, saved_at="yesterday"))
        _same(await plan_store.get("Shout", "c1"), saved)

    @pytest.mark.asyncio
    async def test_a_cancelled_call_leaves_it_usable(self, plan_store: PlanStore) -> None:
        tasks = asyncio.all_tasks()
        for moments in range(5):
            await give_up(partial(plan_store.put, _saved(f"goal {moments}")), turns=moments)
            await give_up(partial(plan_store.get, "Shout", "c1"), turns=moments)
        await no_tasks_but(tasks)
        await still_answers(plan_store.put(_saved()))
        _same(await still_answers(plan_store.get("Shout", "c1")), _saved())

    @pytest.mark.asyncio
    async def test_it_leaves_the_event_loop_free(self, plan_store: PlanStore) -> None:

        async def keep_and_read(number: int) -> None:
            await plan_store.put(_saved(f"goal {number}", plan=_long(number)))
            await plan_store.get(f"goal {number}", "c1")
            await plan_store.plans()
            await plan_store.remove(f"goal {number}", "c1")

        await leaves_the_event_loop_free(keep_and_read)

    @pytest.mark.asyncio
    async def test_what_cannot_be_kept_is_a_store_error(self, failing_store: PlanStore | None) -> None:
        if failing_store is None:
            pytest.skip("there is no fixture `failing_store`: a store that cannot fail")
        await fails_as(StoreError, failing_store.put(_saved()), "put")
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "get": lambda: failing_store.get("Shout", "c1"),
            "plans": failing_store.plans,
            "remove": lambda: failing_store.remove("Shout", "c1"),
        }
        for what, call in calls.items():
            await fails_as(StoreError, call(), what, must=False)


def _saved(
    goal: str = "Shout", catalogue: str = "c1", *, planner: str = "", plan: Any = None, at: int = 0
) -> SavedPlan:
    shown = plan if plan is not None else {"version": 1, "goal": "Shout", "steps": [], "result": {"value": "hey"}}
    return SavedPlan(goal, catalogue, shown, f"2026-01-01T00:{at:02}:00+00:00", planner)


def _long(number: int) -> dict[str, Any]:
    return {"version": 1, "goal": "Shout", "steps": [], "notes": [number] * 3_000}


def _same(found: SavedPlan | None, saved: SavedPlan) -> None:
    assert found is not None, f"the plan for {saved.goal!r} is not there"
    assert found == replace(saved, plan=found.plan)
    assert dict(found.plan) == dict(saved.plan)
