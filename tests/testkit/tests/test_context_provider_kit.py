"""The ContextProvider kit passes a correct provider and catches broken ones."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from portico import Context, Function, Message
from portico_testkit.context_provider import ContextProviderKit
from portico_testkit.kit_failures import Fault, KnownFaults


def look() -> str:
    """Look."""
    return "nothing"


LOOK = Function.of(look)


class Remembers:
    """Says what was asked before, and offers a function."""

    def __init__(self):
        self.asked = {}

    async def before(self, turn):
        await asyncio.sleep(0)
        asked = self.asked.get(turn.thread.id, ())
        if not asked:
            return None
        note = Message.of("user", f"Asked before: {', '.join(asked)}")
        return Context(functions=(LOOK,), messages=(note,), instructions="Remember.")

    async def after(self, turn, outcome):
        if not isinstance(outcome, BaseException):
            words = tuple(message.text for message in turn.new)
            self.asked[turn.thread.id] = (*self.asked.get(turn.thread.id, ()), *words)


class TestRemembers(ContextProviderKit):
    @pytest.fixture
    def context_provider(self):
        return Remembers()


FAULTS = KnownFaults(ContextProviderKit, lambda kind: {"context_provider": kind})


@FAULTS.caught_by("it_gives_a_context_or_none")
class GivesAText(Remembers):
    async def before(self, turn):
        return "Be kind."


@FAULTS.caught_by("cancelled_before_a_turn_it_is_told_after_it_and_goes_on", "as if it had not been cancelled")
class TakesNoNoticeOfCancellation(Remembers):
    async def before(self, turn):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)
        return await super().before(turn)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_the_kit_finds_what_is_broken(fault: Fault, given: Any) -> None:
    await FAULTS.check(fault, given)
