"""The ContextProvider kit passes a correct provider and catches broken ones."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import settings

from portico.agents.context import Context, TurnOutcome
from portico.chat import Message, ToolCall
from portico.functions import Function
from portico.selection.selection import Selection
from portico_testkit.context_provider import ContextProviderKit


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
        if outcome.error is None:
            words = tuple(message.text for message in turn.new)
            self.asked[turn.thread.id] = (*self.asked.get(turn.thread.id, ()), *words)


class TestRemembers(ContextProviderKit):
    @pytest.fixture
    def context_provider(self):
        return Remembers()


class GivesAText(Remembers):
    async def before(self, turn):
        return "Be kind."


class GivesACallable(Remembers):
    async def before(self, turn):
        return Context(functions=(look,))


class GivesOneTwice(Remembers):
    async def before(self, turn):
        return Context(functions=(LOOK, Function.of(look)))


class GivesHalfACall(Remembers):
    async def before(self, turn):
        return Context(messages=(Message("assistant", (ToolCall("1", "look"),)),))


class SelectsOtherThings(Remembers):
    async def before(self, turn):
        return Context(functions=(LOOK,), selection=Selection(()))


class NeedsWords(Remembers):
    async def before(self, turn):
        return Context(instructions=turn.new[0].text)


class RaisesTheFailure(Remembers):
    async def after(self, turn, outcome):
        if outcome.error is not None:
            raise outcome.error


class ReadsTheTurn(Remembers):
    async def after(self, turn, outcome):
        self.last = outcome.turn.value


class AddsToTheThread(Remembers):
    async def after(self, turn, outcome):
        turn.thread.add(Message.of("user", "I was here"))


class HasOneThread(Remembers):
    async def before(self, turn):
        assert getattr(self, "busy", None) is None
        self.busy = turn
        return await super().before(turn)

    async def after(self, turn, outcome):
        assert self.busy is turn
        self.busy = None


class ForgetsToLetGo(Remembers):
    def __init__(self):
        super().__init__()
        self.held = set()

    async def before(self, turn):
        self.held.add(id(turn))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.held.discard(id(turn))

    async def after(self, turn, outcome):
        assert not self.held


BROKEN = {
    GivesAText: "test_it_gives_a_context_or_none",
    GivesACallable: "test_it_gives_a_context_or_none",
    GivesOneTwice: "test_it_gives_a_context_or_none",
    GivesHalfACall: "test_it_gives_a_context_or_none",
    SelectsOtherThings: "test_it_gives_a_context_or_none",
    NeedsWords: "test_it_takes_any_conversation",
    RaisesTheFailure: "test_it_takes_every_outcome",
    ReadsTheTurn: "test_it_takes_every_outcome",
    AddsToTheThread: "test_it_leaves_the_thread_alone",
    HasOneThread: "test_it_serves_several_threads_at_once",
    ForgetsToLetGo: "test_cancelled_before_a_turn_it_is_told_after_it_and_goes_on",
}


class Kit(ContextProviderKit):
    __test__ = False
    effort = settings(max_examples=3)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_broken_provider_is_caught(broken):
    name = BROKEN[broken]
    failed = TurnOutcome(error=RuntimeError("the service is away"))
    further = {"outcome": failed} if name == "test_it_takes_every_outcome" else {}
    run = getattr(Kit(), name)(broken(), **further)
    with pytest.raises((AssertionError, ValueError, AttributeError, RuntimeError, IndexError, TypeError)):
        asyncio.run(run)
