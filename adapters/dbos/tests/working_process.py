"""A worker of the tests in a process of its own: carries out jobs of several steps, and notes each in a file.

`python working_process.py SETTINGS FOLDER [KIND]`. A step is noted when it begins and, where its job was not stopped,
when it is recorded. A job of the kind `deadly` ends the process. `submit NAME` instead of a folder submits one job.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

from portico.plugins import Secret
from portico.ports import Job
from portico_dbos.config import DbosSettings
from portico_dbos.runner import DbosRunner


def settings_of(text: str) -> DbosSettings:
    """Return the settings that the test wrote as JSON."""
    values: dict[str, Any] = json.loads(text)
    if "uri" in values:
        values["uri"] = Secret(values["uri"])
    else:
        values["path"] = Path(values["path"])
    return DbosSettings(**values)


def note(folder: Path, line: str) -> None:
    """Add a line in one write, so that those of several processes are not mixed."""
    number = os.open(folder / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(number, f"{line}\n".encode())
    finally:
        os.close(number)


async def carry_out(runner: DbosRunner, folder: Path, job: Job) -> list[int]:
    """Execute the steps of a job."""

    async def step(number: int) -> int:
        note(folder, f"begins {job.name} {number}")
        await asyncio.sleep(job.body["seconds"])
        return number

    results = []
    for number in range(job.body["steps"]):
        results.append(await runner.execute(job.name, f"s{number}", partial(step, number)))
        note(folder, f"recorded {job.name} {number}")
    return results


async def die(job: Job) -> None:
    """End the process."""
    os._exit(9)


async def work(settings: DbosSettings, folder: Path) -> None:
    """Be a worker until the standard input ends, which it does with the test."""
    runner = DbosRunner(settings)

    def end() -> None:
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
    await runner.jobs.work({"steps": partial(carry_out, runner, folder), "deadly": die})


async def submit(settings: DbosSettings, name: str) -> None:
    """Submit one job, and run something, as the first process of all may do."""
    runner = DbosRunner(settings)
    await runner.jobs.submit([Job(name, "steps", {"steps": 1, "seconds": 0})])
    print(await runner.durable.run(f"run of {name}", partial(runner.execute, f"run of {name}", "s", nothing)))
    await runner.aclose()


async def nothing() -> str:
    """Do nothing."""
    return "done"


if __name__ == "__main__":
    if sys.argv[2] == "submit":
        asyncio.run(submit(settings_of(sys.argv[1]), sys.argv[3]))
    else:
        asyncio.run(work(settings_of(sys.argv[1]), Path(sys.argv[2])))
