"""Replies that cannot be used go back to the model, within bounds, and half a reply is never read."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from portico._chat.messages import ChatReply, ChatRequest, Message
from portico._planning.asking import Asking
from portico._tool_loop.structured import ReplyProblem
from portico.errors import PlanError, PlanFormatError
from portico_testkit.fakes.chat_service import ScriptedChat

REQUEST = ChatRequest((Message.of("user", "Plan."),))


def read(text: str) -> int:
    if not text.strip():
        raise PlanFormatError("it is empty")
    if not text.isdecimal():
        raise ReplyProblem(f"{text} is no number")
    return int(text)


async def asked(chat: ScriptedChat, repairs: int = 2) -> tuple[int, str]:
    return await Asking.until_usable(
        chat, REQUEST, [].append, read=read, repair=lambda problem: f"No: {problem}", repairs=repairs
    )


async def test_what_is_wrong_goes_back_after_what_was_written() -> None:
    chat = ScriptedChat("one", " ", "1")
    assert await asked(chat) == (1, "1")
    told = [(message.role, message.text) for message in chat.requests[2].messages]
    assert told == [
        ("user", "Plan."),
        ("assistant", "one"),
        ("user", "No: one is no number"),
        ("assistant", "(nothing)"),
        ("user", "No: it is empty"),
    ]


async def test_half_a_reply_is_never_read_though_it_could_be() -> None:
    chat = ScriptedChat(ChatReply(Message.of("assistant", "1"), "length"), "12")
    assert await asked(chat) == (12, "12")
    assert "cut short" in chat.requests[1].messages[-1].text


@pytest.mark.parametrize(("repairs", "tries"), [(0, "one try"), (2, "3 tries")])
async def test_after_the_repairs_the_last_problem_is_in_the_error(repairs: int, tries: int | str) -> None:
    chat = ScriptedChat("one", "two", "three")
    said = rf"'scripted' wrote no plan that can be used, in {tries}\. Set another .* is no number"
    with pytest.raises(PlanError, match=said):
        await asked(chat, repairs)
    assert len(chat.requests) == repairs + 1


@given(st.text(max_size=60), st.integers(1, 50))
def test_what_was_said_is_shown_within_its_bound_and_never_without_words(text: str, most: int) -> None:
    shown = Asking.message(text, most).text
    assert shown.strip()
    assert len(shown) <= max(most + 1, len("(nothing)"))
    assert not text.strip() or len(text) > most or shown == text
