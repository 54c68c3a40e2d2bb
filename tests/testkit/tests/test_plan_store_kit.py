"""The PlanStore kit passes a correct store and catches broken ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

from portico.errors import StoreError
from portico_testkit.fakes.plan_store import MemoryPlanStore
from portico_testkit.kit_failures import Fault, KnownFaults
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


@FAULTS.caught_by("a_cancelled_call_leaves_it_usable", "still busy")
class StaysBusyWhenCancelled(Broken):
    busy = False

    async def put(self, saved):
        if self.busy:
            raise RuntimeError("still busy")
        self.busy = True
        await super().put(saved)
        self.busy = False


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
