"""A clock that stands still until a test turns it."""

from __future__ import annotations

__all__ = ["StillClock"]


class StillClock:
    """Tell ``now``, in seconds since whenever the test says; for what takes a clock in place of ``time.time``.

    >>> clock = StillClock(100.0)
    >>> clock.now += 60
    >>> clock()
    160.0
    """

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Return the time."""
        return self.now
