"""Which failures of a step may pass, and how long to wait before the next attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portico.errors import FunctionFailed, LimitExceeded, PorticoError, RateLimited, ServiceTimeout, ServiceUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_PAUSE = 0.5
"""Seconds before the second attempt; each further pause is twice as long."""
LONGEST_PAUSE = 60.0


def may_pass(error: BaseException | None) -> bool:
    """Return whether a function that failed so may succeed when it is called again with the same arguments.

    >>> may_pass(ServiceUnavailable("down")), may_pass(PorticoError("no such function"))
    (True, False)

    An error of a function that is no ``PorticoError`` comes as ``FunctionFailed`` and may pass. A service that asks
    for a wait of more than `LONGEST_PAUSE` is not asked again.
    """
    if isinstance(error, RateLimited):
        return error.retry_after is None or error.retry_after <= LONGEST_PAUSE
    if isinstance(error, FunctionFailed):
        return not isinstance(error.__cause__, PorticoError)
    return isinstance(error, ServiceUnavailable | ServiceTimeout | TooLong)


def pause(attempt: int, error: Exception) -> float:
    """Return the seconds to wait after a failed ``attempt``, counted from 1.

    >>> [pause(attempt, ServiceUnavailable("down")) for attempt in (1, 2, 3, 100)]
    [0.5, 1.0, 2.0, 60.0]
    >>> pause(1, RateLimited("slowly", retry_after=7))
    7
    """
    if isinstance(error, RateLimited) and error.retry_after is not None:
        return max(error.retry_after, 0)
    # Floats end at 2**1024.
    return float(min(FIRST_PAUSE * 2 ** min(attempt - 1, 20), LONGEST_PAUSE))


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, its cause, the cause of that and so on, a hundred at most."""
    for _ in range(100):
        if error is None:
            return
        yield error
        error = error.__cause__


class TooLong(LimitExceeded):
    """A step's own time limit."""


class RunLimit(LimitExceeded):
    """A limit of the whole run: further items meet it too."""
