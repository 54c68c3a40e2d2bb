"""One turn at a time on a thread of conversation, in the order in which they came."""

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
"""Passes of the event loop until a stream that was dropped begins to close: two, and two for each one around it."""

_INSIDE: ContextVar[tuple[Hold, ...]] = ContextVar("portico_turns_being_taken", default=())


class Hold:
    """The right to take a turn, until `TurnLock.release`."""

    __slots__ = ("closing", "driver", "spent", "waits_for")

    def __init__(self) -> None:
        self.spent = Usage()
        """What agents cost that were called as functions in the turn."""
        self.driver: asyncio.Task[object] | None = None
        self.closing = False
        self.waits_for: list[TurnLock] = []

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Do a step of the turn: what is called in it, and every task that it starts, belongs to the turn."""
        token = _INSIDE.set((*_INSIDE.get(), self))
        try:
            self.driver = asyncio.current_task()
        except RuntimeError:  # a stream that is collected when no event loop runs any more
            self.driver = None
        try:
            yield
        finally:
            _INSIDE.reset(token)


def spend(usage: Usage) -> None:
    """Add to what the turn costs that this is called in, if it is called in one."""
    for hold in _INSIDE.get()[-1:]:
        hold.spent += usage


class TurnLock:
    """Let one turn in at a time, first come, first served.

    >>> async def both():
    ...     lock = TurnLock("t1")
    ...     hold = await lock.enter()
    ...     second = asyncio.ensure_future(lock.enter())
    ...     await asyncio.sleep(0)
    ...     print(lock.busy, second.done())
    ...     lock.release(hold)
    ...     lock.release(await second)
    ...     print(lock.busy)
    >>> asyncio.run(both())
    True False
    False

    It refuses who would wait for itself: a function that a turn calls, and a task that has its own stream open. It
    belongs to one event loop at a time, as a kernel does.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = asyncio.Lock()
        self.holder: Hold | None = None

    @property
    def busy(self) -> bool:
        """Whether a turn is under way; one of an event loop that is closed has ended."""
        return self.holder is not None and self._loop is not None and not self._loop.is_closed()

    async def enter(self, *, wait: bool = True) -> Hold:
        """Enter when all that came before have left.

        Raises ``ThreadBusy`` if a turn is under way and ``wait`` is false, and if waiting would never end.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self.busy:
                raise ThreadBusy(f"The thread {self.name!r} is busy with a turn on another event loop.")
            self._loop, self._lock, self.holder = loop, asyncio.Lock(), None
        if self.busy and not wait:
            await self._let_close()
            if self.busy:
                raise ThreadBusy(f"The thread {self.name!r} is busy with another turn, and it is set to refuse others.")
        around = _INSIDE.get()
        for each in around:
            each.waits_for.append(self)
        try:
            if self.busy:
                await self._refuse_to_wait_for_itself(around)
            await self._lock.acquire()
        finally:
            for each in around:
                each.waits_for.remove(self)
        self.holder = Hold()
        return self.holder

    def release(self, hold: Hold) -> None:
        """Leave; leaving twice is leaving once."""
        if self.holder is hold:
            self.holder = None
            self._lock.release()

    async def _refuse_to_wait_for_itself(self, around: tuple[Hold, ...]) -> None:
        holder = self.holder
        if holder is not None and _waits_for(holder, around, set()):
            raise ThreadBusy(
                f"The thread {self.name!r} is busy with the turn that this one is a part of, so this one would wait "
                "for ever. Give the agent that is called from inside of a turn its own thread."
            )
        await self._let_close()
        holder = self.holder
        if holder is None or holder.closing or holder.driver is not asyncio.current_task():
            return
        raise ThreadBusy(
            f"The thread {self.name!r} is busy with a stream that this task has left open, so the task would wait "
            "for itself. Read the stream to its end, or close it: "
            "async with contextlib.aclosing(agent.stream(…)) as events."
        )

    async def _let_close(self) -> None:
        """Give a stream that this task has just dropped the time to close: the event loop does it some passes later."""
        task = asyncio.current_task()
        for _ in range(_CLOSING):
            holder = self.holder
            if holder is None or not (holder.closing or holder.driver is task):
                return
            await asyncio.sleep(0)


def _waits_for(holder: Hold, around: tuple[Hold, ...], seen: set[Hold]) -> bool:
    """Tell whether a turn is one of these, or waits for a thread that one of them has."""
    if holder in around:
        return True
    seen.add(holder)
    for lock in tuple(holder.waits_for):
        another = lock.holder
        if another is not None and another not in seen and _waits_for(another, around, seen):
            return True
    return False
