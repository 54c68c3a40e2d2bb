"""Whatever ends the server or the application, a call ends too, and no process and no descriptor is left."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import psutil
import pytest

from portico.errors import PorticoError

Odd: TypeAlias = Any
Processes: TypeAlias = Callable[[], list[Any]]
Load: TypeAlias = Callable[..., Awaitable[Odd]]

SERVER = Path(__file__).parent / "servers" / "odd.py"
APPLICATION = """
import asyncio, sys
from portico import Kernel
from portico_mcp.config import MCPSettings
from portico_mcp.functions import MCPFunctions

async def main():
    source = MCPFunctions(MCPSettings(command=sys.executable, args=tuple(sys.argv[1:])))
    kernel = Kernel()
    kernel.add_plugin(await source.load("odd"))
    print(await kernel.invoke("odd-echo", text="ready"), flush=True)
    await kernel.invoke("odd-sleep", seconds=600)

asyncio.run(main())
"""


def descriptors() -> int:
    process = psutil.Process()
    return process.num_handles() if sys.platform == "win32" else process.num_fds()


@pytest.mark.parametrize(
    "kills", [10, pytest.param(200, marks=[pytest.mark.mcp, pytest.mark.slow, pytest.mark.timeout(500)])]
)
async def test_each_call_ends_when_the_server_is_killed_under_way(load: Load, kills: int, processes: Processes) -> None:
    # One seed, so that a failure can be looked at.
    random_ones = random.Random(24)
    odd = await load()
    await odd.call("echo", text="warm")
    odd.kill()
    await odd.call("look", text="once more")
    before, threads = descriptors(), psutil.Process().num_threads()
    failed = answered = 0
    for number in range(kills):
        with_effects = number % 2 == 0
        # The end of the server may not be known yet: then this call is sent twice.
        assert await odd.call("look", text="in between") == "in between"
        there = len(odd.received)
        function = "sleep" if with_effects else "look_slowly"
        call = asyncio.create_task(odd.call(function, seconds=0.1 + number / 1_000_000))
        await odd.wait_for(there + 1)
        await asyncio.sleep(random_ones.uniform(0, 0.05))
        odd.kill()
        try:
            assert await call == "slept"
            answered += 1
        except PorticoError as error:
            assert with_effects, error
            assert str(error).startswith("functions.odd: sleep failed: the server is gone")
            failed += 1
    reached = [call["arguments"]["seconds"] for call in odd.received if call["name"] == "sleep"]
    assert len(reached) == len(set(reached)), "a call with effects was repeated"
    print(f"{kills} kills: {answered} calls answered, {failed} ended with an error, none with anything else")
    await odd.call("look", text="at the end")
    assert len(processes()) <= 2
    assert descriptors() <= before
    assert psutil.Process().num_threads() <= threads + 1
    await odd.source.aclose()
    assert processes() == []
    assert descriptors() < before


async def test_many_calls_at_once_all_end_when_the_server_is_killed(load: Load) -> None:
    odd = await load()
    calls = [asyncio.create_task(odd.call("look_slowly" if n % 2 else "sleep", seconds=0.3)) for n in range(20)]
    await odd.wait_for(20)
    odd.kill()
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(end).__name__ for end in ends] == ["ServiceUnavailable", "str"] * 10


@pytest.mark.skipif(sys.platform == "win32", reason="nothing watches over a server there")
async def test_a_server_whose_guard_is_killed_is_ended_all_the_same(load: Load, processes: Processes) -> None:
    odd = await load("stubborn")
    odd.kill(guard=True)
    assert await odd.call("look", text="x") == "x"
    await odd.source.aclose()
    assert processes() == []


@pytest.fixture
def application() -> Iterator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
    """Start an application that waits for its server, and give it with the processes below it."""
    with subprocess.Popen(
        [sys.executable, "-c", APPLICATION, "-I", "-S", str(SERVER), "stubborn"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process, psutil.Process(process.pid).children(recursive=True)
        finally:
            process.kill()


@pytest.mark.process
@pytest.mark.parametrize("ending", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_no_server_outlives_the_application(
    application: tuple[subprocess.Popen[str], list[psutil.Process]], ending: str
) -> None:
    process, below = application
    assert below
    process.send_signal(getattr(signal, ending))
    process.wait(30)
    assert psutil.wait_procs(below, timeout=30)[1] == []


async def test_closing_twice_and_calling_after_it_is_harmless(load: Load) -> None:
    odd = await load()
    await odd.source.aclose()
    await odd.source.aclose()
    with pytest.raises(PorticoError, match=r"functions\.odd has been closed"):
        await odd.call("echo", text="x")
