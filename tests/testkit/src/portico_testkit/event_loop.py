"""Whether an event loop goes on while something is at work, and waits for nothing itself."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

import pytest

__all__ = ["Heartbeat", "heartbeat", "leaves_the_event_loop_free"]

_INTERVAL = 0.005
"""Seconds between two turns that are counted."""

_MEASUREMENTS = 3
"""How often a stall is looked at. A busy host stops any process for a second now and then, but not each time."""

_INSTEAD = "what takes long is awaited, or belongs in a thread: `await asyncio.to_thread(…)`"

_T = TypeVar("_T")


class Heartbeat:
    """The turns of an event loop: how many there were, and the longest time between two.

    >>> async def two_calls() -> bool:
    ...     async with heartbeat() as beat:
    ...         await beat.turned(2)
    ...     return beat.turns >= 2 and beat.longest <= beat.whole
    >>> asyncio.run(two_calls())
    True
    """

    def __init__(self) -> None:
        self.turns = 0
        self.longest = 0.0
        """Seconds of the longest stall."""
        self.whole = 0.0
        """Seconds from the beginning to the last turn."""
        self._last = asyncio.get_running_loop().time()

    async def turned(self, turns: int) -> None:
        """Wait until the loop has turned so many times more."""
        end = self.turns + turns
        while self.turns < end:
            await asyncio.sleep(_INTERVAL)

    def _note(self) -> None:
        now = asyncio.get_running_loop().time()
        self.longest = max(self.longest, now - self._last)
        self.whole += now - self._last
        self._last = now

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(_INTERVAL)
            self._note()
            self.turns += 1


@asynccontextmanager
async def heartbeat() -> AsyncIterator[Heartbeat]:
    """Count the turns of the running event loop until the block is left; its task is gone then."""
    beat = Heartbeat()
    beating = asyncio.create_task(beat._beat(), name="heartbeat")
    await asyncio.sleep(0)
    try:
        yield beat
        beat._note()
    finally:
        beating.cancel()
        await asyncio.wait([beating])


async def leaves_the_event_loop_free(work: Callable[[int], Awaitable[_T]], *, floor: float = 0.5) -> _T:
    """Return what the work gives, which may not let the loop stand still for half its time (or ``floor`` seconds).

    ``work`` is called with the number of the measurement, from 0: up to three times, since a host or a collection of
    garbage stops now and then what is right too. Each time it needs work that no cache answers. Raises
    ``AssertionError`` where the loop stood still each time, and at once where its thread calls ``time.sleep``.
    """
    stalls = []
    for number in range(_MEASUREMENTS):
        with _no_sleep():
            async with heartbeat() as beat:
                result = await work(number)
        if beat.longest <= max(floor, beat.whole / 2):
            return result
        stalls.append(f"{beat.longest:.2f} of {beat.whole:.2f} s")
    told = f"the event loop stood still for {', '.join(stalls)}"
    raise AssertionError(f"{told}: {_INSTEAD}")


@contextmanager
def _no_sleep() -> Iterator[None]:
    """Have ``time.sleep`` fail in this thread."""
    sleep, own = time.sleep, threading.get_ident()

    def noted(seconds: float) -> None:
        if threading.get_ident() == own:
            raise AssertionError(f"the event loop waits by time.sleep({seconds}): {_INSTEAD}")
        sleep(seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "sleep", noted)
        yield
