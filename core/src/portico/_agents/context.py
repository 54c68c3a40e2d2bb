"""What context providers add to a turn of an agent."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from portico._agents.reducing import History
from portico._agents.thread import AgentTurn, Context
from portico._functions.middleware import run_together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from portico._agents.thread import ContextProvider
    from portico._tool_loop.values import Turn


_log = logging.getLogger(__name__)


async def ask_providers(providers: Sequence[ContextProvider], turn: AgentTurn) -> list[Context]:
    """Return what the providers add, in their order; they are asked at the same time.

    Raises the first error of a provider, and ``TypeError`` and ``ValueError``, which name the provider, for what cannot
    be added.
    """
    contexts = await run_together(provider.before(turn) for provider in providers)
    return [_require_context(provider, context) for provider, context in zip(providers, contexts, strict=True)]


async def tell_providers(
    providers: Sequence[ContextProvider], turn: AgentTurn, outcome: Turn[Any] | BaseException
) -> None:
    """Tell every provider how the turn ended, at the same time.

    Raises the first error of a provider; after a turn that failed, errors are logged.
    """
    tasks = [asyncio.ensure_future(each.after(turn, outcome)) for each in providers]
    cancelled: asyncio.CancelledError | None = None
    while running := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(running)
        except asyncio.CancelledError as stop:
            cancelled = stop
            for task in running:  # Each has begun, so that each provider knows.
                task.cancel()
    failures = [error for task in tasks if not task.cancelled() and (error := task.exception()) is not None]
    if cancelled is not None:
        raise cancelled
    if failures and not isinstance(outcome, BaseException):
        raise failures[0]
    for failure in failures:
        _log.warning("A context provider failed after a turn that failed: %r", failure, exc_info=failure)


def _require_context(provider: ContextProvider, context: Any) -> Context:
    if context is None:
        return Context()
    who = f"the context provider {type(provider).__name__}"
    if not isinstance(context, Context):
        raise TypeError(f"{who} gave {context!r:.80} before the turn, and not a Context or None")
    try:
        History.split_turns(context.messages)
    except ValueError as error:
        raise ValueError(f"{who} adds messages that no service takes: {error}") from error
    return context
