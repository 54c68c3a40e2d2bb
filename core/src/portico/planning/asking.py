"""How planners ask a chat service: one whole reply, paid for and not cut short."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from portico.chat import ChatReply, ChatRequest, Message, render_sources
from portico.errors import PlanError
from portico.plans.task import ChatUsed, Emit
from portico.ports.chat_service import ChatService

__all__ = ["Sampling", "ask", "sampled_request", "whole"]

_SHOWN = 80


class Sampling(Protocol):
    """The settings of a planner that say how its model writes; None leaves it to the service.

    >>> from types import SimpleNamespace
    >>> settings = SimpleNamespace(temperature=0.2, top_p=None, max_tokens=500, seed=7)
    >>> sampled_request([Message.of("user", "Plan.")], settings).max_tokens
    500
    """

    @property
    def temperature(self) -> float | None:
        """How freely it writes, 0 to 2."""

    @property
    def top_p(self) -> float | None:
        """Which share of the likely tokens is drawn from, 0 to 1."""

    @property
    def max_tokens(self) -> int | None:
        """How many tokens a reply may have."""

    @property
    def seed(self) -> int | None:
        """What makes it draw the same each time."""


def sampled_request(messages: Iterable[Message], settings: Sampling) -> ChatRequest:
    """Make a planner's request of what the model is told and of the settings."""
    return ChatRequest(
        tuple(messages),
        temperature=settings.temperature,
        top_p=settings.top_p,
        max_tokens=settings.max_tokens,
        seed=settings.seed,
    )


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
