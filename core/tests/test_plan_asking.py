"""How planners ask: one whole reply, and what it cost is told."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from portico._chat.messages import ChatCapabilities, ChatReply, ChatRequest, Message, Source, Usage
from portico._planning.asking import Asking
from portico._plans.task import Event, RunEvent
from portico.errors import PlanError, RateLimited
from portico_testkit.fakes.chat_service import ScriptedChat

REQUEST = ChatRequest((Message.of("user", "Plan."),))
CUT = ChatReply(Message.of("assistant", "<plan><function."), "length", Usage(5, 9), model="m", service="acme")


async def test_the_reply_comes_back_and_its_cost_is_told() -> None:
    events: list[RunEvent] = []
    reply = await Asking.ask(ScriptedChat("<plan/>", usage=Usage(5, 2)), REQUEST, events.append)
    assert reply.text == "<plan/>"
    assert events == [Event.ChatUsed("scripted", "scripted", Usage(5, 2))]


async def test_a_reply_that_is_cut_short_is_an_error_that_says_where_and_what_to_do() -> None:
    events: list[RunEvent] = []
    with pytest.raises(PlanError, match=r"'acme' was cut short at the service's bound.*max_tokens.*<function\."):
        await Asking.ask(ScriptedChat(CUT), REQUEST, events.append)
    assert events == [Event.ChatUsed("acme", "m", Usage(5, 9))], "what a cut reply cost is not told"


async def test_the_bound_that_was_asked_for_is_in_the_error() -> None:
    chat = ScriptedChat(CUT, capabilities=ChatCapabilities(sampling=frozenset({"max_tokens"})))
    with pytest.raises(PlanError, match="cut short at 1,000 tokens"):
        await Asking.ask(chat, ChatRequest(REQUEST.messages, max_tokens=1_000), [].append)


async def test_who_asks_again_may_have_the_cut_reply() -> None:
    reply = await Asking.ask(ScriptedChat(CUT), REQUEST, [].append, cut=True)
    assert reply.finish == "length"


async def test_sources_become_text_for_a_service_that_does_not_take_them() -> None:
    request = ChatRequest((Message.of("user", Source(1, "Ports are protocols."), "Plan."),))
    plain, taking = ScriptedChat("x"), ScriptedChat("x", capabilities=ChatCapabilities(sources=True))
    await Asking.ask(plain, request, [].append)
    await Asking.ask(taking, request, [].append)
    assert "Ports are protocols." in plain.requests[0].messages[0].text
    assert taking.requests[0].messages == request.messages


async def test_what_the_service_raises_comes_through() -> None:
    with pytest.raises(RateLimited):
        await Asking.ask(ScriptedChat(RateLimited("slowly", retry_after=1)), REQUEST, [].append)


def test_what_the_settings_leave_open_is_the_service_s() -> None:
    settings = SimpleNamespace(temperature=0.2, top_p=None, max_tokens=500, seed=0)
    assert Asking.request(iter(REQUEST.messages), settings) == ChatRequest(
        REQUEST.messages, temperature=0.2, max_tokens=500, seed=0
    )
