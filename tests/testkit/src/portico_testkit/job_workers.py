"""Workers of a job queue besides the one of the test: in processes of their own, which can be killed."""

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

_PAUSE = 0.02
"""Seconds between two looks."""

_LAST = 600.0
"""Seconds after which a worker ends by itself, whatever became of who began it."""


class OtherWorker(Protocol):
    """A worker that is not the test's own; it ends with the block of `Elsewhere`."""

    async def kill(self) -> None:
        """End it without a word: it tells nobody, and gives nothing back."""
        ...

    def complaint(self) -> str | None:
        """Return what it said when it ended by itself; None as long as it is at work, or was killed."""
        ...


Elsewhere: TypeAlias = Callable[[], AbstractAsyncContextManager[OtherWorker]]
"""Begins another worker, which carries out jobs of the kind ``noted`` by `noted`."""


def worker_process(source: str) -> Elsewhere:
    """Return what begins workers in processes of their own, each with a queue that ``source`` opens.

    ``source`` is Python that defines ``async def opened() -> JobQueue``, for the queue that the test has too. A process
    is killed with the block, or when this process ends.
    """
    program = (
        f"import asyncio\nfrom portico_testkit.job_workers import work_until_told\n{source}\n"
        "if __name__ == '__main__':\n    asyncio.run(work_until_told(opened))\n"
    )

    @asynccontextmanager
    async def begin() -> AsyncIterator[OtherWorker]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "worker.py"
            file.write_text(program, "utf-8")
            with (Path(folder) / "said").open("w+b") as said:
                process = subprocess.Popen(
                    [sys.executable, str(file)], stdin=subprocess.PIPE, stdout=said, stderr=said, start_new_session=True
                )
                with killed_at_the_end(process):
                    yield _Process(process, Path(said.name))

    return begin


async def work_until_told(opened: Callable[[], Awaitable[JobQueue]]) -> None:
    """Carry out jobs of the kind ``noted`` until the standard input ends: who began the process has ended then."""

    def end() -> None:
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
    queue = await opened()
    async with asyncio.timeout(_LAST):
        await queue.work({"noted": noted})


async def noted(job: Job) -> str:
    """Carry out a job that notes its beginning in a folder, waits there for a file ``go``, and notes its end."""
    folder = Path(job.body["folder"])
    _note(folder, "begins", job)
    try:
        while not (folder / "go").exists():
            await asyncio.sleep(_PAUSE)
    except asyncio.CancelledError:
        _note(folder, "stops", job)
        raise
    _note(folder, "ends", job)
    return job.name


def notes_of(folder: Path, what: str) -> list[str]:
    """Return the names of the jobs that have noted that something ``begins``, ``ends`` or ``stops``, in that order."""
    notes = folder / "notes"
    lines = notes.read_text("utf-8").splitlines() if notes.exists() else []
    return [line.partition(" ")[2] for line in lines if line.startswith(f"{what} ")]


def _note(folder: Path, what: str, job: Job) -> None:
    # One write of less than a page, at the end of the file: those of several processes are not mixed.
    number = os.open(folder / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(number, f"{what} {job.name}\n".encode())
    finally:
        os.close(number)


class _Process:
    def __init__(self, process: subprocess.Popen[bytes], said: Path) -> None:
        self._process = process
        self._said = said
        self._killed = False

    async def kill(self) -> None:
        self._killed = True
        self._process.kill()
        await asyncio.to_thread(self._process.wait)

    def complaint(self) -> str | None:
        if self._killed or self._process.poll() is None:
            return None
        return f"it ended with code {self._process.returncode}: {self._said.read_text('utf-8', 'replace')[-3_000:]}"
