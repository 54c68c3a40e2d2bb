"""Replies that cannot be used go back to the model with what is wrong, within bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from portico.chat import ChatRequest, Message
from portico.errors import PlanError, PlanFormatError
from portico.planning.asking import ask
from portico.plans.task import Emit
from portico.ports.chat_service import ChatService

__all__ = ["ReplyProblem", "ask_until_usable", "said_before"]

T = TypeVar("T")

_CUT = "The reply was cut short: it was too long. Write a shorter plan."
_SENT_BACK = 20_000


class ReplyProblem(ValueError):
    """A reply that cannot be used; the message is for the model."""


async def ask_until_usable(
    chat: ChatService,
    request: ChatRequest,
    emit: Emit,
    *,
    read: Callable[[str], T],
    repair: Callable[[str], str],
    repairs: int,
) -> tuple[T, str]:
    """Return what ``read`` makes of a reply, and the reply; ask again while it raises a problem.

    ``read`` raises `ReplyProblem` or ``PlanFormatError``; ``repair`` makes the words with which the problem goes back,
    ``repairs`` times at most. Half a reply is a problem too, and never read: half a plan may mean another one.
    Raises ``PlanError`` with the last problem, and what the service raises.
    """
    problem = ""
    for _ in range(repairs + 1):
        reply = await ask(chat, request, emit, cut=True)
        try:
            if reply.finish == "length":
                raise ReplyProblem(_CUT)
            return read(reply.text), reply.text
        except (PlanFormatError, ReplyProblem) as error:
            problem = str(error)
        told = (said_before(reply.text, _SENT_BACK), Message.of("user", repair(problem)))
        request = replace(request, messages=(*request.messages, *told))
    tries = f"{repairs + 1} tries" if repairs else "one try"
    raise PlanError(
        f"The chat service {chat.name!r} wrote no plan that can be used, in {tries}. Set another chat service, one "
        f"with a language model, or allow more repairs. The last problem: {problem}"
    )


def said_before(text: str, most: int) -> Message:
    """Return the message that shows a model what it wrote, up to ``most`` characters of it.

    >>> said_before("  ", 100).text
    '(nothing)'

    Services refuse a turn without any words.
    """
    if not text.strip():
        return Message.of("assistant", "(nothing)")
    return Message.of("assistant", text if len(text) <= most else f"{text[:most]}…")
