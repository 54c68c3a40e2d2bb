"""Asking for a reply whose words may be the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, strategies as st

from portico._chat.messages import ChatDelta, ChatReply, ChatRequest, Message, Source, Usage
from portico._planning.asking import AnswerWords, Asking
from portico._plans.task import Event, RunEvent
from portico.errors import PlanError, ResponseInvalid, ServiceUnavailable
from portico_testkit.fakes.chat_service import ScriptedChat

ASKED = ChatRequest([Message.of("user", "What?")])


def nothing(event: RunEvent) -> None:
    """Take an event."""


async def test_the_words_are_handed_on_as_they_come_and_what_it_cost_is_told() -> None:
    events, heard = list[RunEvent](), list[str]()
    chat = ScriptedChat("Some more words.", piece=4, usage=Usage(5, 3))
    reply = await Asking.stream(chat, ASKED, events.append, on_text=heard.append)
    assert heard == ["Some", " mor", "e wo", "rds."]
    assert reply.text == "Some more words."
    assert events == [Event.ChatUsed("scripted", "scripted", Usage(5, 3))], (
        "words are shown by the planner, or not at all"
    )


async def test_sources_become_text_for_a_service_that_does_not_take_them() -> None:
    chat = ScriptedChat("So.")
    await Asking.stream(chat, ChatRequest([Message.of("user", Source(1, "A."), "What?")]), nothing)
    assert '<source number="1"' in chat.requests[0].messages[0].text


async def test_a_reply_that_does_not_end_is_stopped_and_the_stream_closed() -> None:
    closed = asyncio.Event()

    class Endless(ScriptedChat):
        async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
            try:
                while True:
                    yield ChatDelta("so on " * 100)
            finally:
                closed.set()

    with pytest.raises(PlanError, match="did not end within 5,000 characters"):
        await Asking.stream(Endless(), ASKED, nothing, longest=5_000)
    assert closed.is_set()


async def test_a_stream_need_not_be_one_that_can_be_closed() -> None:
    class Plain:
        def __init__(self) -> None:
            self.left = [ChatDelta("So."), ChatDelta(reply=ChatReply(Message.of("assistant", "So.")))]

        def __aiter__(self) -> Plain:
            return self

        async def __anext__(self) -> ChatDelta:
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop(0)

    class Other(ScriptedChat):
        def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:  # type: ignore[override]
            return Plain()

    assert (await Asking.stream(Other(), ASKED, nothing)).text == "So."


async def test_a_stream_without_a_reply_and_an_error_of_the_service_come_through() -> None:
    class Silent(ScriptedChat):
        async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
            yield ChatDelta("So")

    with pytest.raises(ResponseInvalid, match="'silent' ended its stream without a reply"):
        await Asking.stream(Silent(name="silent"), ASKED, nothing)
    with pytest.raises(ServiceUnavailable):
        await Asking.stream(ScriptedChat(ServiceUnavailable("gone")), ASKED, nothing)


@given(st.lists(st.text(st.sampled_from("ab \n"), max_size=5)), st.sampled_from(["", "\n\n"]))
def test_the_words_shown_are_the_text_without_the_space_around_it(pieces: list[str], before: str) -> None:
    events: list[RunEvent] = []
    words = AnswerWords(events.append, before=before)
    for piece in pieces:
        words.feed(piece)
    assert words.text == "".join(pieces).strip()
    shown = "".join(event.text for event in events if isinstance(event, Event.TextDelta))
    assert shown == (before + words.text if words.text else "")
    assert all(event.text for event in events if isinstance(event, Event.TextDelta)), "nothing is shown as something"
