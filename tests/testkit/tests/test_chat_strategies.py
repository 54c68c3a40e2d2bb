"""What the strategies for chat draw is what services may be asked, and may answer."""

from __future__ import annotations

import json

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from portico.chat import (
    ChatCapabilities,
    ChatRequest,
    File,
    Image,
    Message,
    Reasoning,
    Source,
    ToolCall,
    ToolResult,
    check_request,
)
from portico.schemas import PlainSchemaValidator
from portico.strict import strict_form
from portico_testkit.chat_checks import Pieces, check_reply
from portico_testkit.chat_strategies import chat_deltas, chat_replies, chat_requests, conversations, tools
from portico_testkit.fakes.chat_service import ScriptedChat

SAMPLING = ["temperature", "top_p", "max_tokens", "stop", "seed"]
CAPABILITIES = st.builds(
    ChatCapabilities,
    sources=st.booleans(),
    tools=st.booleans(),
    response_schema=st.booleans(),
    strict=st.booleans(),
    images=st.booleans(),
    files=st.booleans(),
    sampling=st.frozensets(st.sampled_from(SAMPLING)),
)


@given(st.data())
def test_a_request_stays_within_the_capabilities(data: st.DataObject) -> None:
    capabilities = data.draw(CAPABILITIES)
    request = data.draw(chat_requests(capabilities))
    check_request(request, capabilities, "scripted")
    assert request.tool_choice.mode != "required" or request.offered


@given(conversations())
def test_each_call_of_a_conversation_is_answered_once_before_anybody_else_speaks(said: list[Message]) -> None:
    open_calls: list[str] = []
    for message in said:
        results = [part.id for part in message.content if isinstance(part, ToolResult)]
        assert bool(results) == (message.role == "tool")
        assert message.role == "tool" or not open_calls
        for id in results:
            open_calls.remove(id)
        open_calls += [part.id for part in message.content if isinstance(part, ToolCall)]
    assert not open_calls
    assert said[-1].role != "assistant"


@given(st.data())
def test_any_pieces_of_a_reply_put_together_are_the_reply(data: st.DataObject) -> None:
    reply = data.draw(chat_replies())
    pieces = Pieces()
    for delta in data.draw(chat_deltas(reply)):
        pieces.take(delta)
    assert pieces.whole() == reply


@given(st.data())
def test_a_reply_is_one_that_the_kit_accepts(data: st.DataObject) -> None:
    offered = data.draw(st.lists(tools(), min_size=1, max_size=3, unique_by=lambda tool: tool.name))
    reply = data.draw(chat_replies([tool.name for tool in offered]))
    check_reply(reply, ScriptedChat(), ChatRequest([], tuple(offered)))


@given(tools())
def test_a_tool_has_a_schema_that_the_core_understands_and_a_strict_one_is_strict(tool) -> None:
    PlainSchemaValidator().compile(tool.parameters)
    json.dumps(tool.parameters)
    if tool.strict:
        assert strict_form(tool.parameters).identity, f"this is not of the strict form: {tool.parameters}"


PARTS = (Image, File, Source, Reasoning, ToolCall, ToolResult)


@pytest.mark.parametrize("kind", PARTS, ids=lambda kind: kind.__name__)
def test_every_kind_of_part_is_drawn(kind: type) -> None:
    drawn(conversations(), lambda said: any(isinstance(part, kind) for message in said for part in message.content))


def test_what_is_rare_is_drawn() -> None:
    drawn(conversations(), lambda said: any(len(message.content) > 1 for message in said if message.role == "tool"))
    drawn(chat_replies(), lambda reply: reply.finish == "length" and bool(reply.tool_calls))
    drawn(chat_requests(), lambda request: request.response_strict)
    drawn(chat_requests(), lambda request: request.tool_choice.mode == "required")


def drawn(strategy, condition) -> None:
    """Fail unless one of some hundred draws is so."""
    find(strategy, condition, settings=settings(max_examples=500, phases=[Phase.generate], database=None))
