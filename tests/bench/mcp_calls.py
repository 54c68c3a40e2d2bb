"""What a call of an MCP server's tool costs through Portico: `python -m tests.bench.mcp_calls`.

The floor is the SDK's own client, which calls ``call_tool`` over its own pipes. Both sides speak to a server of the
same program, which answers at once, so that nothing hides what a call costs. They take turns in short batches, and the
ratio is the median over the rounds, so that a slow moment of the machine falls on both alike.
"""

from __future__ import annotations

import asyncio
import json
import operator
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from mcp import Client, StdioServerParameters

from portico import Kernel
from portico.ports import SchemaValidator
from portico_basics.jsonschema.validator import JsonschemaValidator
from portico_mcp.config import MCPSettings
from portico_mcp.functions import MCPFunctions

LIMIT = 1.15
BATCH = 20
ROUNDS = 150
WARM_ROUNDS = 5
SERVER = (sys.executable, "-I", "-S", str(Path(__file__).parents[2] / "adapters/mcp/tests/servers/odd.py"), "normal")


async def sample(call: Callable[[], Awaitable[object]]) -> float:
    """Return the microseconds of one call, over a batch."""
    started = time.perf_counter_ns()
    for _ in range(BATCH):
        await call()
    return (time.perf_counter_ns() - started) / BATCH / 1_000


async def measure() -> dict[str, dict[str, float]]:
    """Return, for a tool with an output schema and one without, the medians of both sides and of their ratio."""
    # Both check a typed result against its schema.
    kernel = Kernel({SchemaValidator: JsonschemaValidator()})
    source = MCPFunctions(MCPSettings(command=SERVER[0], args=SERVER[1:]), kernel.services)
    kernel.add_plugin(await source.load("odd"))
    figures = {}
    try:
        async with Client(StdioServerParameters(command=SERVER[0], args=list(SERVER[1:]))) as client:
            await client.list_tools()

            async def typed_by_sdk() -> object:
                return await client.call_tool("add", {"a": 1, "b": 2})

            async def text_by_sdk() -> object:
                return await client.call_tool("echo", {"text": "hello"})

            async def typed_by_portico() -> object:
                return await kernel.invoke("odd-add", a=1, b=2)

            async def text_by_portico() -> object:
                return await kernel.invoke("odd-echo", text="hello")

            for title, plain, ours in (
                ("a typed result", typed_by_sdk, typed_by_portico),
                ("a text", text_by_sdk, text_by_portico),
            ):
                pairs = [(await sample(plain), await sample(ours)) for _ in range(WARM_ROUNDS + ROUNDS)][WARM_ROUNDS:]
                floor, through = zip(*pairs, strict=True)
                figures[title] = {
                    "sdk": statistics.median(floor),
                    "portico": statistics.median(through),
                    "ratio": statistics.median(map(operator.truediv, through, floor)),
                }
    finally:
        await source.aclose()
    return figures


def main() -> int:
    """Measure, print the table and one JSON line; return 1 where the limit is broken."""
    print(f"medians of {ROUNDS} batches of {BATCH} calls each, microseconds a call")
    print(f"{'':20}{'call_tool':>12}{'Portico':>12}{'ratio':>9}{'limit':>9}")
    figures = asyncio.run(measure())
    for title, each in figures.items():
        print(f"{title:20}{each['sdk']:12.0f}{each['portico']:12.0f}{each['ratio']:8.2f}x{LIMIT:8.2f}x")
    broken = [title for title, each in figures.items() if each["ratio"] > LIMIT]
    print(json.dumps({"bench": "mcp_calls", "broken": broken, "figures": figures}))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
