"""A server that is a program: started, spoken to by its pipes, and ended with all that it started."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import shutil
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from portico.plugins import Secret
from portico_mcp._client.words import clean

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams

_log = logging.getLogger(__name__)

_GUARD = Path(__file__).with_name("guard.py")
_PATIENCE = 2.0
"""Seconds for a server to end by itself when its input ends, and again after it was asked to."""
_LINES, _LINE = 20, 2_000
_UNREADABLE = 1_000
"""Lines between two messages that may be none: programs print what they should not, but not without end."""


class Process:
    """Starts a server and exchanges lines with it. ``problem`` says what ended the exchange, in words; "" before.

    Of what the server writes to its error output the last lines are kept, in ``words``.
    """

    def __init__(
        self, command: Sequence[str], env: Mapping[str, Secret], folder: Path | None, maximum_bytes: int
    ) -> None:
        self._command, self._env, self._folder, self._maximum = tuple(command), env, folder, maximum_bytes
        self.words: deque[str] = deque(maxlen=_LINES)
        self._leaving = False
        self.problem = ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TransportStreams]:
        """Start the program; it is ended on leaving, with all that it started. Raises ``OSError``."""
        process, lifeline = await self._start()
        arriving, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, leaving = anyio.create_memory_object_stream[SessionMessage](0)
        tasks: list[asyncio.Task[None]] = []
        try:
            async with arriving, read, write, leaving:
                tasks = [
                    asyncio.create_task(self._read(process, arriving)),
                    asyncio.create_task(self._write(process, leaving, arriving)),
                    asyncio.create_task(self._listen(process)),
                ]
                yield read, write
        finally:
            self._leaving = True
            try:
                await _end(process)
            finally:
                _kill(process)
                os.close(lifeline)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await _ended(process)

    async def _start(self) -> tuple[asyncio.subprocess.Process, int]:
        """Start the guard with the program; return it with the end of the pipe that keeps both alive."""
        env = get_default_environment() | {name: secret.reveal() for name, secret in self._env.items()}
        if self._folder is not None and not self._folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"there is no folder {self._folder}")
        program = self._command[0]
        # A path is read from the folder, where the program runs.
        found = (self._folder or Path.cwd()) / program if "/" in program or os.sep in program else program
        if shutil.which(found, path=env.get("PATH")) is None:
            hint = "; its arguments go into `args`" if " " in program else ""
            raise FileNotFoundError(errno.ENOENT, f"there is no such program that can be run{hint}")
        watched, lifeline = os.pipe()
        guard = () if sys.platform == "win32" else (sys.executable, "-I", "-S", str(_GUARD), str(watched))
        try:
            process = await asyncio.create_subprocess_exec(
                *guard,
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=env,
                cwd=self._folder,
                limit=self._maximum,
                pass_fds=(watched,) if guard else (),
                start_new_session=True,
            )
        except BaseException:
            os.close(lifeline)
            raise
        finally:
            os.close(watched)
        return process, lifeline

    async def _read(
        self, process: asyncio.subprocess.Process, arriving: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        assert process.stdout is not None  # noqa: S101 - it was asked for
        unreadable = 0
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with arriving:
                while not self.problem:
                    try:
                        line = await process.stdout.readuntil()
                    except asyncio.LimitOverrunError:
                        self.problem = f"the server sent a message of more than {self._maximum:,} bytes"
                        break
                    except asyncio.IncompleteReadError:
                        break
                    try:
                        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except ValueError as error:
                        unreadable += 1
                        _log.debug("A server wrote what is no message: %s", self._show(line[:_LINE]))
                        if "recursion limit" in str(error):
                            self.problem = "the server sent a message that nests too deeply"
                        elif unreadable > _UNREADABLE:
                            self.problem = "it writes other things to its output than messages"
                    else:
                        unreadable = 0
                        await arriving.send(SessionMessage(message))
                await self._notice_end(process)

    async def _notice_end(self, process: asyncio.subprocess.Process) -> None:
        """Keep how the process ended, unless it is ended from here. Its pipes end a moment before it does."""
        if not self.problem and not self._leaving:
            await _ended(process)
            self.problem = _how_it_ended(process.returncode)

    async def _write(
        self,
        process: asyncio.subprocess.Process,
        leaving: MemoryObjectReceiveStream[SessionMessage],
        arriving: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        assert process.stdin is not None  # noqa: S101 - it was asked for
        try:
            async for each in leaving:
                process.stdin.write(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await process.stdin.drain()
        except OSError:
            await self._notice_end(process)
            # The session must see the end, or a request would wait for ever.
            await arriving.aclose()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None  # noqa: S101 - it was asked for
        kept = b""
        while part := await process.stderr.read(65_536):
            *lines, kept = (kept + part).split(b"\n")
            kept = kept[-_LINE:]
            for line in lines[-_LINES:]:
                self._hear(line)
        self._hear(kept)

    def _hear(self, line: bytes) -> None:
        if words := self._show(line[-_LINE:]):
            self.words.append(words)
            _log.debug("%s: %s", self._command[0], words)

    def _show(self, line: bytes) -> str:
        hidden = [each for each in self._env.values() if each.reveal()]
        return clean(Secret.redact(line.decode("utf-8", "replace"), hidden))


def _how_it_ended(code: int | None) -> str:
    if code is None:
        return "it closed its output"
    if code > 128 or code < 0:
        with suppress(ValueError):
            return f"it was ended by {signal.Signals(-code if code < 0 else code - 128).name}"
    return f"it ended with the exit code {code}"


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the input, which tells a server to end; then ask it to; then kill it."""
    if process.stdin is not None:
        process.stdin.close()
    if not await _ended(process):
        _signal(process, signal.SIGTERM)
        await _ended(process)


async def _ended(process: asyncio.subprocess.Process) -> bool:
    """Wait for the process alone: its pipes may be held open by what it started."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _PATIENCE
    while process.returncode is None and loop.time() < deadline:  # noqa: ASYNC110 - nothing else tells of its end
        await asyncio.sleep(0.01)
    return process.returncode is not None


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill what is left of the process group, and close the pipes, which another process may hold."""
    _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
    transport = process._transport  # type: ignore[attr-defined]  # noqa: SLF001 - nothing public closes it
    with suppress(PermissionError):
        transport.close()


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.terminate()
        else:
            os.killpg(process.pid, number)
