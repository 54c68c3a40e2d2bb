"""One client of the SDK for each event loop that a service is used on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field

import openai


@dataclass(slots=True)
class _Place:
    """What a service has on one event loop."""

    making: asyncio.Lock = field(default_factory=asyncio.Lock)
    sdk: openai.AsyncOpenAI | None = None
    until_the_loop_ends: AsyncGenerator[None, None] | None = None


class ClientPerLoop:
    """Make a client when a loop first needs one, and close it when that loop ends, if nobody closed it before.

    A client's connections belong to the loop on which they were made. A service that scripts use from one
    ``asyncio.run`` after another, or from threads that each have a loop, needs one client for each.
    """

    def __init__(self, make: Callable[[], Awaitable[openai.AsyncOpenAI]], *, own: bool, refusal: str) -> None:
        self._make = make
        self._own = own
        self._refusal = refusal
        self._places: dict[asyncio.AbstractEventLoop, _Place] = {}
        self.closed = False

    def __len__(self) -> int:
        return sum(place.sdk is not None for place in self._places.values())

    async def here(self) -> openai.AsyncOpenAI:
        """Return the running loop's client; raises ``RuntimeError`` after closing."""
        loop = asyncio.get_running_loop()
        place = self._places.get(loop)
        if place is not None and place.sdk is not None:
            return place.sdk
        self._refuse_if_closed()
        if place is None:
            # A loop that was closed without ending its asynchronous generators left its place behind.
            for other in [known for known in list(self._places) if known.is_closed()]:
                self._places.pop(other, None)
            place = self._places[loop] = _Place()
        async with place.making:
            if place.sdk is None:
                sdk = await self._make()
                if self.closed and self._own:
                    await sdk.close()
                self._refuse_if_closed()
                if self._own:
                    # When a loop ends it closes its asynchronous generators: the one moment at which a client
                    # that nobody closed can be closed properly.
                    place.until_the_loop_ends = self._closing(loop, sdk)
                    await anext(place.until_the_loop_ends)
                place.sdk = sdk
            return place.sdk

    async def aclose(self) -> None:
        """Close all clients, those of other loops as soon as these come to it. A second time does nothing."""
        self.closed = True
        places, self._places = self._places, {}
        place = places.pop(asyncio.get_running_loop(), None)
        # Whoever lets go of a generator that has begun has its own loop close it.
        places.clear()
        if place is not None and place.until_the_loop_ends is not None:
            await place.until_the_loop_ends.aclose()

    def _refuse_if_closed(self) -> None:
        if self.closed:
            raise RuntimeError(self._refusal)

    async def _closing(self, loop: asyncio.AbstractEventLoop, sdk: openai.AsyncOpenAI) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._places.pop(loop, None)
            await sdk.close()
