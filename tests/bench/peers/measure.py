"""Measures one peer in its environment, in turns with the floor: `python -m tests.bench.peers.measure NAME ADDRESS`.

It prints one JSON line. Both sides must give the same result, and run as many tools, before they are measured. Each
side does its work as often as fills some milliseconds, in turns, and the ratio is the median over the rounds.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import statistics
import sys
import time
from typing import TypedDict

from tests.bench.peers.floor import floors
from tests.bench.peers.work import Call, Peer, Ran

ROUNDS, FEWEST_ROUNDS = 31, 7
BATCH_SECONDS = 0.005
ROW_SECONDS = 5.0


class Figures(TypedDict):
    """A row: the medians of the ratios by the clock and of this process, and of a call's microseconds."""

    ratio: float
    processor: float
    us: float
    floor_us: float
    rounds: int


def peer_of(name: str) -> Peer:
    """Return what a file says about its peer; it imports the framework only where its rows are asked for."""
    peer: Peer = importlib.import_module(f"tests.bench.peers.peer_{name}").PEER
    return peer


async def timed(call: Call, count: int) -> tuple[float, float]:
    """Return the seconds of one of so many calls, by the clock and of this process."""
    worked, started = time.process_time(), time.perf_counter()
    await call(count)
    return (time.perf_counter() - started) / count, (time.process_time() - worked) / count


async def fitting(call: Call) -> tuple[int, float]:
    """Return how many calls fill a batch, and the seconds of one."""
    count = 1
    while True:
        seconds = min([(await timed(call, count))[0] for _ in range(3)])
        if seconds * count > BATCH_SECONDS / 4:
            return max(1, round(BATCH_SECONDS / seconds)), seconds
        count *= 4


async def row(theirs: Call, floor: Call) -> Figures:
    """Measure one row. Raises ``RuntimeError`` where both sides do not do the same."""
    done = []
    for call in (theirs, floor):
        await call(1)  # Connections are opened, and what is made once is made.
        before = Ran.tools
        done.append((await call(1), Ran.tools - before))
    if done[0] != done[1]:
        raise RuntimeError(f"the result is {done[0]!r}, and that of the floor {done[1]!r}")
    (many, one), (floor_many, floor_one) = await fitting(theirs), await fitting(floor)
    rounds = int(ROW_SECONDS / (many * one + floor_many * floor_one))
    rounds = min(ROUNDS, max(FEWEST_ROUNDS, rounds))
    samples = []
    for number in range(rounds):
        # Each is first in every other round: who is first on a busy machine may have more of it.
        if number % 2:
            below, mine = await timed(floor, floor_many), await timed(theirs, many)
        else:
            mine, below = await timed(theirs, many), await timed(floor, floor_many)
        samples.append((mine, below))
    return {
        "ratio": statistics.median(mine[0] / other[0] for mine, other in samples),
        "processor": statistics.median(mine[1] / max(other[1], 1e-9) for mine, other in samples),
        "us": statistics.median(mine[0] for mine, _ in samples) * 1e6,
        "floor_us": statistics.median(other[0] for _, other in samples) * 1e6,
        "rounds": rounds,
    }


async def measured(peer: Peer, address: str, wanted: set[str]) -> dict[str, Figures | str]:
    """Measure the rows that a peer has; what fails is a text that says how."""
    theirs = await peer.calls(address)
    keys = [key for key in theirs if not wanted or key in wanted]
    below = await floors(address, set(keys))
    # What was made for all rows is not looked through again and again while one of them runs.
    gc.collect()
    gc.freeze()
    found: dict[str, Figures | str] = {}
    for key in keys:
        try:
            found[key] = await row(theirs[key], below[key])
        except Exception as error:
            found[key] = f"{type(error).__name__}: {error}"[:300]
        print(f"{peer.name}: {key}: {found[key]}", file=sys.stderr)
    return found


def main() -> None:
    """Measure the rows named, or all, of one peer."""
    name, address, *wanted = sys.argv[1:]
    print(json.dumps(asyncio.run(measured(peer_of(name), address, set(wanted)))))


if __name__ == "__main__":
    main()
