"""Three tools of 100 ms asked for in one reply, against gathering the three: `nox -s bench`.

Both sides run in one process and take turns. What the loop adds is the same few dozen microseconds however long the
tools take; the ratio is what a user waits.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time

from portico import ChatCapabilities, Kernel, ToolCall, function
from portico_testkit.fakes.chat_service import ScriptedChat

SECONDS = 0.1
TOOLS = 3
ROUNDS = 21
LIMIT = 1.15


@function
async def wait(number: int) -> int:
    """Wait for a tenth of a second."""
    await asyncio.sleep(SECONDS)
    return number


async def measure() -> tuple[list[float], list[float]]:
    """Return the seconds of each turn, and of each gathering."""
    kernel = Kernel()
    kernel.add_function(wait)
    calls = [ToolCall(f"call-{number}", "wait", json.dumps({"number": number})) for number in range(TOOLS)]
    turns, gatherings = [], []
    for _ in range(ROUNDS):
        chat = ScriptedChat(calls, "Done.", capabilities=ChatCapabilities(tools=True))
        started = time.perf_counter()
        turn = await kernel.complete("Go.", functions=["wait"], chat=chat)
        turns.append(time.perf_counter() - started)
        assert turn.value == "Done."
        started = time.perf_counter()
        await asyncio.gather(*(wait(number) for number in range(TOOLS)))
        gatherings.append(time.perf_counter() - started)
    return turns, gatherings


def main() -> int:
    """Measure, print the table and one JSON line; return 1 where the limit is broken."""
    turns, gatherings = map(statistics.median, asyncio.run(measure()))
    ratio = turns / gatherings
    print(f"medians of {ROUNDS}, milliseconds")
    print(f"{'a turn with three calls':38}{turns * 1000:10.2f}{ratio:7.3f}x{f'{LIMIT:.2f}x':>8}")
    print(f"{'asyncio.gather of the three':38}{gatherings * 1000:10.2f}")
    print(json.dumps({"bench": "tools_at_once", "turn": turns, "gather": gatherings, "ratio": ratio, "limit": LIMIT}))
    return 1 if ratio > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
