"""Kernels that use a server which is as odd as a test wants, and the certainty that nothing is left of it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import psutil
import pytest

from portico import FunctionPlugin, Kernel
from portico.ports import SchemaValidator
from portico_basics.jsonschema.validator import JsonschemaValidator
from portico_mcp.config import MCPSettings
from portico_mcp.functions import MCPFunctions

ODD = Path(__file__).parent / "servers" / "odd.py"
PATIENCE = 20.0


@dataclass
class Odd:
    """The server `odd.py` as the plugin ``odd`` of a kernel."""

    source: MCPFunctions
    log: Path
    kernel: Kernel = field(default_factory=Kernel)
    plugin: FunctionPlugin | None = None

    async def load(self) -> FunctionPlugin:
        """Load the plugin into the kernel."""
        self.plugin = self.kernel.add_plugin(await self.source.load("odd"))
        return self.plugin

    async def call(self, function: str, **arguments: Any) -> Any:
        """Call a function."""
        return await self.kernel.invoke(f"odd-{function}", **arguments)

    @property
    def received(self) -> list[dict[str, Any]]:
        """The calls that reached the server, in order."""
        return [json.loads(line) for line in self.log.read_text("utf-8").splitlines()] if self.log.exists() else []

    async def wait_for(self, calls: int) -> None:
        """Wait until so many calls have reached the server."""
        await self.wait_until(lambda: len(self.received) >= calls)

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so."""
        await wait_until(condition)

    def kill(self, *, guard: bool = False) -> None:
        """Kill the server's program and not what watches over it, or the other way round."""
        for process in psutil.Process().children(recursive=True):
            command = _command(process)
            if str(ODD) in command and any(part.endswith("guard.py") for part in command) is guard:
                process.kill()


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


async def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something is so, and fail when it never is."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)


def settings(behaviour: str = "normal", *arguments: str, **more: Any) -> MCPSettings:
    """Return the settings of an odd server, which is trusted."""
    return MCPSettings(
        command=sys.executable, args=("-I", "-S", str(ODD), behaviour, *arguments), **{"trusted": True, **more}
    )


Make: TypeAlias = Callable[..., Odd]


Processes: TypeAlias = Callable[[], list[psutil.Process]]


@pytest.fixture
def processes() -> Processes:
    """Give what lists the processes that were started below this one since the test began."""
    before = {each.pid for each in psutil.Process().children(recursive=True)}
    return lambda: [each for each in psutil.Process().children(recursive=True) if each.pid not in before]


@pytest.fixture
async def make(tmp_path: Path, processes: Processes) -> AsyncIterator[Make]:
    """Give what makes odd servers; they are ended after the test, and no process may be left then."""
    made: list[Odd] = []

    def of(behaviour: str = "normal", **more: Any) -> Odd:
        log = tmp_path / f"{len(made)}.log"
        services = Kernel({SchemaValidator: JsonschemaValidator()}).services
        made.append(Odd(MCPFunctions(settings(behaviour, str(log), **more), services), log))
        return made[-1]

    yield of
    for each in made:
        await each.source.aclose()
    await wait_until(lambda: processes() == [])


@pytest.fixture
def load(make: Make) -> Callable[..., Awaitable[Odd]]:
    """Give what makes an odd server and loads its functions."""

    async def loaded(behaviour: str = "normal", **more: Any) -> Odd:
        odd = make(behaviour, **more)
        await odd.load()
        return odd

    return loaded
