"""What the ChatService kit asks of services that declare response schemas."""

from __future__ import annotations

import pytest

from portico import ChatReply
from portico.errors import PorticoError
from portico_testkit.chat_checks import WAYS, Caller, check_json
from portico_testkit.chat_requests import SCHEMAS, SchemaCase, ask

__all__ = ["check_schemas"]

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
