"""However a server's use ends, calls under way end too, and nothing is left."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import psutil
import pytest

from portico.errors import PorticoError

Odd: TypeAlias = Any
Processes: TypeAlias = Callable[[], list[Any]]
Load: TypeAlias = Callable[..., Awaitable[Odd]]
Make: TypeAlias = Callable[..., Odd]

SERVER = Path(__file__).parent / "servers" / "odd.py"
FORGETFUL = """
import asyncio, sys
from portico import Kernel
from portico_mcp.config import MCPSettings
from portico_mcp.functions import MCPFunctions

async def main(times):
    kernel = Kernel()
    for number in range(times):
        source = MCPFunctions(MCPSettings(command=sys.executable, args=tuple(sys.argv[1:])))
        kernel.add_plugin(await source.load(f"odd{number}"))
        print(await kernel.invoke(f"odd{number}-echo", text="ready"), flush=True)

asyncio.run(main(2))
asyncio.run(main(1))
"""


async def test_closing_ends_the_calls_that_are_under_way(load: Load) -> None:
    odd = await load()
    calls = [asyncio.create_task(odd.call("look_slowly", seconds=60)) for _ in range(3)]
    await odd.wait_for(3)
    await odd.source.aclose()
    async with asyncio.timeout(20):
        ends = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(end, PorticoError) for end in ends), ends


async def test_closing_ends_a_start_that_is_under_way(make: Make, processes: Processes) -> None:
    odd = make("silent")
    loading = asyncio.create_task(odd.load())
    await odd.wait_until(lambda: len(processes()) > 0)
    await odd.source.aclose()
    async with asyncio.timeout(20):
        with pytest.raises(PorticoError, match=r"functions\.odd has been closed"):
            await loading


async def test_a_start_that_is_cancelled_leaves_no_process(make: Make, processes: Processes) -> None:
    odd = make("silent")
    loading = asyncio.create_task(odd.load())
    await odd.wait_until(lambda: len(processes()) > 0)
    loading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loading
    assert processes() == []


async def test_one_start_serves_all_calls_that_wait_for_it(load: Load) -> None:
    odd = await load()
    odd.kill()
    assert await asyncio.gather(*(odd.call("look", text=str(n)) for n in range(20))) == [str(n) for n in range(20)]
    assert len({call["pid"] for call in odd.received if call["name"] == "look"}) <= 2


@pytest.mark.process
def test_an_application_that_closes_nothing_ends_in_silence(tmp_path: Path) -> None:
    log = str(tmp_path / "calls.log")  # which also tells these servers from others
    command = [sys.executable, "-W", "error", "-c", FORGETFUL, "-I", "-S", str(SERVER), "normal", log]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("ready\n" * 3, "", 0)
    assert not [each for each in psutil.process_iter(["cmdline"]) if log in (each.info["cmdline"] or [])]
