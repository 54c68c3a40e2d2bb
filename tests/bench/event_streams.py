"""How soon pages see what happens: `python -m tests.bench.event_streams [--minutes N]`.

A process serves 50 runs of ten steps at once, again and again, while 200 clients watch them over HTTP. For each change
of a step the time from its journal entry to its arrival is measured. The memory of the server is looked at over time,
and its open files and tasks before the clients come and after they have gone. Exits 1 where a bar is broken.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import psutil
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from tests.support.desks import environment_of, install_workshop, open_desk, plan, read_events, step

RUNS = 50
STREAMS = 200
STEPS = 10
STEP_MILLISECONDS = 400
BAR = 250
"""Milliseconds from the journal to a page, at the 95th percentile."""
GROWTH = 1.15
"""How much larger the server may be at the end than after its first quarter."""


async def serve(folder: Path, port: int) -> None:
    """Serve, begin a run wherever fewer than 50 are at work, and say on request how many tasks there are."""
    from portico_serve._api.routes import routes

    steps = [step(f"s{n}", "tools-sleep", milliseconds=STEP_MILLISECONDS) for n in range(1, STEPS + 1)]
    for before, after in pairwise(steps):
        after["after"] = [before["id"]]
    goal = json.dumps({"plans": [plan(*steps, result=f"s{STEPS}")]})

    async with open_desk(folder) as desk:
        names: list[str] = [""] * RUNS

        async def repeat(place: int) -> None:
            await asyncio.sleep(place * STEP_MILLISECONDS / 1000 / RUNS)
            while True:
                names[place] = await desk.runs.start(goal)
                while desk.runs.present(names[place])[0]:
                    await asyncio.sleep(0.05)

        async def tell(request: Request) -> Response:
            return JSONResponse({"tasks": len(asyncio.all_tasks()), "runs": names})

        app = Starlette(routes=[*routes(desk), Route("/numbers", tell)])
        at_work = [asyncio.create_task(repeat(place)) for place in range(RUNS)]
        config = uvicorn.Config(app, port=port, log_level="error", lifespan="off", timeout_graceful_shutdown=2)
        try:
            await uvicorn.Server(config).serve()
        finally:
            for each in at_work:
                each.cancel()


async def follow(http: httpx.AsyncClient, place: int, delays: list[float]) -> None:
    """Watch the run at a place, and the next one when it has ended."""
    last = ""
    while True:
        run = (await http.get("/numbers")).json()["runs"][place]
        if run in ("", last):
            await asyncio.sleep(0.05)
            continue
        last = run
        async with http.stream("GET", f"/api/runs/{run}/events") as response:
            begun = False
            async for event, data in read_events(response.aiter_lines()):
                now = time.time()
                # What was there before the client came is no news.
                if begun and event == "steps":
                    delays.extend(
                        now - datetime.fromisoformat(each["at"]).timestamp() for each in data["steps"].values()
                    )
                elif begun and event == "snapshot" and data["state"] != "running":
                    delays.append(now - datetime.fromisoformat(data["updated_at"]).timestamp())
                begun = True
                if event == "snapshot" and data["state"] not in ("running", "waiting"):
                    break


async def numbers(http: httpx.AsyncClient, process: psutil.Process) -> tuple[int, int]:
    """Return how many open files and tasks the server has."""
    told = (await http.get("/numbers")).json()
    return process.num_fds(), told["tasks"]


async def settled(http: httpx.AsyncClient, process: psutil.Process) -> tuple[int, int]:
    """Return the least of several counts, since runs begin and end meanwhile."""
    counts = []
    for _ in range(20):
        await asyncio.sleep(0.1)
        counts.append(await numbers(http, process))
    return min(each[0] for each in counts), min(each[1] for each in counts)


async def measure(url: str, process: psutil.Process, seconds: float) -> int:
    """Watch for some time, print what was seen, and return the exit code."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as http:
        async for _ in waiting():
            with suppress(httpx.HTTPError):
                if all((await http.get("/numbers")).json()["runs"]):
                    break
        before = await settled(http, process)
        delays: list[float] = []
        watching = [asyncio.create_task(follow(http, place % RUNS, delays)) for place in range(STREAMS)]
        sizes: list[float] = []
        began, cpu = time.monotonic(), sum(process.cpu_times()[:2])
        while time.monotonic() - began < seconds:
            await asyncio.sleep(min(seconds / 20, 15))
            sizes.append(process.memory_info().rss / 1e6)
            print(f"{time.monotonic() - began:6.0f} s  {sizes[-1]:6.1f} MB  {len(delays):7} changes", flush=True)
        busy = (sum(process.cpu_times()[:2]) - cpu) / (time.monotonic() - began)
        for each in watching:
            each.cancel()
        gone = await asyncio.gather(*watching, return_exceptions=True)
    failures = [each for each in gone if isinstance(each, Exception)]
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as http:
        await asyncio.sleep(1)
        after = await settled(http, process)
    p50, p95, p99 = (statistics.quantiles(delays, n=100)[each - 1] * 1000 for each in (50, 95, 99))
    early = statistics.mean(sizes[len(sizes) // 4 : len(sizes) // 2])
    late = statistics.mean(sizes[-max(len(sizes) // 4, 1) :])
    print(f"{len(delays)} changes to {STREAMS} clients: p50 {p50:.0f} ms, p95 {p95:.0f} ms, p99 {p99:.0f} ms")
    print(f"memory {early:.1f} MB, later {late:.1f} MB; processor {busy:.0%} of one")
    print(f"open files {before[0]} before, {after[0]} after; tasks {before[1]} before, {after[1]} after")
    bars = {
        f"p95 below {BAR} ms": p95 < BAR,
        "memory flat": late < early * GROWTH,
        "no open file is left": after[0] <= before[0] + 2,
        "no task is left": after[1] <= before[1] + 5,
        f"no stream broke: {failures[:1]}": not failures,
    }
    for what, kept in bars.items():
        print(f"{'ok' if kept else 'BROKEN'}  {what}")
    return 0 if all(bars.values()) else 1


async def waiting() -> AsyncIterator[None]:
    """Yield until a minute is over."""
    for _ in range(600):
        yield
        await asyncio.sleep(0.1)


def main() -> int:
    """Start the server, measure, and stop it."""
    parser = argparse.ArgumentParser(description="How soon pages see what happens.")
    parser.add_argument("--minutes", type=float, default=0.5)
    parser.add_argument("--serve", nargs=2, metavar=("FOLDER", "PORT"), help=argparse.SUPPRESS)
    given: Any = parser.parse_args()
    if given.serve:
        os.chdir(given.serve[0])
        asyncio.run(serve(Path(given.serve[0]), int(given.serve[1])))
        return 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        install_workshop(folder)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "tests.bench.event_streams", "--serve", str(folder), str(port)]
        with subprocess.Popen(command, env=environment_of(folder)) as process:
            try:
                return asyncio.run(measure(f"http://127.0.0.1:{port}", psutil.Process(process.pid), given.minutes * 60))
            finally:
                process.terminate()


if __name__ == "__main__":
    sys.exit(main())
