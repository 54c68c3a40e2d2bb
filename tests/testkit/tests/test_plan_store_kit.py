"""The PlanStore kit passes a correct store and catches broken ones."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import replace

import pytest
from hypothesis import settings

from portico.errors import StoreError
from portico_testkit.fakes.plan_store import MemoryPlanStore
from portico_testkit.kit_failures import KnownFaults, keeps_its_lock
from portico_testkit.kit_of_a_kit import KitOfAKit
from portico_testkit.plan_store import PlanStoreKit


class TestMemoryPlanStore(PlanStoreKit):
    @pytest.fixture
    def plan_store(self) -> MemoryPlanStore:
        return MemoryPlanStore()


class Quick(PlanStoreKit):
    """The same tests with few random plans: what is broken here is broken for any of them."""

    effort = settings(max_examples=2)


def failing(kind: type[Broken]) -> Broken:
    store = kind()
    store.fails = True
    return store


FAULTS = KnownFaults(Quick, lambda kind: {"plan_store": kind, "failing_store": lambda: failing(kind)})


class Broken(MemoryPlanStore):
    """Does right what a variant does not do wrong."""

    fails = False

    async def put(self, saved):
        if self.fails:
            raise StoreError("The plans cannot be written: no space is left.")
        await super().put(saved)


@FAULTS.caught_by("it_has_a_name", "the name is blank")
class Nameless(Broken):
    name = " "


@FAULTS.caught_by("an_empty_store_has_nothing")
class RaisesForNothing(Broken):
    async def get(self, goal, catalogue):
        found = await super().get(goal, catalogue)
        if found is None:
            raise KeyError(goal)
        return found


@FAULTS.caught_by("a_plan_comes_back_as_it_was")
class ForgetsThePlanner(Broken):
    async def get(self, goal, catalogue):
        found = await super().get(goal, catalogue)
        return found and replace(found, planner="")


@FAULTS.caught_by("goal_and_catalogue_are_the_key", "the plan of another key")
class IgnoresTheCatalogue(Broken):
    async def put(self, saved):
        await super().put(replace(saved, catalogue="c1"))

    async def get(self, goal, catalogue):
        return await super().get(goal, "c1")


@FAULTS.caught_by("any_plan_comes_back_as_it_was")
@FAULTS.caught_by("saving_again_replaces")
class KeepsTheFirst(Broken):
    async def put(self, saved):
        if await self.get(saved.goal, saved.catalogue) is None:
            await super().put(saved)


@FAULTS.caught_by("saving_again_replaces", "is there still")
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


@FAULTS.caught_by("a_plan_that_was_removed_is_gone")
class RemovesNothing(Broken):
    async def remove(self, goal, catalogue):
        return await self.get(goal, catalogue) is not None


@FAULTS.caught_by("a_plan_that_was_removed_is_gone")
class RemovesEverything(Broken):
    async def remove(self, goal, catalogue):
        found = await super().remove(goal, catalogue)
        if found:
            self._plans.clear()
        return found


@FAULTS.caught_by("an_empty_store_has_nothing")
class SaysItWasThere(Broken):
    async def remove(self, goal, catalogue):
        await super().remove(goal, catalogue)
        return True


@FAULTS.caught_by("the_newest_come_first")
class OldestFirst(Broken):
    async def plans(self):
        return (await super().plans())[::-1]


@FAULTS.caught_by("the_newest_come_first")
class ComparesTimesAsTexts(Broken):
    async def plans(self):
        return sorted(await super().plans(), key=lambda saved: saved.saved_at, reverse=True)


@FAULTS.caught_by("white_space_around_a_goal_does_not_count")
class WhiteSpaceCounts(Broken):
    async def get(self, goal, catalogue):
        return await super().get(goal, catalogue) if goal == goal.strip() else None


@FAULTS.caught_by("white_space_around_a_goal_does_not_count")
class CaseDoesNotCount(Broken):
    async def put(self, saved):
        await super().put(replace(saved, goal=saved.goal.lower()))

    async def get(self, goal, catalogue):
        return await super().get(goal.lower(), catalogue)


@FAULTS.caught_by("odd_goals_are_kept_apart", "found another's plan")
class CutsGoals(Broken):
    async def put(self, saved):
        await super().put(replace(saved, goal=saved.goal[:100]))

    async def get(self, goal, catalogue):
        return await super().get(goal[:100], catalogue)


@FAULTS.caught_by("odd_catalogues_are_kept_apart", "found another's plan")
class JoinsTheKey(Broken):
    async def put(self, saved):
        await super().put(replace(saved, goal=f"{saved.goal.strip()}{saved.catalogue}", catalogue=""))

    async def get(self, goal, catalogue):
        found = await super().get(f"{goal.strip()}{catalogue}", "")
        return found and replace(found, goal=goal.strip(), catalogue=catalogue)


@FAULTS.caught_by("what_is_given_can_be_changed_without_harm", "what was put changed")
class KeepsTheObject(Broken):
    async def put(self, saved):
        await super().put(saved)
        self.given = getattr(self, "given", {})
        self.given[saved.goal.strip(), saved.catalogue] = saved

    async def get(self, goal, catalogue):
        await super().get(goal, catalogue)
        found = self.given.get((goal.strip(), catalogue)) if hasattr(self, "given") else None
        return found and replace(found, goal=goal.strip())


@FAULTS.caught_by("what_is_not_json_is_refused_and_nothing_is_lost", "DID NOT RAISE")
class TakesWhatIsNotJson(Broken):
    async def put(self, saved):
        try:
            await super().put(saved)
        except Exception:
            await super().put(replace(saved, plan={}))


@FAULTS.caught_by("what_is_not_json_is_refused_and_nothing_is_lost")
class RaisesItsOwnError(Broken):
    async def put(self, saved):
        try:
            await super().put(saved)
        except Exception as error:
            raise ValueError("Shout") from error


@FAULTS.caught_by("writers_at_once_leave_one_whole_plan")
class RemovesBeforeItWrites(Broken):
    async def put(self, saved):
        await self.remove(saved.goal, saved.catalogue)
        await asyncio.sleep(0.001)
        await super().put(saved)


@FAULTS.caught_by("a_cancelled_call_leaves_it_usable", "still busy")
class StaysBusyWhenCancelled(Broken):
    busy = False

    async def put(self, saved):
        if self.busy:
            raise RuntimeError("still busy")
        self.busy = True
        await super().put(saved)
        self.busy = False


@FAULTS.caught_by("a_cancelled_call_leaves_it_usable", "as if nobody had cancelled it")
class TakesNoNoticeOfCancellation(Broken):
    async def put(self, saved):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)
        await super().put(saved)


@FAULTS.caught_by("a_cancelled_call_leaves_it_usable", "after a cancelled call it never answers")
class KeepsItsLockWhenCancelled(Broken):
    put = keeps_its_lock(Broken.put)


@FAULTS.caught_by("a_cancelled_call_leaves_it_usable", "after a cancelled call it never answers")
class KeepsTheLockOfReadsWhenCancelled(Broken):
    get = keeps_its_lock(Broken.get)


@FAULTS.caught_by("a_cancelled_call_leaves_it_usable", "tasks go on")
class WritesOnWhenCancelled(Broken):
    async def put(self, saved):
        writing = asyncio.create_task(asyncio.sleep(5))
        await asyncio.sleep(0)
        writing.cancel()
        await super().put(saved)


@FAULTS.caught_by("it_leaves_the_event_loop_free", "the event loop waits by time.sleep in")
class BlocksTheLoopInWrites(Broken):
    async def put(self, saved):
        time.sleep(0.05)
        await super().put(saved)


@FAULTS.caught_by("it_leaves_the_event_loop_free", "the event loop waits by time.sleep in")
class BlocksTheLoopInReads(Broken):
    async def plans(self):
        time.sleep(0.05)
        return await super().plans()


@FAULTS.caught_by("what_cannot_be_kept_is_a_store_error", "put raised OSError")
class LetsTheDisksErrorOut(Broken):
    async def put(self, saved):
        if self.fails:
            raise OSError("No space left on device")
        await super().put(saved)


@FAULTS.caught_by("what_cannot_be_kept_is_a_store_error", "get raised KeyError")
class LetsAKeyErrorOutOfGet(Broken):
    async def get(self, goal, catalogue):
        if self.fails:
            raise KeyError(goal)
        return await super().get(goal, catalogue)


@FAULTS.caught_by("what_cannot_be_kept_is_a_store_error", "what it stands on fails")
class KeepsNothingWhereItFails(Broken):
    async def put(self, saved):
        if not self.fails:
            await super().put(saved)


@FAULTS.caught_by("a_plan_comes_back_as_it_was")
class RoundsTheTime(Broken):
    async def get(self, goal, catalogue):
        found = await super().get(goal, catalogue)
        return found and replace(found, saved_at=found.saved_at[:10])


class TestThePlanStoreKit(KitOfAKit):
    faults = FAULTS
    correct = (Broken,)
