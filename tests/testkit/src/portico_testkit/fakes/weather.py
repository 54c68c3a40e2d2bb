"""Weather that is always clear: a plugin for tests of planners, and a run of it."""

from __future__ import annotations

import asyncio
from typing import Any

from portico import Kernel, Run, function
from portico.plans import Budget, RunEvent
from portico.ports import Planner

__all__ = ["Weather", "run_weather"]

_PATIENCE = 10
"""Seconds that a call waits for the others."""


class Weather:
    """The weather.

    >>> weather = Weather()
    >>> asyncio.run(weather.forecast("Oslo"))
    {'city': 'Oslo', 'sky': 'clear'}
    >>> weather.asked
    [('Oslo', 1)]

    ``asked`` has the calls of ``forecast``, with the days; ``told`` is what it gives instead of a clear sky. With
    ``together`` each call waits until so many are on their way that the barrier opens. There is no Atlantis.
    """

    def __init__(self, told: Any = None) -> None:
        self.asked: list[tuple[str, int]] = []
        self.told = told
        self.together: asyncio.Barrier | None = None

    @function
    async def forecast(self, city: str, days: int = 1) -> Any:
        """Tell the weather of a city."""
        self.asked.append((city, days))
        if self.together is not None:
            await asyncio.wait_for(self.together.wait(), _PATIENCE)
        if city == "Atlantis":
            raise LookupError("there is no Atlantis")
        return {"city": city, "sky": "clear"} if self.told is None else self.told

    @function(effects=True)
    def warn(self, text: str) -> str:
        """Warn everybody."""
        return "warned"


async def run_weather(
    planner: Planner,
    *,
    weather: Weather | None = None,
    events: list[RunEvent] | None = None,
    budget: Budget | None = None,
) -> Run:
    """Run a goal with the weather as the one plugin; ``events`` are added to."""
    kernel = Kernel()
    kernel.add_plugin(weather or Weather())
    emit = events.append if events is not None else None
    return await kernel.run_goal("The weather?", planner=planner, budget=budget, emit=emit)
