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
        if place is None:
            self._refuse_if_closed()
            for other in list(self._places):
                if other.is_closed():
                    self._places.pop(other, None)
            place = self._places[loop] = _Place()
        if place.sdk is not None and not (self._own and place.sdk.is_closed()):
            return place.sdk
        async with place.making:
            self._refuse_if_closed()
            if place.sdk is None or (self._own and place.sdk.is_closed()):
                sdk = await self._make()
                if self._own:
                    # When a loop ends it closes its asynchronous generators: the one moment at which a client
                    # that nobody closed can be closed properly.
                    place.until_the_loop_ends = _closing(sdk)
                    await anext(place.until_the_loop_ends)
                    if self.closed:
                        await place.until_the_loop_ends.aclose()
                self._refuse_if_closed()
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


async def _closing(sdk: openai.AsyncOpenAI) -> AsyncGenerator[None, None]:
    # It knows nothing else: in a circle of references, a service that was forgotten would be taken apart before this
    # comes to close its client.
    try:
        yield
    finally:
        await sdk.close()
