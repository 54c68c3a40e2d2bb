"""What every ContextProvider must do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import pytest

from portico import (
    AgentTurn,
    ChatAgent,
    ChatCapabilities,
    ChatReply,
    Context,
    Function,
    History,
    Kernel,
    Message,
    Thread,
    Turn,
    Usage,
)
from portico.ports import ContextProvider
from portico_testkit.event_loop import leaves_the_event_loop_free
from portico_testkit.fakes.chat_service import ScriptedChat
from portico_testkit.tasks import give_up, no_tasks_but, still_answers

__all__ = ["ContextProviderKit"]

_ANSWERED = ChatReply(Message.of("assistant", "Noted."))
_ENDED = Turn("Noted.", _ANSWERED, (_ANSWERED.message,), Usage(1, 1), 1)
_STOPPED = asyncio.CancelledError()


class ContextProviderKit:
    """Subclass it and give a fixture named ``context_provider``; a new one for each test::

        class TestAcmeMemory(ContextProviderKit):
            questions = ("Who is Ada?", "And Bob?")

            @pytest.fixture
            async def context_provider(self):
                provider = AcmeMemory(AcmeSettings(...))
                yield provider
                await provider.aclose()

    ``questions`` are what a user may ask, so that there is something to add.
    """

    questions: ClassVar[Sequence[str]] = ("What can you do for me?", "Tell me more about that.")

    @pytest.mark.asyncio
    async def test_it_gives_a_context_or_none(self, context_provider: ContextProvider) -> None:
        thread = Thread()
        for question in self.questions:
            turn = _turn(thread, Message.of("user", question))
            _check(await context_provider.before(turn))
            await context_provider.after(turn, _ENDED)
            thread.add(*turn.new, _ANSWERED.message)

    @pytest.mark.asyncio
    async def test_it_leaves_the_thread_alone(self, context_provider: ContextProvider) -> None:
        thread = Thread(messages=[Message.of("user", self.questions[0]), _ANSWERED.message])
        before = thread.to_json()
        turn = _turn(thread, Message.of("user", self.questions[-1]))
        await context_provider.before(turn)
        await context_provider.after(turn, _ENDED)
        assert thread.to_json() == before, "the provider changed the thread"
        assert not thread.busy, "the provider takes a turn on the thread"

    @pytest.mark.asyncio
    async def test_cancelled_before_a_turn_it_is_told_after_it_and_goes_on(
        self, context_provider: ContextProvider
    ) -> None:
        tasks = asyncio.all_tasks()
        for moments in range(6):
            turn = _turn(Thread(), Message.of("user", self.questions[0]))
            await give_up(partial(context_provider.before, turn), turns=moments)
            await still_answers(context_provider.after(turn, _STOPPED))
        await no_tasks_but(tasks)
        turn = _turn(Thread(), Message.of("user", self.questions[0]))
        _check(await still_answers(context_provider.before(turn)))
        await still_answers(context_provider.after(turn, _ENDED))

    @pytest.mark.asyncio
    async def test_it_leaves_the_event_loop_free(self, context_provider: ContextProvider) -> None:

        async def talk(number: int) -> None:
            thread = Thread(f"kit-{number}")
            for question in self.questions:
                turn = _turn(thread, Message.of("user", f"{question} ({number})"))
                await context_provider.before(turn)
                await asyncio.sleep(0)
                await context_provider.after(turn, _ENDED)
                await asyncio.sleep(0)
                thread.add(*turn.new, _ANSWERED.message)

        await leaves_the_event_loop_free(talk)

    @pytest.mark.asyncio
    async def test_an_agent_can_work_with_it(self, context_provider: ContextProvider) -> None:
        capabilities = ChatCapabilities(tools=True, sources=True, images=True, files=True)
        chat = ScriptedChat("Noted.", repeat=True, capabilities=capabilities)
        agent = ChatAgent("kit", kernel=Kernel(), chat=chat, context_providers=[context_provider])
        thread = Thread()
        for question in self.questions:
            await agent.invoke(question, thread)
            assert chat.requests[-1].messages[-1].text.endswith(question), "what is new comes last"
        words = [message.text for message in thread.messages]
        assert words == [text for question in self.questions for text in (question, "Noted.")]


def _turn(thread: Thread, *new: Message) -> AgentTurn:
    return AgentTurn("kit", thread, thread.messages, new)


def _check(context: Any) -> None:
    if context is None:
        return
    assert isinstance(context, Context), f"{context!r} is neither a Context nor None"
    assert isinstance(context.instructions, str), f"instructions are a text, not {context.instructions!r}"
    assert all(isinstance(each, Function) for each in context.functions), f"no functions: {context.functions!r}"
    names = [function.full_name for function in context.functions]
    assert len(set(names)) == len(names), f"two functions of one name: {sorted(names)}"
    assert all(isinstance(each, Message) for each in context.messages), f"no messages: {context.messages!r}"
    History.split_turns(context.messages)
    if context.selection is not None:
        missing = set(names) - set(context.selection.names)
        assert not missing, f"functions are added that the selection does not have: {sorted(missing)}"
