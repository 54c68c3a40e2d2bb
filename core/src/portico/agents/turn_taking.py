"""One turn of an agent on a thread: context, history, the tool loop, and what is kept of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from portico.agents.context import AgentTurn, Context, TurnOutcome
from portico.agents.instructing import instructed
from portico.agents.offering import offered
from portico.agents.providing import added_before, told_after
from portico.agents.reducing import WHOLE, Reduced, estimated_message_tokens, fitted
from portico.agents.replies import AgentReply
from portico.agents.thread import Thread, ThreadTurn
from portico.chat import Message, Source, Text, Usage
from portico.errors import LimitExceeded
from portico.ports.chat_service import ChatService
from portico.turns.values import Turn

if TYPE_CHECKING:
    from portico.agents.agent import ChatAgent
    from portico.agents.replies import AgentEvent
    from portico.agents.turnstile import Hold

__all__ = ["take_agent_turn"]

_NO_USAGE = Usage()


async def take_agent_turn(
    agent: ChatAgent,
    thread: Thread,
    new: tuple[Message, ...],
    returns: object,
    options: Mapping[str, Any],
    *,
    streamed: bool,
) -> AsyncGenerator[AgentEvent[Any], None]:
    """Take a turn when its time has come, and yield what happens in it, the `AgentReply` last."""
    hold = await thread.enter()
    steps = _Turn(agent, thread, hold, new, returns, dict(options)).steps(streamed=streamed)
    try:
        while True:
            # Not around the yield: what the reader of a stream calls is no part of the turn.
            with hold.inside():
                event = await anext(steps, None)
            if event is None:
                return
            if isinstance(event, AgentReply):
                thread.turnstile.release(hold)
            yield event
    finally:
        hold.closing = True
        try:
            with hold.inside():
                await steps.aclose()
        finally:
            thread.turnstile.release(hold)


@dataclass(slots=True)
class _Turn:
    """The state of one turn."""

    agent: ChatAgent
    thread: Thread
    hold: Hold
    new: tuple[Message, ...]
    returns: object
    options: dict[str, Any]
    turn: Turn[Any] | None = None
    contexts: Sequence[Context] = ()
    reduced: Reduced = WHOLE
    usage: Usage = _NO_USAGE

    async def steps(self, *, streamed: bool) -> AsyncGenerator[AgentEvent[Any], None]:
        thread = self.thread
        if not self.new and not thread.turns:
            raise ValueError(f"there is nothing to answer: no new message, and the thread {thread.id!r} is empty")
        told = AgentTurn(self.agent.name, thread, thread.messages, self.new)
        # One that is attached to both is one provider still.
        providers = tuple(
            {id(each): each for each in (*self.agent.context_providers, *thread.context_providers)}.values()
        )
        try:
            self.contexts = await added_before(providers, told)
            async with aclosing(self.events(told, providers, streamed=streamed)) as events:
                async for event in events:
                    yield event
            outcome = TurnOutcome(self.turn)
        except BaseException as error:
            stopped = asyncio.CancelledError("the stream was closed before its end")
            await told_after(providers, told, TurnOutcome(error=stopped if isinstance(error, GeneratorExit) else error))
            raise
        await told_after(providers, told, outcome)
        # Nothing is awaited from here on: the turn is in the thread whole, or not at all.
        yield self.kept()

    async def events(
        self, told: AgentTurn, providers: Sequence[Any], *, streamed: bool
    ) -> AsyncGenerator[AgentEvent[Any], None]:
        """Ask, and yield all events but the last, which is kept."""
        agent, options = self.agent, self.options
        kernel = agent.kernel
        chosen = options.pop("chat", None)
        chat = kernel.service(ChatService, chosen) if chosen is None or isinstance(chosen, str) else chosen
        functions = offered(agent, options, zip(providers, self.contexts, strict=True), chat)
        first = await instructed(agent, told, self.contexts, options.pop("arguments", None))
        before = await self.before(chat)
        added: tuple[Message, ...] = ()
        for message in (message for context in self.contexts for message in context.messages):
            added = _followed(added, (message,))
        said = (*self.earlier(self.reduced.turns), *_followed(added, self.new))
        messages = (*first, *_followed(before, said))
        if streamed:
            async with aclosing(
                kernel.stream(messages, returns=self.returns, chat=chat, functions=functions, **options)
            ) as events:
                async for event in events:
                    if isinstance(event, Turn):
                        self.turn = event
                    else:
                        yield event
        else:
            self.turn = await kernel.complete(messages, returns=self.returns, chat=chat, functions=functions, **options)

    async def before(self, chat: ChatService) -> tuple[Message, ...]:
        """Reduce the history where it has to be, and return what is sent in place of the turns that are not."""
        thread = self.thread
        if thread.budget is None:
            return ()
        history = thread.history()
        room = self.room(thread.budget)
        self.reduced = await fitted(history, tokens=room, reducer=thread.reducer, kernel=self.agent.kernel, chat=chat)
        if self.reduced not in (WHOLE, history.reduced):
            self.usage = self.reduced.usage
        return history.instead(self.reduced)

    def room(self, budget: int) -> int:
        """Return how many tokens the new messages leave to the history."""
        size = sum(map(self.thread.count_tokens, self.new))
        if size > budget:
            about = "about " if self.thread.count_tokens is estimated_message_tokens else ""
            raise LimitExceeded(
                f"The new messages take {about}{size:,} tokens, and the budget of the thread {self.thread.id!r} is "
                f"{budget:,}. Raise it, or send less."
            )
        return budget - size

    def earlier(self, first: int) -> tuple[Message, ...]:
        """Return the messages of the turns that are sent; what other agents said has their names."""
        thread, own = self.thread, (None, self.agent.name)
        if not first and all(turn.agent in own for turn in thread.turns):
            return thread.messages
        return tuple(
            replace(message, name=turn.agent)
            if message.role == "assistant" and message.name is None and turn.agent not in own
            else message
            for turn in thread.turns[first:]
            for message in turn.messages
        )

    def kept(self) -> AgentReply[Any]:
        """Add the turn to the thread, and return what came of it."""
        turn = self.turn
        assert turn is not None  # noqa: S101 - a turn that does not end raises
        usage = self.usage + turn.usage + self.hold.spent
        self.thread.keep(ThreadTurn((*self.new, *turn.messages), self.agent.name, usage), self.reduced)
        selections = [context.selection for context in self.contexts] + [turn.selection]
        return AgentReply(
            turn.value,
            turn,
            self.thread,
            self.agent.name,
            usage,
            tuple(selection for selection in selections if selection is not None),
            self.reduced,
        )


def _followed(before: tuple[Message, ...], after: tuple[Message, ...]) -> tuple[Message, ...]:
    """Put messages after others; where the user speaks on both sides, it is one message.

    What a provider adds and what stands for the oldest turns are the user's messages, and so is what comes after them.
    The chat templates of many models refuse two messages of one role that follow each other.
    """
    if not (before and after) or not before[-1].role == after[0].role == "user":
        return (*before, *after)
    last, first = before[-1], after[0]
    if last.name not in (None, first.name):
        return (*before, *after)
    # Words would run into those that follow; a source ends its own line.
    meeting = (*last.content[-1:], *first.content[:1])
    apart = len(meeting) == 2 and isinstance(meeting[0], Text) and isinstance(meeting[1], Text | Source)
    between = (Text("\n\n"),) if apart else ()
    return (*before[:-1], replace(first, content=(*last.content, *between, *first.content)), *after[1:])
