"""The ContextProvider kit passes a correct provider and catches broken ones."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest
from hypothesis import settings

from portico.agents.context import Context
from portico.chat import Message, ToolCall
from portico.functions import Function
from portico.selection.selection import Selection
from portico_testkit.context_provider import ContextProviderKit
from portico_testkit.kit_failures import KnownFaults, keeps_its_lock
from portico_testkit.kit_of_a_kit import KitOfAKit


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


class Kit(ContextProviderKit):
    __test__ = False
    effort = settings(max_examples=3)


FAULTS = KnownFaults(Kit, lambda kind: {"context_provider": kind})


@FAULTS.caught_by("it_gives_a_context_or_none")
class GivesAText(Remembers):
    async def before(self, turn):
        return "Be kind."


@FAULTS.caught_by("it_gives_a_context_or_none")
class GivesACallable(Remembers):
    async def before(self, turn):
        return Context(functions=(look,))


@FAULTS.caught_by("it_gives_a_context_or_none")
class GivesOneTwice(Remembers):
    async def before(self, turn):
        return Context(functions=(LOOK, Function.of(look)))


@FAULTS.caught_by("it_gives_a_context_or_none")
class GivesHalfACall(Remembers):
    async def before(self, turn):
        return Context(messages=(Message("assistant", (ToolCall("1", "look"),)),))


@FAULTS.caught_by("it_gives_a_context_or_none")
class SelectsOtherThings(Remembers):
    async def before(self, turn):
        return Context(functions=(LOOK,), selection=Selection(()))


@FAULTS.caught_by("it_takes_any_conversation")
class NeedsWords(Remembers):
    async def before(self, turn):
        return Context(instructions=turn.new[0].text)


@FAULTS.caught_by("it_takes_every_outcome")
class RaisesTheFailure(Remembers):
    async def after(self, turn, outcome):
        if outcome.error is not None:
            raise outcome.error


@FAULTS.caught_by("it_takes_every_outcome")
class ReadsTheTurn(Remembers):
    async def after(self, turn, outcome):
        self.last = outcome.turn.value


@FAULTS.caught_by("it_leaves_the_thread_alone")
class AddsToTheThread(Remembers):
    async def after(self, turn, outcome):
        turn.thread.add(Message.of("user", "I was here"))


@FAULTS.caught_by("it_serves_several_threads_at_once")
class HasOneThread(Remembers):
    async def before(self, turn):
        assert getattr(self, "busy", None) is None
        self.busy = turn
        return await super().before(turn)

    async def after(self, turn, outcome):
        assert self.busy is turn
        self.busy = None


@FAULTS.caught_by("cancelled_before_a_turn_it_is_told_after_it_and_goes_on")
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


@FAULTS.caught_by("an_agent_can_work_with_it", "somebody else's turn")
class WantsTheThreadForItself(Remembers):
    """An agent has a turn on the thread whenever it asks."""

    async def before(self, turn):
        if turn.thread.busy:
            raise RuntimeError("It is somebody else's turn.")
        return await super().before(turn)


@FAULTS.caught_by("cancelled_before_a_turn_it_is_told_after_it_and_goes_on", "as if nobody had cancelled it")
class TakesNoNoticeOfCancellation(Remembers):
    async def before(self, turn):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)
        return await super().before(turn)


@FAULTS.caught_by("cancelled_before_a_turn_it_is_told_after_it_and_goes_on", "after a cancelled call it never answers")
class KeepsItsLockWhenCancelled(Remembers):
    before = keeps_its_lock(Remembers.before)


@FAULTS.caught_by("cancelled_before_a_turn_it_is_told_after_it_and_goes_on", "tasks go on")
class LooksOnWhenCancelled(Remembers):
    async def before(self, turn):
        looking = asyncio.create_task(asyncio.sleep(5))
        await asyncio.sleep(0)
        looking.cancel()
        return await super().before(turn)


@FAULTS.caught_by("it_leaves_the_event_loop_free", "the event loop waits by time.sleep in")
class BlocksTheLoopBefore(Remembers):
    async def before(self, turn):
        if not turn.earlier:
            time.sleep(0.05)
        return await super().before(turn)


@FAULTS.caught_by("it_leaves_the_event_loop_free", "the event loop waits by time.sleep in")
class BlocksTheLoopAfter(Remembers):
    async def after(self, turn, outcome):
        if not turn.earlier:
            time.sleep(0.05)
        await super().after(turn, outcome)


class TestTheContextProviderKit(KitOfAKit):
    faults = FAULTS
    correct = (Remembers,)
