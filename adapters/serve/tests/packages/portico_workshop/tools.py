"""Functions for plans: quick ones, one that sends something out, one that waits for a file, one that fails at times."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from portico import FunctionPlugin, function


class _Tools:
    @function
    def shout(self, text: str) -> str:
        """Say it louder."""
        return text.upper()

    @function
    def repeat(self, text: str, times: int) -> str:
        """Say it many times."""
        return text * times

    @function
    def number(self) -> int:
        """Give a number."""
        return 7

    @function(effects=True)
    async def send(self, text: str) -> str:
        """Send a text out into the world."""
        with Path("sent.txt").open("a") as file:
            file.write(f"{text}\n")
        await _wait_for("hold-after", "on")
        return f"sent {text}"

    @function
    async def wait(self, text: str) -> str:
        """Take as long as there is no file `on`."""
        with Path("begun.txt").open("a") as file:
            file.write(f"{text}\n")
        await _wait_for("", "on")
        return text

    @function
    async def linger(self, text: str) -> str:
        """Take long, and two seconds to stop."""
        Path("begun.txt").write_text(text)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(2)
            raise
        return text

    @function
    async def sleep(self, milliseconds: int) -> int:
        """Take some time."""
        await asyncio.sleep(milliseconds / 1000)
        return milliseconds

    @function
    def fetch(self, text: str) -> str:
        """Fetch something, while the line works."""
        if Path("broken").exists():
            raise ConnectionError("the line is cut")
        return text


async def _wait_for(while_there: str, until: str) -> None:
    for _ in range(4_000):
        if Path(until).exists() or (while_there and not Path(while_there).exists()):
            return
        await asyncio.sleep(0.01)


class Tools:
    name = "tools"

    def __init__(self, settings: None, services: Any) -> None:
        pass

    async def load(self, name: str) -> FunctionPlugin:
        return FunctionPlugin.of(_Tools(), name)
