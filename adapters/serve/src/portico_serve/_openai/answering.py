"""Answer a conversation that a program sends whole: by a run, or by a turn of an agent; nothing is asked back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from portico import ChatDelta, Citation, Message, Passages, Paused, Thread, ToolStarted, Usage
from portico.errors import ConfigurationError, PorticoError, RunError
from portico.plans import Answer, Event, RunEvent, plan_of
from portico.ports import ChatService
from portico_cli.conversation import Grounding, take_turn
from portico_cli.show.chat import Turn
from portico_cli.show.plans import called_name

if TYPE_CHECKING:
    from portico import FunctionInvocation, Kernel
    from portico_serve._desk import Desk

_TURN: ContextVar[Passages | None] = ContextVar("portico_serve_turn", default=None)


@dataclass(frozen=True, slots=True)
class Asked:
    """A conversation whose last message is to be answered."""

    goal: str
    earlier: tuple[Message, ...] = ()
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the text as it comes, or of what is done for it."""

    text: str = ""
    work: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """The end: the whole text, and what follows it in words, such as its sources."""

    text: str
    notes: str = ""
    finish: str = "stop"
    usage: Usage = field(default_factory=Usage)
    run: str | None = None


Answering = AsyncGenerator[Piece | Answered, None]
Put = Callable[[Piece], None]


async def answer_by_run(desk: Desk, asked: Asked, address: str) -> Answering:
    """Plan, run, and yield the answer; what waits for a person is said with the address of the run's page."""
    earlier = [Message.of("user", asked.instructions)] if asked.instructions else []
    context = {"messages": [*earlier, *asked.earlier]} if earlier or asked.earlier else None

    async def work(put: Put) -> Answered:
        def listen(event: RunEvent) -> None:
            match event:
                case Event.TextDelta(text=text):
                    put(Piece(text))
                case Event.StepStarted(step=step) if not step.id.endswith("]"):
                    put(Piece(work=f"{step.id} {called_name(step)}\n"))

        run = await desk.runs.answer(asked.goal, context, listen)
        outcome = run.outcome
        text, notes = outcome.text, ""
        if isinstance(outcome, Answer):
            notes = _notes(outcome.citations, outcome.warnings)
        elif isinstance(outcome, Paused):
            text += f"\n\nThe run waits for a person. Look at it, and let it continue: {address}/runs/{run.name}"
        return Answered(text, notes, usage=run.usage, run=run.name)

    async with aclosing(_hand_over(work)) as pieces:
        async for piece in pieces:
            yield piece


class Agent:
    """Takes single turns with the kernel's functions; those with effects are refused, because no person is there."""

    def __init__(self, kernel: Kernel, sources: Sequence[str]) -> None:
        self._kernel, self._sources = kernel, tuple(sources)
        kernel.middleware.function.append(_refuse_effects)
        kernel.middleware.tool_call.append(Passages.number_results(kernel, _TURN.get))

    @property
    def can_answer(self) -> bool:
        """Whether there is a chat service."""
        return self._kernel.services is not None and bool(self._kernel.services.names(ChatService))

    async def answer(self, asked: Asked) -> Answering:
        """Take a turn and yield the answer. Raises ``ConfigurationError`` where there is nothing to talk with."""
        if not self.can_answer:
            raise ConfigurationError("There is no chat service. Name one under [chat] of portico.toml.")

        async def work(put: Put) -> Answered:
            def see(event: object) -> None:
                match event:
                    case ChatDelta(text=text) if text:
                        put(Piece(text))
                    case ToolStarted(call=call):
                        put(Piece(work=f"{call.name}\n"))

            grounding = Grounding(self._kernel, self._sources, number=False)
            _TURN.set(grounding.passages)
            thread, turn = Thread(), Turn()
            if asked.earlier:
                thread.add(*asked.earlier)
            await take_turn(grounding.agent(asked.instructions), asked.goal, thread, see, turn)
            assert turn.reply is not None  # noqa: S101 - the turn has ended
            grounding.check(thread, turn)
            finish = "length" if turn.reply.reply.finish == "length" else "stop"
            return Answered(turn.answer, _notes(turn.citations, turn.warnings), finish, turn.reply.usage)

        async with aclosing(_hand_over(work)) as pieces:
            async for piece in pieces:
                yield piece


async def _hand_over(work: Callable[[Put], Coroutine[Any, Any, Answered]]) -> Answering:
    """Yield the pieces of an answer as they come, and the answer; closed before, it stops the work and awaits its end.

    The work is a task by itself, so that a value of the context holds for all of it and for nothing else.
    """
    pieces: asyncio.Queue[Piece | None] = asyncio.Queue()
    task = asyncio.create_task(work(pieces.put_nowait))
    task.add_done_callback(lambda _: pieces.put_nowait(None))
    try:
        while (piece := await pieces.get()) is not None:
            yield piece
        if task.cancelled():
            raise RunError("It was cancelled before there was an answer.")
        yield task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])


async def _refuse_effects(context: FunctionInvocation, proceed: Callable[[], Awaitable[Any]]) -> Any:
    function = context.function
    if _TURN.get() is not None and function.effects and plan_of(function) is None:
        raise PorticoError(
            f"{function.full_name} was not called: it has effects, and no person is here to agree. Say so, and that "
            "the page of this server asks before it calls such a function."
        )
    return await proceed()


def _notes(citations: Sequence[Citation], warnings: Sequence[str]) -> str:
    """Return the sources and the warnings as a text that follows the answer."""
    places = dict.fromkeys((each.number, each.name, each.link) for each in citations)
    lines = [f"- [{number}] {_line(name, link)}" for number, name, link in sorted(places, key=lambda each: each[0])]
    notes = ["Sources:\n\n" + "\n".join(lines)] if lines else []
    notes += [f"Note: {' '.join(each.split())}" for each in warnings]
    return "\n\n".join(notes)


def _line(name: str | None, link: str | None) -> str:
    return ", ".join(" ".join(each.split()) for each in (name, link) if each) or "a passage without a name"
