"""Processes that find the text in pages, and the questions to them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from portico.errors import LimitExceeded, ResponseInvalid, ServiceUnavailable
from portico_web.pages._wire import Kind
from portico_web.pages._worker import received, sent

_Answer: TypeAlias = tuple[dict[str, Any], bytes]

_JOBS_A_PROCESS = 500
_PART_FOR_MAIN_TEXT = 0.7
# -P keeps the working directory off sys.path: what lies there must not be imported in place of Python's own modules.
_COMMAND = ("-P", "-c")
_PROGRAM = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from portico_web.pages._worker import main; main()"
# What Python and the libraries of the system need. The rest stays here: a process that reads what strangers wrote
# has no use for an application's keys.
_PASSED_ON = frozenset(
    {"HOME", "LANG", "LD_LIBRARY_PATH", "PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "WINDIR"}
    | {f"PYTHON{name}" for name in ("DONTWRITEBYTECODE", "HOME", "NOUSERSITE", "PLATLIBDIR", "PYCACHEPREFIX", "UTF8")}
)
_PASSED_ON_STARTS = ("LC_", "DYLD_")


@dataclass(frozen=True, slots=True)
class Job:
    """Bytes and how to read them."""

    kind: Kind
    data: bytes
    content_type: str | None
    characters: int
    pages: int
    seconds: float
    crude: bool = False
    """Whether all text of an HTML page will do, its menus and the like too: found in a fraction of the time."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of a page."""

    text: str
    title: str | None
    cut: str | None


class Extractors:
    """So many processes, started when they are needed and kept for the next page.

    A job that takes too long, or whose caller is cancelled, costs its process. HTML has a second, crude try when
    its main text is not found in most of the time, or finding it ends the process. Raises ``LimitExceeded`` with the
    time, ``ResponseInvalid`` for what has no text, ``ServiceUnavailable`` when no process can be started.
    """

    def __init__(self, processes: int) -> None:
        self._places = asyncio.Semaphore(processes)
        self._idle: list[_Process] = []
        self._closed = False

    async def extract(self, job: Job, link: str) -> Extracted:
        """Return the text; ``link`` is as shown in errors."""
        async with self._places:
            began = time.monotonic()
            if job.kind == "html" and not job.crude:
                answer = await self._answer(replace(job, seconds=job.seconds * _PART_FOR_MAIN_TEXT))
                if answer is None or answer[0].get("limit"):
                    rest = job.seconds * (1 - _PART_FOR_MAIN_TEXT)
                    answer = await self._answer(replace(job, seconds=rest, crude=True))
            else:
                answer = await self._answer(job)
            if answer is None:
                raise _ended(link, job, time.monotonic() - began)
        head, data = answer
        fault = head.get("fault")
        if fault is not None:
            kind = LimitExceeded if head.get("limit") else ResponseInvalid
            raise kind(f"The page {link} {fault}.")
        return Extracted(data.decode(), head["title"], head["cut"])

    async def _answer(self, job: Job) -> _Answer | None:
        """Have one process do a job; None when that ends it."""
        process = self._idle.pop() if self._idle else _Process()
        fresh = not process.jobs
        began = time.monotonic()
        answer = await _asked(process, job)
        if answer is None and not fresh and time.monotonic() - began < job.seconds / 2:
            # It ended while it was idle, or as it took the job: that says nothing against the page.
            process = _Process()
            answer = await _asked(process, job)
        if answer is None:
            return None
        if process.jobs < _JOBS_A_PROCESS and not self._closed:
            self._idle.append(process)
        else:
            process.close()
        return answer

    async def aclose(self) -> None:
        """End the processes that are idle; one at work ends with its job's caller."""
        self._closed = True
        idle, self._idle = self._idle, []
        for process in idle:
            process.close()


def _ended(link: str, job: Job, seconds: float) -> LimitExceeded | ResponseInvalid:
    if seconds >= job.seconds * 0.9:
        return LimitExceeded(f"The text of {link} was not found within {job.seconds:g} seconds (extract_seconds).")
    return ResponseInvalid(f"The page {link} cannot be read: it ends the process that reads it.")


async def _asked(process: _Process, job: Job) -> _Answer | None:
    """Ask a process in a thread; when cancelled, end the process, which ends the thread, and wait for that."""
    task = asyncio.ensure_future(asyncio.to_thread(process.ask, job))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        process.kill()
        await asyncio.wait({task})
        process.close()
        if not task.cancelled():
            task.exception()  # seen: less than the wish to stop
        raise


class _Process:
    """One process; used by one thread at a time, and killed from any."""

    def __init__(self) -> None:
        self.jobs = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._starting = threading.Lock()
        self._killed = False

    def ask(self, job: Job) -> _Answer | None:
        """Do a job; None when the process ends over it."""
        process = self._started()
        if process is None or process.stdin is None or process.stdout is None:
            return None
        self.jobs += 1
        head = {
            "kind": job.kind,
            "content_type": job.content_type,
            "characters": job.characters,
            "pages": job.pages,
            "seconds": job.seconds,
            "crude": job.crude,
        }
        try:
            sent(process.stdin, head, job.data)
            answer = received(process.stdout)
        except (OSError, ValueError):
            answer = None
        if answer is None:
            self.close()
        return answer

    def kill(self) -> None:
        with self._starting:
            self._killed = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """End the process and take leave of it."""
        self.kill()
        if self._process is not None:
            for stream in (self._process.stdin, self._process.stdout):
                # What was still to be written goes nowhere.
                with contextlib.suppress(OSError):
                    if stream is not None:
                        stream.close()
            self._process.wait()

    def _started(self) -> subprocess.Popen[bytes] | None:
        with self._starting:
            if self._killed:
                return None
            if self._process is None:
                path = json.dumps([place for place in sys.path if place])
                try:
                    self._process = subprocess.Popen(  # noqa: S603 - our own module, in this Python
                        [sys.executable, *_COMMAND, _PROGRAM, path],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL,
                        env=_environment(),
                        close_fds=True,
                    )
                except (OSError, ValueError, TypeError) as error:
                    raise ServiceUnavailable(
                        f"The page reader 'web-pages' cannot start a process that reads pages: {error}."
                    ) from error
            return self._process


def _environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name.upper() in _PASSED_ON or name.upper().startswith(_PASSED_ON_STARTS)
    }
