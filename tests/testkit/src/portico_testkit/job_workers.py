"""A second worker of a job queue, in its own process, which can be killed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol, TypeAlias

from portico.ports import Job, JobQueue
from portico_testkit.processes import killed_at_the_end

__all__ = ["Elsewhere", "OtherWorker", "noted", "notes_of", "work_until_told", "worker_process"]


class OtherWorker(Protocol):
    """A worker beside that of the test; it ends with the block of `Elsewhere`."""

    async def kill(self) -> None:
        """Kill it: it gives nothing back."""
        ...

    def complaint(self) -> str | None:
        """Return its output when it ended by itself; None while it works, or after `kill`."""
        ...


Elsewhere: TypeAlias = Callable[[], AbstractAsyncContextManager[OtherWorker]]
"""Starts another worker, which carries out jobs of the kind ``noted`` by `noted`."""


def worker_process(source: str) -> Elsewhere:
    """Return a function that starts workers in their own processes, each with a queue that ``source`` opens.

    ``source`` is Python that defines ``async def opened() -> JobQueue``, for the queue of the test. A process is killed
    with the block, or when this process ends.
    """
    program = (
        f"import asyncio\nfrom portico_testkit.job_workers import work_until_told\n{source}\n"
        "if __name__ == '__main__':\n    asyncio.run(work_until_told(opened))\n"
    )

    @asynccontextmanager
    async def start() -> AsyncIterator[OtherWorker]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "worker.py"
            file.write_text(program, "utf-8")
            with (Path(folder) / "output").open("w+b") as output:
                process = subprocess.Popen(
                    [sys.executable, str(file)],
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
                with killed_at_the_end(process):
                    yield _Process(process, Path(output.name))

    return start


async def work_until_told(opened: Callable[[], Awaitable[JobQueue]]) -> None:
    """Carry out jobs of the kind ``noted`` until the standard input ends, as it does with the parent process."""

    def end() -> None:
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
    queue = await opened()
    await queue.work({"noted": noted})


async def noted(job: Job) -> str:
    """Carry out a job that notes its beginning in a folder, waits there for a file ``go``, and notes its end."""
    folder = Path(job.body["folder"])
    _note(folder, "begins", job)
    try:
        while not (folder / "go").exists():
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        _note(folder, "stops", job)
        raise
    _note(folder, "ends", job)
    return job.name


def notes_of(folder: Path, what: str) -> list[str]:
    """Return the names of the jobs that noted ``begins``, ``ends`` or ``stops``, in that order."""
    notes = folder / "notes"
    lines = notes.read_text("utf-8").splitlines() if notes.exists() else []
    return [line.partition(" ")[2] for line in lines if line.startswith(f"{what} ")]


def _note(folder: Path, what: str, job: Job) -> None:
    # One unbuffered write at the end of the file: those of several processes do not mix.
    with (folder / "notes").open("ab", buffering=0) as file:
        file.write(f"{what} {job.name}\n".encode())


class _Process:
    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self._process = process
        self._output = output
        self._killed = False

    async def kill(self) -> None:
        self._killed = True
        self._process.kill()
        await asyncio.to_thread(self._process.wait)

    def complaint(self) -> str | None:
        if self._killed or self._process.poll() is None:
            return None
        return f"it ended with code {self._process.returncode}: {self._output.read_text('utf-8', 'replace')[-3_000:]}"
