"""How much one visitor may ask for: sizes, times, and requests a second."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import Message, Receive

from portico_serve._guard.refusals import Refused

_MOST_VISITORS = 1_000


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of the server. ``requests`` and ``wrong_tokens`` may come at once; then so many a second."""

    body: int = 1_000_000
    head_seconds: float = 30
    body_seconds: float = 30
    requests: int = 300
    requests_a_second: float = 50
    wrong_tokens: int = 20
    wrong_tokens_a_second: float = 0.2
    streams: int = 256


class Allowances:
    """For each visitor, how much is left; it fills up again with time."""

    def __init__(self, most: int, a_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._a_second, self._clock = most, a_second, clock
        self._left: dict[str, tuple[float, float]] = {}

    def wait(self, visitor: str) -> float:
        """Return how many seconds the visitor has to wait; 0 if something is left."""
        left = self._now(visitor)
        return 0.0 if left >= 1 else (1 - left) / self._a_second

    def take(self, visitor: str) -> None:
        """Take one."""
        left = self._now(visitor)
        self._left.pop(visitor, None)
        self._left[visitor] = (left - 1, self._clock())
        if len(self._left) > _MOST_VISITORS:
            del self._left[next(iter(self._left))]

    def _now(self, visitor: str) -> float:
        left, at = self._left.get(visitor, (float(self._most), 0.0))
        return min(float(self._most), left + (self._clock() - at) * self._a_second)


def too_many(seconds: float, what: str) -> Refused:
    """Return the refusal of one who has to wait."""
    wait = max(1, math.ceil(seconds))
    return Refused(429, "TooMany", f"Too many {what}. Try again in {wait} s.", {"retry-after": str(wait)})


async def read_body(receive: Receive, limits: Limits) -> bytes | None:
    """Read a body that is not too large and comes in time; None if the client goes away meanwhile."""
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            more = True
            while more:
                message: Message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                body += message.get("body", b"")
                if len(body) > limits.body:
                    raise too_large(limits)
                more = message.get("more_body", False)
    except TimeoutError:
        words = f"The request took longer than {limits.body_seconds:g} s to come."
        raise Refused(408, "TooSlow", words, {"connection": "close"}) from None
    return bytes(body)


def too_large(limits: Limits) -> Refused:
    """Return the refusal of a body that is too large."""
    return Refused(413, "TooLarge", f"The request has more than {limits.body:,} bytes.")
