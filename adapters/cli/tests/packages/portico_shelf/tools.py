"""Functions for plans: one that only works, one that sends something out, one that fails while a file is there."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from portico import FunctionPlugin, function


class _Tools:
    @function
    def shout(self, text: str) -> str:
        """Say it louder."""
        return text.upper()

    @function(effects=True)
    def send(self, text: str) -> str:
        """Send a text out into the world."""
        if Path("crash-before").exists():
            os._exit(137)
        with Path("sent.txt").open("a") as file:
            file.write(f"{text}\n")
        if Path("crash-after").exists():
            os._exit(137)
        return f"sent {text}"

    @function(effects=True)
    async def stay(self, text: str) -> str:
        """Begin to send a text, and be interrupted."""
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)
        return text

    @function
    def fetch(self, text: str) -> str:
        """Fetch something, while the line works."""
        if Path("broken").exists():
            raise ConnectionError("the line is cut")
        return text


class Tools:
    name = "tools"

    def __init__(self, settings: None, services: Any) -> None:
        pass

    async def load(self, name: str) -> FunctionPlugin:
        return FunctionPlugin.of(_Tools(), name)
