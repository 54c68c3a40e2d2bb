"""One turn at a time on a thread, in the order in which they came."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from portico._chat.messages import Usage
from portico.errors import ThreadBusy

if TYPE_CHECKING:
    from collections.abc import Iterator

_CLOSING = 32
"""Passes of the event loop until a dropped stream begins to close: two, and two for each one around it."""

_INSIDE: ContextVar[tuple[Hold, ...]] = ContextVar("portico_turns_being_taken", default=())


class Hold:
    """The right to take a turn, until `TurnLock.release`."""

    __slots__ = ("closing", "driver", "spent")

    def __init__(self) -> None:
        self.spent = Usage()
        """The cost of agents that the turn called as functions."""
        self.driver: asyncio.Task[object] | None = None
        self.closing = False

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Do a step of the turn. What it calls, and every task that it starts, belongs to the turn."""
        token = _INSIDE.set((*_INSIDE.get(), self))
        try:
            self.driver = asyncio.current_task()
        except RuntimeError:  # No event loop runs any more.
            self.driver = None
        try:
            yield
        finally:
            _INSIDE.reset(token)


def spend(usage: Usage) -> None:
    """Add to the cost of the turn around the caller, if there is one."""
    for hold in _INSIDE.get()[-1:]:
        hold.spent += usage


class TurnLock:
    """Let one turn in at a time, first come, first served, on one event loop at a time.

    It refuses a function that its own turn calls, and a task that has its own stream open: they would wait for
    themselves.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = asyncio.Lock()
        self.holder: Hold | None = None

    @property
    def busy(self) -> bool:
        """Whether a turn is under way; one of a closed event loop has ended."""
        return self.holder is not None and self._loop is not None and not self._loop.is_closed()

    async def enter(self, *, wait: bool = True) -> Hold:
        """Enter when all earlier turns have left.

        Raises ``ThreadBusy`` if a turn is under way and ``wait`` is false, and if waiting would never end.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self.busy:
                raise ThreadBusy(f"The thread {self.name!r} is busy with a turn on another event loop.")
            self._loop, self._lock, self.holder = loop, asyncio.Lock(), None
        if self.holder in _INSIDE.get():
            raise ThreadBusy(
                f"The thread {self.name!r} is busy with the turn that this one is a part of. Give an agent that is "
                "called inside a turn its own thread."
            )
        await self._let_close()
        if self.busy and not wait:
            raise ThreadBusy(f"The thread {self.name!r} is busy with another turn, and it is set to refuse others.")
        if self.holder is not None and not self.holder.closing and self.holder.driver is asyncio.current_task():
            raise ThreadBusy(
                f"The thread {self.name!r} is busy with a stream that this task has left open. Read the stream to its "
                "end, or close it: async with contextlib.aclosing(agent.stream(…)) as events."
            )
        await self._lock.acquire()
        self.holder = Hold()
        return self.holder

    def release(self, hold: Hold) -> None:
        """Leave; leaving twice is leaving once."""
        if self.holder is hold:
            self.holder = None
            self._lock.release()

    async def _let_close(self) -> None:
        """Give a stream that this task has just dropped the time to close: the event loop does it some passes later."""
        for _ in range(_CLOSING):
            holder = self.holder
            if holder is None or not (holder.closing or holder.driver is asyncio.current_task()):
                return
            await asyncio.sleep(0)
