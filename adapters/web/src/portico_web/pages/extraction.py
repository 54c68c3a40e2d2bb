"""Processes that find the text in pages."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

from portico.errors import LimitExceeded, ResponseInvalid, ServiceUnavailable
from portico_web.pages.worker import Kind, receive, send

_PROCESSES = 2
_JOBS_A_PROCESS = 500
# -P keeps the working directory off sys.path, so that nothing there replaces Python's own modules.
_COMMAND = ("-P", "-c")
_PROGRAM = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from portico_web.pages.worker import main; main()"
# What Python and the libraries of the system need. A process that reads what strangers wrote gets no keys.
_PASSED_ON = frozenset(
    {"HOME", "LANG", "LD_LIBRARY_PATH", "PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "WINDIR"}
    | {f"PYTHON{name}" for name in ("DONTWRITEBYTECODE", "HOME", "NOUSERSITE", "PLATLIBDIR", "PYCACHEPREFIX", "UTF8")}
)
_PASSED_ON_STARTS = ("LC_", "DYLD_")


@dataclass(frozen=True, slots=True)
class Job:
    """How to read some bytes: at most so many characters, in so many seconds."""

    kind: Kind
    content_type: str | None
    characters: int
    seconds: float


@dataclass(slots=True)
class _Process:
    popen: subprocess.Popen[bytes]
    jobs: int = 0

    def ask(self, job: Job, data: bytes) -> tuple[dict[str, Any], bytes] | None:
        """Do a job; None when the process ends over it. Blocks."""
        if self.popen.stdin is None or self.popen.stdout is None:
            return None
        self.jobs += 1
        try:
            send(self.popen.stdin, asdict(job), data)
            return receive(self.popen.stdout)
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        self.popen.kill()
        for stream in (self.popen.stdin, self.popen.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        self.popen.wait()


class Extractors:
    """At most two processes, started when they are needed and kept for the next page.

    A job that takes too long, or whose caller is cancelled, costs its process. Raises ``LimitExceeded`` with the
    time, ``ResponseInvalid`` for what has no text, ``ServiceUnavailable`` when no process can be started.
    """

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(_PROCESSES)
        self._idle: list[_Process] = []
        self._closed = False

    async def extract(self, job: Job, data: bytes, link: str) -> tuple[str, str | None, str | None]:
        """Return text, title, and what was cut; ``link`` is as shown in errors."""
        async with self._places:
            began = time.monotonic()
            answer = await self._ask(job, data)
        if answer is None and time.monotonic() - began >= job.seconds * 0.9:
            raise LimitExceeded(f"The text of {link} was not found within {job.seconds:g} seconds (seconds).")
        if answer is None:
            raise ResponseInvalid(f"The page {link} cannot be read: it ends the process that reads it.")
        head, text = answer
        if "fault" in head:
            raise ResponseInvalid(f"The page {link} {head['fault']}.")
        return text.decode(), head["title"], head["cut"]

    async def aclose(self) -> None:
        """End the processes that are idle; one at work ends with its job's caller."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    async def _ask(self, job: Job, data: bytes) -> tuple[dict[str, Any], bytes] | None:
        process = self._idle.pop() if self._idle else _start()
        if process.popen.poll() is not None:
            process.close()
            process = _start()
        answer = None
        try:
            answer = await asyncio.to_thread(process.ask, job, data)
        finally:
            # When the caller is cancelled, this ends the process and with it the thread.
            if answer is None or process.jobs >= _JOBS_A_PROCESS or self._closed:
                process.close()
            else:
                self._idle.append(process)
        return answer


def _start() -> _Process:
    path = json.dumps([place for place in sys.path if place])
    try:
        popen = subprocess.Popen(  # noqa: S603 - our own module, in this Python
            [sys.executable, *_COMMAND, _PROGRAM, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
        )
    except OSError as error:
        raise ServiceUnavailable(
            f"The page reader 'web-pages' cannot start a process that reads pages: {error}."
        ) from error
    return _Process(popen)


def _environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name.upper() in _PASSED_ON or name.upper().startswith(_PASSED_ON_STARTS)
    }
