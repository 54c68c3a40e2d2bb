"""What the ChatService kit asks of services that declare response schemas."""

from __future__ import annotations

import asyncio

import pytest

from portico.chat import ChatReply, ToolChoice
from portico.errors import PorticoError
from portico_testkit.chat_checks import WAYS, Caller, check_json
from portico_testkit.chat_requests import CLOCK, SCHEMAS, STRICT, SchemaCase, ask

__all__ = ["check_schemas", "check_schemas_at_once", "check_strict_replies", "check_tools_beside_a_schema"]

_SHARE = 6
"""How many times the usual bound of tokens a reply with a schema may have."""


async def check_schemas(caller: Caller, rounds: int) -> None:
    """Ask for replies under schemas of every kind: what is not cut short is JSON that satisfies them."""
    whole = tried = 0
    for number in range(rounds):
        for case in SCHEMAS:
            for way in WAYS if case.required else ("stream",):
                reply = await _replied(caller, way, case, number)
                if reply is not None:
                    tried += 1
                    whole += _checked(reply, case, way)
    if not whole:
        pytest.fail(f"each of {tried} replies with a schema was cut short; try a larger max_output")


async def check_schemas_at_once(caller: Caller) -> None:
    """Ask under several schemas at the same time: each reply satisfies its own."""
    cases = SCHEMAS[:4]
    ways = [WAYS[number % 2] for number in range(len(cases))]
    replies = await asyncio.gather(*(_replied(caller, way, case, 0) for way, case in zip(ways, cases, strict=True)))
    for reply, case, way in zip(replies, cases, ways, strict=True):
        assert reply is not None
        _checked(reply, case, f"{way}, with others at once")


async def check_strict_replies(caller: Caller) -> None:
    """Ask for a reply under a schema of the strict form: it is taken, and held to exactly."""
    for way in WAYS:
        request = ask(
            "Pack a small box named “Köln”, number 7, with a hat. Answer in JSON.",
            response_schema=STRICT,
            response_name="box",
            response_strict=True,
        )
        reply = await caller.answer(way, request, share=_SHARE)
        _checked(reply, SchemaCase("strict", "", STRICT), way)


async def check_tools_beside_a_schema(caller: Caller) -> None:
    """Offer tools and demand a schema at once: calls or valid JSON come, or a refusal that says so."""
    case = SCHEMAS[0]
    for way in WAYS:
        for mode in ("auto", "none"):
            request = ask(case.question, tools=(CLOCK,), tool_choice=ToolChoice(mode), response_schema=case.schema)
            reply = await caller.try_out(way, request, f"tools ({mode}) beside a schema", (PorticoError,), share=_SHARE)
            if reply is not None and not reply.tool_calls:
                _checked(reply, case, f"{way}, with tools ({mode})")


async def _replied(caller: Caller, way: str, case: SchemaCase, number: int) -> ChatReply | None:
    question = f"{case.question} This is request {number}." if number else case.question
    request = ask(question, response_schema=case.schema, response_name=case.name.replace(" ", "_"))
    if case.required:
        return await caller.answer(way, request, share=_SHARE)
    return await caller.try_out(way, request, f"a schema of {case.name}", (PorticoError,), share=_SHARE)


def _checked(reply: ChatReply, case: SchemaCase, way: str) -> bool:
    """Hold a reply to its schema, and tell whether it was whole."""
    assert not reply.tool_calls, f"{way}: {reply.tool_calls} where a reply with a schema was wanted"
    if reply.finish == "length":
        return False
    check_json(reply.text, case.schema, f"{way}, {case.name}")
    return True
