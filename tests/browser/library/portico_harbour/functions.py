"""Functions of a harbour. Each writes down that it begins and ends, and waits while a file says so.

``calls`` has a line for each beginning and each end: the word and the step. Where there is a file ``gate``, a step ends
when a line of it is the step, or is ``all``.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from portico import FunctionPlugin, current_step, function

_PAUSE = 0.01


class _Functions:
    @function(name="Timetable")
    async def timetable(self, place: str) -> list[str]:
        """List the crossings to a place."""
        return await _do([f"09:00 to {place}", f"13:30 to {place}"])

    @function(name="Forecast")
    async def forecast(self, place: str) -> str:
        """Tell tomorrow's weather."""
        return await _do("dry, light wind from the south")

    @function(name="Tide")
    async def tide(self, place: str) -> str:
        """Tell when the water is high."""
        return await _do("high at 10:40")

    @function(name="Pier")
    async def pier(self, crossing: str) -> str:
        """Find the pier of a crossing."""
        return await _do("pier 4")

    @function(name="Choose")
    async def choose(self, crossings: list[str], weather: str, tide: str) -> str:
        """Choose the crossing that suits."""
        return await _do(crossings[0])

    @function(name="Price")
    async def price(self, crossing: str, people: int) -> int:
        """Tell what a crossing costs, in kroner."""
        return await _do(120 * people)

    @function(name="Seats")
    async def seats(self, crossing: str, people: int) -> str:
        """Find seats together."""
        return await _do("row 7, by the window")

    @function(name="Check")
    async def check(self, price: int, most: int) -> str:
        """Tell whether a price is within a limit."""
        return await _do("within the limit" if price <= most else "too much")

    @function(name="Book", effects=True)
    async def book(self, crossing: str, seats: str) -> str:
        """Book seats. It costs money."""
        append("booked", f"{crossing}, {seats}")
        return await _do("ticket 4711")

    @function(name="Letter")
    async def letter(self, ticket: str, pier: str, crossing: str) -> str:
        """Write to the travellers."""
        return await _do(f"We take the ferry at {crossing}, from {pier}. Our ticket is {ticket}.")

    @function(name="Tick")
    async def tick(self, number: int) -> int:
        """Take a moment."""
        await asyncio.sleep(0.02)
        return number

    @function(name="Say")
    async def say(self, text: str) -> str:
        """Say a text again."""
        return await _do(text)


class Harbour:
    """The functions, as a source of them."""

    def __init__(self, settings: None, services: Any) -> None:
        pass

    async def load(self, name: str) -> FunctionPlugin:
        return FunctionPlugin.of(_Functions(), name)


async def _do(result: Any) -> Any:
    at = current_step()
    step = "" if at is None else at.step
    append("calls", f"begins {step}")
    while (gate := Path("gate")).exists() and not {step, "all"} & set(gate.read_text().split()):
        await asyncio.sleep(_PAUSE)
    append("calls", f"ends {step}")
    return result


def append(file: str, line: str) -> None:
    """Add a line whole, also where the process is killed."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)
