"""How the ChatService kit asks, and what holds for every reply, stream and refusal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import pytest

from portico.chat import ChatCapabilities, ChatDelta, ChatReply, ChatRequest, Reasoning, Source, Text, ToolCall, Usage
from portico.errors import PorticoError
from portico.ports.chat_service import ChatService
from portico.schemas import PlainSchemaValidator

__all__ = [
    "WAYS",
    "Caller",
    "Pieces",
    "answer",
    "check_json",
    "check_refusal",
    "check_reply",
    "comparable",
    "no_tasks_but",
]

WAYS = ("complete", "stream")
"""The two ways in which a service is asked everything."""

_PATIENCE = 10.0
"""Seconds that what was given up has to come to its end."""

_LONGEST_WAIT = 90.0
"""Seconds for one odd request: beyond, nobody believes that an answer comes."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Asks one service, with a bound to what it writes and a seed to say it again, where it takes those."""

    service: ChatService
    max_output: int

    @property
    def capabilities(self) -> ChatCapabilities:
        """What the service declares."""
        return self.service.capabilities

    async def answer(self, way: str, request: ChatRequest, *, share: float = 1) -> ChatReply:
        """Return the checked reply; ``share`` is how much of the usual bound it may have."""
        return await answer(self.service, way, self.bounded(request, share))

    def check_refusal(
    error: Exception, what: str, refusals: Sequence[type[Exception]] = (PorticoError, ValueError)
) -> None:
    """Hold an error to be one of ``refusals``, our own or Python's plain one, and to say something.

    An error of a library that derives from ``ValueError`` (of an encoder, of a parser) is a vendor's error still.
    """
    own = isinstance(error, PorticoError) or type(error) in refusals
    if not own or not isinstance(error, tuple(refusals)):
        allowed = " or ".join(kind.__name__ for kind in refusals)
        raise AssertionError(f"{what} raised {type(error).__name__}, not {allowed}: {error}") from error
    assert str(error).strip(), f"{what} raised {type(error).__name__} without a word"


async def no_tasks_but(before: set[asyncio.Task[Any]]) -> None:
    """Wait until no task runs that did not run ``before``; fail with the names of those that go on."""
    loop = asyncio.get_running_loop()
    end = loop.time() + _PATIENCE
    while left := {task for task in asyncio.all_tasks() if not task.done()} - before:
        if loop.time() > end:
            named = ", ".join(sorted(f"{task.get_name()} ({task.get_coro()})" for task in left))
            for task in left:
                task.cancel()
            pytest.fail(f"{len(left)} tasks go on {_PATIENCE:g} seconds after all was given up: {named}")
        await asyncio.sleep(0.01)

