"""What a durable step costs beside DBOS's own step: `python -m tests.bench.durable_steps`.

The floor is a workflow of DBOS that calls `DBOS.run_step_async` as its documentation says, in DBOS's event loop, on the
same database and the same connections. Ours is `execute` within `durable.run`, from an application's event loop.
Both give the same JSON. The two take turns in short batches, and the ratio is the median over the rounds, so that a
slow moment of the machine, or of its disk, falls on both alike. All is measured three times, each in a separate
workflow, and the middle one counts; the least and the greatest are shown. Beside it stand ten steps side by side, and a
step that is recorded already.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.postgres_server import postgres_server

from portico.plugins import Secret
from portico_dbos._process import PROCESS
from portico_dbos.config import DbosSettings
from portico_dbos.runner import DbosRunner

ROUNDS = 40
BATCH = 10
LIMIT = 1.2
TRIES = 3
RESULT = {"answer": "It is a Sunday.", "sources": [{"name": "calendar", "score": 0.5}] * 5}


async def step() -> Any:
    """Do next to nothing."""
    await asyncio.sleep(0)
    return RESULT


async def floor_of(rounds: asyncio.Queue[Callable[[float], None] | None], side_by_side: bool) -> None:
    """Be a workflow of DBOS: so many steps for each round that is asked for, and the seconds they took."""
    from dbos import DBOS

    while (tell := await rounds.get()) is not None:
        started = time.perf_counter()
        steps = (DBOS.run_step_async({"name": f"s{number}"}, step) for number in range(BATCH))
        if side_by_side:
            await asyncio.gather(*steps)
        else:
            for each in steps:
                await each
        tell((time.perf_counter() - started) / BATCH)


def told_in(home: asyncio.AbstractEventLoop, told: asyncio.Future[float], seconds: float) -> None:
    """Tell another event loop how long it took."""
    home.call_soon_threadsafe(told.set_result, seconds)


async def ours_of(runner: DbosRunner, run: str, number: int, side_by_side: bool) -> float:
    """Return the seconds of a step, of so many."""
    started = time.perf_counter()
    steps = (runner.execute(run, f"s{number}/{at}", step) for at in range(BATCH))
    if side_by_side:
        await asyncio.gather(*steps)
    else:
        for each in steps:
            await each
    return (time.perf_counter() - started) / BATCH


async def measure(settings: DbosSettings, run: str, side_by_side: bool) -> tuple[list[float], list[float], float]:
    """Return the seconds of DBOS's steps and of ours in each round, and those of a step that is recorded."""
    from dbos import DBOS

    runner = DbosRunner(settings)
    floors: list[float] = []
    ours: list[float] = []

    async def work() -> float:
        running = PROCESS.running
        assert running is not None
        rounds: asyncio.Queue[Callable[[float], None] | None] = asyncio.Queue()
        # The workflow's function is registered where DBOS runs already, as a module does that is imported late.
        workflow = DBOS.workflow(name=f"floor {run}")(floor(rounds, side_by_side))
        home = asyncio.get_running_loop()

        def there(call: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
            return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, running.loop))

        handle = await there(DBOS.start_workflow_async(workflow))
        for number in range(ROUNDS + 1):
            told: asyncio.Future[float] = home.create_future()
            await there(rounds.put(partial(told_in, home, told)))
            floors.append(await told)
            ours.append(await ours_of(runner, run, number, side_by_side))
        await there(rounds.put(None))
        await there(handle.get_result())
        started = time.perf_counter()
        for at in range(BATCH):
            await runner.execute(run, f"s{ROUNDS}/{at}", step)
        return (time.perf_counter() - started) / BATCH

    recorded = await runner.durable.run(run, work)
    await runner.aclose()
    return floors[1:], ours[1:], recorded


def floor(
    rounds: asyncio.Queue[Callable[[float], None] | None], side_by_side: bool
) -> Callable[[], Coroutine[Any, Any, None]]:
    """Return the function of the workflow; DBOS takes no argument that is not data."""

    async def workflow() -> None:
        await floor_of(rounds, side_by_side)

    return workflow


@dataclass(frozen=True, slots=True)
class Row:
    """What three tries gave: ratios, and the seconds of a step in the middle try: DBOS's, ours, a recorded one."""

    ratio: float
    least: float
    greatest: float
    dbos: float
    ours: float
    recorded: float


def compared(settings: DbosSettings, what: str, *, side_by_side: bool = False) -> Row:
    """Return the try in the middle, by its ratio; a ratio is the median over the rounds."""
    tries: list[tuple[float, float, float, float]] = []
    for _ in range(TRIES):
        floors, ours, recorded = asyncio.run(measure(settings, f"{what} {time.time_ns()}", side_by_side))
        ratio = statistics.median(mine / theirs for mine, theirs in zip(ours, floors, strict=True))
        tries.append((ratio, statistics.median(floors), statistics.median(ours), recorded))
    tries.sort()
    ratio, theirs, mine, recorded = tries[TRIES // 2]
    return Row(ratio, tries[0][0], tries[-1][0], theirs, mine, recorded)


def main() -> int:
    """Measure on both databases, print the table and one JSON line; return 1 where a limit is broken."""
    with tempfile.TemporaryDirectory() as folder, postgres_server() as server:
        places = {
            "SQLite": DbosSettings(path=Path(folder) / "dbos.sqlite3"),
            "PostgreSQL": DbosSettings(uri=Secret(server.uri)),
        }
        rows = {
            f"{place}, {how}": compared(settings, place, side_by_side=how != "in turn")
            for place, settings in places.items()
            for how in ("in turn", "ten at once")
        }
    print(f"medians of {ROUNDS} rounds of {BATCH} steps, milliseconds a step; the middle of {TRIES} tries")
    print(f"{'':26}{'DBOS':>9}{'ours':>9}{'ratio':>9}{'limit':>9}{'from':>9}{'to':>9}{'recorded':>10}")
    for what, row in rows.items():
        print(
            f"{what:26}{row.dbos * 1e3:9.3f}{row.ours * 1e3:9.3f}{row.ratio:8.3f}x{LIMIT:8.2f}x"
            f"{row.least:8.3f}x{row.greatest:8.3f}x{row.recorded * 1e3:10.4f}"
        )
    print(json.dumps({"bench": "durable_steps", "limit": LIMIT} | {what: asdict(row) for what, row in rows.items()}))
    return 1 if any(row.ratio > LIMIT for row in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
