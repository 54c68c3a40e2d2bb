"""Answer a conversation that a program sends whole: by a run, or by a turn of an agent; nothing is asked back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from portico import AgentReply, ChatAgent, ChatDelta, Citation, Message, Passages, Paused, Thread, ToolStarted, Usage
from portico.errors import ConfigurationError, PorticoError, RunError
from portico.plans import Answer, Event, RunEvent, plan_of
from portico.ports import ChatService
from portico_cli.conversation import Grounding
from portico_cli.show.chat import Turn
from portico_cli.show.plans import called_name

if TYPE_CHECKING:
    from portico import FunctionInvocation, Kernel, Run
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


async def answer_by_run(desk: Desk, asked: Asked, address: str) -> Answering:
    """Plan, run, and yield the answer; what waits for a person is said with the address of the run's page."""
    pieces: asyncio.Queue[Piece | None] = asyncio.Queue()
    earlier = [Message.of("user", asked.instructions)] if asked.instructions else []
    context = {"messages": [*earlier, *asked.earlier]} if earlier or asked.earlier else None

    def listen(event: RunEvent) -> None:
        match event:
            case Event.TextDelta(text=text):
                pieces.put_nowait(Piece(text))
            case Event.StepStarted(step=step) if not step.id.endswith("]"):
                pieces.put_nowait(Piece(work=f"{step.id} {called_name(step)}\n"))

    async def work() -> Run:
        try:
            return await desk.runs.answer(asked.goal, context, listen)
        finally:
            pieces.put_nowait(None)

    task = asyncio.create_task(work())
    try:
        while (piece := await pieces.get()) is not None:
            yield piece
        await asyncio.wait([task])
        if task.cancelled():
            raise RunError("The run was cancelled before it had an answer.")
        run = task.result()
    finally:
        await _stop(task)
    outcome = run.outcome
    if isinstance(outcome, Answer):
        yield Answered(outcome.text, _notes(outcome.citations, outcome.warnings), usage=run.usage, run=run.name)
    elif isinstance(outcome, Paused):
        words = (
            f"{outcome.text}\n\nThe run waits for a person. Look at it, and let it continue: {address}/runs/{run.name}"
        )
        yield Answered(words, usage=run.usage, run=run.name)
    else:
        yield Answered(outcome.text, usage=run.usage, run=run.name)


class Agent:
    """Takes single turns with the kernel's functions; those with effects are refused, because no person is there."""

    def __init__(self, kernel: Kernel, sources: Sequence[str]) -> None:
        self._kernel, self._sources = kernel, tuple(sources)
        kernel.middleware.function.append(_refuse_effects)
        kernel.middleware.tool_call.append(_numbering(kernel))

    @property
    def can_answer(self) -> bool:
        """Whether there is a chat service."""
        return self._kernel.services is not None and bool(self._kernel.services.names(ChatService))

    async def answer(self, asked: Asked) -> Answering:
        """Take a turn and yield the answer. Raises ``ConfigurationError`` where there is nothing to talk with."""
        if not self.can_answer:
            raise ConfigurationError("There is no chat service. Name one under [chat] of portico.toml.")
        grounding = Grounding(self._kernel, self._sources, number=False)
        agent = ChatAgent(
            "portico",
            instructions=grounding.instructions(asked.instructions),
            kernel=self._kernel,
            context_providers=() if grounding.provider is None else (grounding.provider,),
            functions=grounding.functions,
        )
        thread, turn = Thread(), Turn()
        if asked.earlier:
            thread.add(*asked.earlier)
        pieces: asyncio.Queue[Piece | None] = asyncio.Queue()

        async def work() -> None:
            # Its own task, so that a value of the context holds for all of the turn and for nothing else.
            _TURN.set(grounding.passages)
            try:
                async with aclosing(agent.stream(asked.goal, thread)) as events:
                    async for event in events:
                        match event:
                            case AgentReply():
                                turn.reply = event
                            case ChatDelta(text=text) if text:
                                pieces.put_nowait(Piece(text))
                            case ToolStarted(call=call):
                                pieces.put_nowait(Piece(work=f"{call.name}\n"))
            finally:
                pieces.put_nowait(None)

        task = asyncio.create_task(work())
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            await task
        finally:
            await _stop(task)
        assert turn.reply is not None  # noqa: S101 - the turn has ended
        grounding.check(thread, turn)
        finish = "length" if turn.reply.reply.finish == "length" else "stop"
        yield Answered(turn.answer, _notes(turn.citations, turn.warnings), finish, turn.reply.usage)


async def _stop(task: asyncio.Task[Any]) -> None:
    """Cancel a task that is at work, and wait until it has ended."""
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


def _numbering(kernel: Kernel) -> Callable[..., Awaitable[Any]]:
    number = Passages.number_results(kernel, lambda: _TURN.get() or Passages())

    async def filter(context: Any, proceed: Callable[[], Awaitable[Any]]) -> Any:
        return await (proceed() if _TURN.get() is None else number(context, proceed))

    return filter


def _notes(citations: Sequence[Citation], warnings: Sequence[str]) -> str:
    """Return the sources and the warnings as a text that follows the answer."""
    places = dict.fromkeys((each.number, each.name, each.link) for each in citations)
    lines = [f"- [{number}] {_line(name, link)}" for number, name, link in sorted(places, key=lambda each: each[0])]
    notes = ["Sources:\n\n" + "\n".join(lines)] if lines else []
    notes += [f"Note: {' '.join(each.split())}" for each in warnings]
    return "\n\n".join(notes)


def _line(name: str | None, link: str | None) -> str:
    return ", ".join(" ".join(each.split()) for each in (name, link) if each) or "a passage without a name"
