"""How planners ask a chat service: one whole reply, paid for and not cut short."""

from __future__ import annotations

from dataclasses import replace

from portico.chat import ChatReply, ChatRequest, render_sources
from portico.errors import PlanError
from portico.plans.task import ChatUsed, Emit
from portico.ports.chat_service import ChatService

__all__ = ["ask", "whole"]

_SHOWN = 80


async def ask(chat: ChatService, request: ChatRequest, emit: Emit, *, cut: bool = False) -> ChatReply:
    """Return the reply to a planner's request and emit what it cost as `ChatUsed`.

    Nothing is streamed: what a model writes for a planner is no answer yet. `Source` parts become text for a service
    that does not take them. A reply that was cut short is a ``PlanError``, for half a plan may mean another one; with
    ``cut`` it is returned, for planners that ask again: they look at ``finish``. A reply without any words or calls
    is returned too. What the service raises comes through.
    """
    if not chat.capabilities.sources:
        request = replace(request, messages=render_sources(request.messages))
    reply = await chat.complete(request)
    emit(ChatUsed(reply.service or chat.name, reply.model, reply.usage))
    return reply if cut else whole(reply, chat, request.max_tokens)


def whole(reply: ChatReply, chat: ChatService, max_tokens: int | None = None) -> ChatReply:
    """Return the reply, or raise ``PlanError`` for one that was cut short; it says what to do and where it broke off.

    ``max_tokens`` is what was asked for at most, None where the service decided.
    """
    if reply.finish != "length":
        return reply
    bound = f"{max_tokens:,} tokens" if max_tokens is not None else "the service's bound on tokens"
    end = reply.text[-_SHOWN:]
    raise PlanError(
        f"The reply of the chat service {reply.service or chat.name!r} was cut short at {bound}, so the plan in it is "
        f"not whole. Allow more with max_tokens, or give the goal in parts. It broke off at: {end!r}"
    )
