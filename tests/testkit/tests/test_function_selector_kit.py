"""The FunctionSelector kit passes a correct selector and catches broken ones."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from portico_testkit.fakes.function_selector import WordSelector
from portico_testkit.function_selector import FunctionSelectorKit
from portico_testkit.kit_failures import Fault, KnownFaults


class TestWordSelector(FunctionSelectorKit):
    @pytest.fixture
    def function_selector(self) -> WordSelector:
        return WordSelector(3)


FAULTS = KnownFaults(FunctionSelectorKit, lambda kind: {"function_selector": kind})


class Broken(WordSelector):
    """Does right what a variant does not do wrong."""

    def __init__(self):
        super().__init__(3)


@FAULTS.caught_by("it_has_a_name_and_a_limit")
class Nameless(Broken):
    name = " "


@FAULTS.caught_by("a_cancelled_call_leaves_it_usable")
class StaysBusyWhenCancelled(Broken):
    busy = False

    async def select(self, functions, context, *, limit=None):
        if self.busy:
            raise RuntimeError("still busy")
        if limit is None and len(functions) == 11:
            self.busy = True
            await asyncio.sleep(0)
            self.busy = False
        return await super().select(functions, context, limit=limit)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
