"""Functions that take as long as a test wants: until there is a file `on`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from portico import FunctionPlugin, function


class _Errands:
    @function
    async def dawdle(self, text: str) -> str:
        """Take as long as nobody says to go on."""
        Path("begun").touch()
        await _told_to_go_on()
        return text

    @function(effects=True)
    async def deliver(self, text: str) -> str:
        """Send a text out into the world, and take as long about it."""
        Path("begun").touch()
        await _told_to_go_on()
        with Path("sent.txt").open("a") as file:
            file.write(f"{text}\n")
        return f"sent {text}"


async def _told_to_go_on() -> None:
    for _ in range(2_500):
        if Path("on").exists():
            break
        await asyncio.sleep(0.02)


class Errands:
    name = "errands"

    def __init__(self, settings: None, services: Any) -> None:
        pass

    async def load(self, name: str) -> FunctionPlugin:
        return FunctionPlugin.of(_Errands(), name)
