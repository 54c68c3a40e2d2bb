"""An event loop whose clock moves only when nothing else is to be done."""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

__all__ = ["on_virtual_time"]

_P = ParamSpec("_P")


def on_virtual_time(test: Callable[_P, Coroutine[Any, Any, None]]) -> Callable[_P, None]:
    """Run an async test on a loop of its own where an hour of sleep takes no time, and no pause of the host any.

    The clock is ``loop.time()``. It stands still while a task can go on, and jumps to the next timer when none can:
    so a time-out ends what waits, never what is at work. For tests without sockets, processes and threads, since
    nothing is waited for that comes from outside of the loop while there is a timer.

    >>> @on_virtual_time
    ... async def test_an_hour_passes() -> None:
    ...     began = asyncio.get_running_loop().time()
    ...     await asyncio.sleep(3600)
    ...     assert asyncio.get_running_loop().time() - began == 3600
    >>> test_an_hour_passes()
    """

    @functools.wraps(test)
    def run(*arguments: _P.args, **named: _P.kwargs) -> None:
        with asyncio.Runner(loop_factory=_VirtualTimeLoop) as runner:
            runner.run(test(*arguments, **named))

    return run


class _JumpingSelector(selectors.DefaultSelector):
    """Move the clock instead of waiting."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready; where nothing is, let the time of the next timer come."""
        events = super().select(None if timeout is None else 0)
        if not events and timeout is not None:
            self.now += max(0.0, timeout)
        return events


class _VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _JumpingSelector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now
