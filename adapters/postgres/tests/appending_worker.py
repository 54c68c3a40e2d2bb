"""A program that forks a process for each task read, which appends to a run until it is killed.

Each append is of three entries with the numbers that follow; how many appends there are is said in a file after each.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from portico.plugins import Secret
from portico_postgres.config import PostgresRunSettings
from portico_postgres.run_store import PostgresRunStore


async def append(task: dict[str, Any]) -> None:
    """Take the run, and go on with it."""
    store = PostgresRunStore(PostgresRunSettings(uri=Secret(task["uri"]), schema=task["schema"]))
    lease = await store.acquire("r1", owner=f"worker:{os.getpid()}", seconds=3600)
    number = len(await store.read("r1"))
    with Path(task["said"]).open("a") as said:
        while True:
            await store.append(lease, [{"n": number + at} for at in range(3)])
            number += 3
            print(number // 3, file=said, flush=True)


def main() -> None:
    """Fork a process for each task."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        child = os.fork()
        if child:
            print(child, flush=True)
            continue
        try:
            asyncio.run(append(task))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)


if __name__ == "__main__":
    main()
