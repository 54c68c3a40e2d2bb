"""One turn at a time on a thread, in the order of coming, whatever event loop or thread of execution they come from."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock
from typing import TYPE_CHECKING

from portico._chat.messages import Usage
from portico.errors import ThreadBusy

if TYPE_CHECKING:
    from collections.abc import Iterator

_CLOSING = 32
"""Passes of the event loop until a stream that was dropped begins to close: two, and two for each one around it."""

_INSIDE: ContextVar[tuple[Hold, ...]] = ContextVar("portico_turns_being_taken", default=())


class Hold:
    """The right to take a turn. It ends with `Turnstile.release`, or with the object itself.

    A stream that is left on an event loop that is closed never comes to its end; its hold goes with its frame.
    """

    __slots__ = ("__weakref__", "closing", "driver", "spent", "waits_for")

    def __init__(self) -> None:
        self.spent = Usage()
        """What agents cost that were called as functions in the turn."""
        self.driver: asyncio.Task[object] | None = None
        self.closing = False
        self.waits_for: list[Turnstile] = []

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


class Turnstile:
    """Let one in at a time: first come, first served.

    >>> async def both():
    ...     turnstile = Turnstile("t1")
    ...     hold = await turnstile.enter()
    ...     second = asyncio.ensure_future(turnstile.enter())
    ...     await asyncio.sleep(0)
    ...     print(turnstile.busy, second.done())
    ...     turnstile.release(hold)
    ...     turnstile.release(await second)
    ...     print(turnstile.busy)
    >>> asyncio.run(both())
    True False
    False

    Not an `asyncio.Lock`, which belongs to one event loop: two requests of a server may come from two. Who would wait
    for itself is refused: a function that a turn calls, and a task that has a stream of its own open.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._guard = RLock()  # an RLock, since a collection of garbage inside of it may end a hold
        self._holder: weakref.ref[Hold] | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def busy(self) -> bool:
        """Whether somebody is in."""
        return self._holder is not None

    @property
    def holder(self) -> Hold | None:
        """The hold of whoever is in."""
        holder = self._holder
        return None if holder is None else holder()

    async def enter(self, *, wait: bool = True) -> Hold:
        """Go in, when all that came before have left.

        Raises ``ThreadBusy`` where somebody is in and ``wait`` is false, or where waiting would never end.
        """
        if not wait:
            await self._let_close()
        ticket: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._guard:
            self._waiting.append(ticket)
            hold = self._admit(ticket)
            if hold is None and not wait:
                self._waiting.remove(ticket)
                raise ThreadBusy(f"The thread {self.name!r} is busy with another turn, and it is set to refuse others.")
        if hold is not None:
            return hold
        around = _INSIDE.get()
        for each in around:
            each.waits_for.append(self)
        try:
            await self._refuse_to_wait_for_itself(around, ticket)
            await ticket
        except BaseException:
            with self._guard:
                if ticket in self._waiting:
                    self._waiting.remove(ticket)
            self._call_next()
            raise
        finally:
            for each in around:
                each.waits_for.remove(self)
        with self._guard:
            hold = self._admit(ticket)
        assert hold is not None  # noqa: S101 - only the first is called, and nobody can come in before it
        return hold

    def release(self, hold: Hold) -> None:
        """Leave; leaving twice is leaving once."""
        with self._guard:
            if self._holder is None or self._holder() is not hold:
                return
            self._holder = None
        self._call_next()

    def _admit(self, ticket: asyncio.Future[None]) -> Hold | None:
        """Let in the first who waits, if nobody is in. Called with the guard."""
        if self._holder is not None or self._waiting[0] is not ticket:
            return None
        self._waiting.popleft()
        hold = Hold()
        gone = weakref.WeakMethod(self._gone)

        def when_gone(holder: weakref.ref[Hold]) -> None:
            method = gone()
            if method is not None:
                method(holder)

        self._holder = weakref.ref(hold, when_gone)
        return hold

    def _gone(self, holder: weakref.ref[Hold]) -> None:
        with self._guard:
            if self._holder is not holder:
                return
            self._holder = None
        self._call_next()

    def _call_next(self) -> None:
        """Call the first who waits; whose event loop is closed waits no more."""
        with self._guard:
            while self._waiting and self._holder is None:
                ticket = self._waiting[0]
                try:
                    ticket.get_loop().call_soon_threadsafe(_call, ticket)
                except RuntimeError:
                    self._waiting.popleft()
                else:
                    return

    async def _refuse_to_wait_for_itself(self, around: tuple[Hold, ...], ticket: asyncio.Future[None]) -> None:
        holder = self.holder
        if holder is not None and _waits_for(holder, around, set()):
            raise ThreadBusy(
                f"The thread {self.name!r} is busy with the turn that this one is a part of, so this one would wait "
                "for ever. Give the agent that is called from inside of a turn a thread of its own."
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
    for turnstile in tuple(holder.waits_for):
        another = turnstile.holder
        if another is not None and another not in seen and _waits_for(another, around, seen):
            return True
    return False


def _call(ticket: asyncio.Future[None]) -> None:
    if not ticket.done():
        ticket.set_result(None)
