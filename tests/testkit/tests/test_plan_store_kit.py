"""The PlanStore kit passes a correct store and catches broken ones."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import settings

from portico_testkit.fakes.plan_store import MemoryPlanStore
from portico_testkit.kit_failures import kit_failures
from portico_testkit.plan_store import PlanStoreKit


class TestMemoryPlanStore(PlanStoreKit):
    @pytest.fixture
    def plan_store(self) -> MemoryPlanStore:
        return MemoryPlanStore()


class Broken(MemoryPlanStore):
    """Does right what a variant does not do wrong."""


class Nameless(Broken):
    name = " "


class RaisesForNothing(Broken):
    async def get(self, goal, catalogue):
        found = await super().get(goal, catalogue)
        if found is None:
            raise KeyError(goal)
        return found


class ForgetsThePlanner(Broken):
    async def get(self, goal, catalogue):
        found = await super().get(goal, catalogue)
        return found and replace(found, planner="")


class IgnoresTheCatalogue(Broken):
    async def put(self, saved):
        await super().put(replace(saved, catalogue="c1"))

    async def get(self, goal, catalogue):
        return await super().get(goal, "c1")


class KeepsTheFirst(Broken):
    async def put(self, saved):
        if await self.get(saved.goal, saved.catalogue) is None:
            await super().put(saved)


class KeepsBoth(Broken):
    def __init__(self):
        super().__init__()
        self.older = []

    async def put(self, saved):
        found = await self.get(saved.goal, saved.catalogue)
        self.older += [found] if found else []
        await super().put(saved)

    async def plans(self):
        return [*await super().plans(), *self.older]


class RemovesNothing(Broken):
    async def remove(self, goal, catalogue):
        return await self.get(goal, catalogue) is not None


class RemovesEverything(Broken):
    async def remove(self, goal, catalogue):
        found = await super().remove(goal, catalogue)
        if found:
            self._plans.clear()
        return found


class SaysItWasThere(Broken):
    async def remove(self, goal, catalogue):
        await super().remove(goal, catalogue)
        return True


class OldestFirst(Broken):
    async def plans(self):
        return (await super().plans())[::-1]


class ComparesTimesAsTexts(Broken):
    async def plans(self):
        return sorted(await super().plans(), key=lambda saved: saved.saved_at, reverse=True)


class WhiteSpaceCounts(Broken):
    async def get(self, goal, catalogue):
        return await super().get(goal, catalogue) if goal == goal.strip() else None


class CaseDoesNotCount(Broken):
    async def put(self, saved):
        await super().put(replace(saved, goal=saved.goal.lower()))

    async def get(self, goal, catalogue):
        return await super().get(goal.lower(), catalogue)


class CutsGoals(Broken):
    async def put(self, saved):
        await super().put(replace(saved, goal=saved.goal[:100]))

    async def get(self, goal, catalogue):
        return await super().get(goal[:100], catalogue)


class JoinsTheKey(Broken):
    async def put(self, saved):
        await super().put(replace(saved, goal=f"{saved.goal.strip()}{saved.catalogue}", catalogue=""))

    async def get(self, goal, catalogue):
        found = await super().get(f"{goal.strip()}{catalogue}", "")
        return found and replace(found, goal=goal.strip(), catalogue=catalogue)


class KeepsTheObject(Broken):
    async def put(self, saved):
        await super().put(saved)
        self.given = getattr(self, "given", {})
        self.given[saved.goal.strip(), saved.catalogue] = saved

    async def get(self, goal, catalogue):
        await super().get(goal, catalogue)
        found = self.given.get((goal.strip(), catalogue)) if hasattr(self, "given") else None
        return found and replace(found, goal=goal.strip())


class TakesWhatIsNotJson(Broken):
    async def put(self, saved):
        try:
            await super().put(saved)
        except Exception:
            await super().put(replace(saved, plan={}))


class RaisesItsOwnError(Broken):
    async def put(self, saved):
        try:
            await super().put(saved)
        except Exception as error:
            raise ValueError("Shout") from error


class RemovesBeforeItWrites(Broken):
    async def put(self, saved):
        await self.remove(saved.goal, saved.catalogue)
        await asyncio.sleep(0.001)
        await super().put(saved)


class StaysBusyWhenCancelled(Broken):
    busy = False

    async def put(self, saved):
        if self.busy:
            raise RuntimeError("still busy")
        self.busy = True
        await super().put(saved)
        self.busy = False


BROKEN = Broken.__subclasses__()


class Quick(PlanStoreKit):
    """The same tests with few random plans: what is broken here is broken for any of them."""

    effort = settings(max_examples=2)


async def failures(kind: type[MemoryPlanStore], *tests: str) -> dict[str, str]:
    return await kit_failures(Quick, {"plan_store": kind}, tests or None)


@pytest.mark.parametrize("variant", BROKEN, ids=lambda variant: variant.__name__)
async def test_the_kit_catches(variant: type[MemoryPlanStore]) -> None:
    assert await failures(variant), f"no test of the kit fails for {variant.__name__}"


async def test_the_kit_finds_nothing_wrong_with_what_the_broken_ones_share() -> None:
    assert await failures(Broken) == {}


@pytest.mark.parametrize(
    ("variant", "test"),
    [
        (IgnoresTheCatalogue, "test_goal_and_catalogue_are_the_key"),
        (KeepsBoth, "test_saving_again_replaces"),
        (OldestFirst, "test_the_newest_come_first"),
        (ComparesTimesAsTexts, "test_the_newest_come_first"),
        (CutsGoals, "test_odd_goals_are_kept_apart"),
        (JoinsTheKey, "test_odd_catalogues_are_kept_apart"),
        (KeepsTheObject, "test_what_is_given_can_be_changed_without_harm"),
        (RemovesBeforeItWrites, "test_writers_at_once_leave_one_whole_plan"),
        (StaysBusyWhenCancelled, "test_a_cancelled_call_leaves_it_usable"),
        (TakesWhatIsNotJson, "test_what_is_not_json_is_refused_and_nothing_is_lost"),
    ],
)
async def test_a_fault_is_caught_by_the_test_that_names_it(variant: type[MemoryPlanStore], test: str) -> None:
    assert await failures(variant, test)
