"""What context providers add to a turn of an agent."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from portico._agents.reducing import History
from portico._agents.thread import AgentTurn, Context, ContextProvider
from portico._chat.messages import Message
from portico._tool_loop.values import Turn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from portico._agents.thread import ContextProvider


_log = logging.getLogger(__name__)


async def added_before(providers: Sequence[ContextProvider], turn: AgentTurn) -> list[Context]:
    """Return what the providers add, in their order; they are asked at the same time.

    Raises what the first of them raises, when the others have ended, and ``TypeError`` and ``ValueError`` that name
    the provider for what cannot be added.
    """
    tasks = _started([lambda provider=provider: provider.before(turn) for provider in providers])  # type: ignore[misc]
    try:
        if tasks:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        stopped = [task for task in tasks if task.cancel()]
        await _ended(tasks)
    failures = _failures(providers, tasks, besides=stopped)
    if failures:
        raise _together(failures, "before")
    return [_checked(provider, task.result()) for provider, task in zip(providers, tasks, strict=True)]


async def told_after(providers: Sequence[ContextProvider], turn: AgentTurn, outcome: Turn[Any] | BaseException) -> None:
    """Tell every provider how the turn ended, at the same time, whatever becomes of this one.

    Raises what the first of them raises; of a turn that has failed already, that is noted with its error.
    """
    # A task that was started runs up to where it waits, also when this one is cancelled at once: each is told.
    tasks = _started([lambda provider=provider: provider.after(turn, outcome) for provider in providers])  # type: ignore[misc]
    await _ended(tasks)
    failures = _failures(providers, tasks)
    if failures and not isinstance(outcome, BaseException):
        raise _together(failures, "after")
    for provider, error in failures:
        if isinstance(outcome, Exception):
            outcome.add_note(_note(provider, error, "after"))
        else:
            _log.warning("%s failed after a turn that was stopped.", named(provider), exc_info=error)


def named(provider: ContextProvider) -> str:
    """Return how errors speak of a provider."""
    name = getattr(provider, "name", None)
    kind = type(provider).__name__
    return (
        f"the context provider {name!r} ({kind})" if isinstance(name, str) and name else f"the context provider {kind}"
    )


def _started(calls: Sequence[Callable[[], Awaitable[Any]]]) -> list[asyncio.Task[Any]]:
    async def call(each: Callable[[], Awaitable[Any]]) -> Any:
        return await each()

    return [asyncio.ensure_future(call(each)) for each in calls]


async def _ended(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Wait until all have ended; a cancellation is passed on to them, and raised when they have ended."""
    cancelled: asyncio.CancelledError | None = None
    while running := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(running)
        except asyncio.CancelledError as error:
            cancelled = error
            for task in running:
                task.cancel()
    for task in tasks:
        if not task.cancelled():
            task.exception()  # looked at: asyncio logs those of which no one took note
    if cancelled is not None:
        raise cancelled


def _failures(
    providers: Sequence[ContextProvider], tasks: Sequence[asyncio.Task[Any]], *, besides: Sequence[object] = ()
) -> list[tuple[ContextProvider, BaseException]]:
    """Return what providers raised; one that was cancelled, and not by us, has failed as well."""
    failures: list[tuple[ContextProvider, BaseException]] = []
    for provider, task in zip(providers, tasks, strict=True):
        if not task.cancelled():
            error = task.exception()
        elif task in besides:
            error = None
        else:
            error = RuntimeError(f"{named(provider)} did not end: something that it waited for was cancelled")
        if error is not None:
            failures.append((provider, error))
    return failures


def _together(failures: Sequence[tuple[ContextProvider, BaseException]], when: str) -> BaseException:
    """Return the first error, with a note of each other one."""
    (_, first), *others = failures
    for provider, error in others:
        first.add_note(_note(provider, error, when))
    return first


def _note(provider: ContextProvider, error: BaseException, when: str) -> str:
    return f"Besides, {named(provider)} failed {when} the turn: {error!r}"


def _checked(provider: ContextProvider, context: Context | None) -> Context:
    if context is None:
        return Context()
    if not isinstance(context, Context):
        raise TypeError(f"{named(provider)} gave {context!r:.80} before the turn, and not a Context or None")
    if not all(isinstance(message, Message) for message in context.messages):
        raise TypeError(f"{named(provider)} adds messages that are none: {context.messages!r:.80}")
    try:
        History.split_turns(context.messages)
    except ValueError as error:
        raise ValueError(f"{named(provider)} adds messages that no service takes: {error}") from error
    return context
