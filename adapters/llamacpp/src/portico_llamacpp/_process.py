"""The model's process: started once, asked by lines, ended with the service.

Threads read and write its pipes, so that no event loop waits for them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, Any, TypeAlias

import msgspec

from portico.errors import PorticoError, ServiceUnavailable
from portico_llamacpp._errors import end_error, unfit
from portico_llamacpp._wire import About, Chunk, Failure, Line, read_line, write_json

_LAST_LINES = 40
_SECONDS_TO_END = 5.0

Event: TypeAlias = Chunk | Failure | PorticoError | None
"""An event of a call: a piece, a refusal, a failure of the process, or None at its end."""


class Call:
    """One request. ``tell`` is called in another thread with each event, at last with None or a failure."""

    __slots__ = ("body", "id", "tell")

    def __init__(self, body: bytes, tell: Callable[[Event], None]) -> None:
        self.id = 0
        self.body = body
        self.tell = tell


class ModelProcess:
    """A loaded model, or one being loaded. All methods may be called from any thread and return at once.

    At most ``slots`` calls are sent to the model; the others wait here.
    """

    def __init__(self, model: str, configuration: Mapping[str, Any], *, slots: int, show_log: bool) -> None:
        self.ready: Future[About] = Future()
        self._model = model
        self._free = slots
        self._lock = threading.Lock()
        self._calls: dict[int, Call] = {}
        self._waiting: deque[Call] = deque()
        self._number = 0
        self._end: PorticoError | None = None
        self._owner = os.getpid()
        self._outbox: SimpleQueue[bytes | None] = SimpleQueue()
        self._log: deque[str] = deque(maxlen=_LAST_LINES)
        self._process = _start(show_log=show_log)
        self._outbox.put(write_json(configuration))
        tasks: list[Callable[[], None]] = [self._write, self._read]
        if self._process.stderr is not None:
            tasks.append(self._listen)
        # Daemons, since the process may never be closed.
        self._threads = [threading.Thread(target=task, daemon=True) for task in tasks]
        for thread in self._threads:
            thread.start()

    @property
    def over(self) -> bool:
        """Whether the process has ended or been closed."""
        return self._end is not None

    def submit(self, call: Call) -> None:
        """Have a request answered when its turn comes."""
        with self._lock:
            if self._end is None:
                self._waiting.append(call)
                self._send_next()
                return
            end = self._end
        call.tell(end)

    def cancel(self, call: Call) -> None:
        """Remove a waiting request, or stop it at its next piece. It gets no more events."""
        with self._lock:
            call.tell = _ignore
            if call in self._waiting:
                self._waiting.remove(call)
            elif call.id in self._calls:
                self._outbox.put(b"-%d" % call.id)

    def close(self) -> None:
        """End the process. Every call gets a failure."""
        if os.getpid() != self._owner:  # a fork of the program ends
            return
        self._fail(ServiceUnavailable("The chat service 'llamacpp' was closed before it answered."))
        self._process.terminate()
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_SECONDS_TO_END)

    def _send_next(self) -> None:
        while self._free and self._waiting:
            call = self._waiting.popleft()
            self._free -= 1
            self._number += 1
            call.id = self._number
            self._calls[call.id] = call
            self._outbox.put(b"%d %s" % (call.id, call.body))
            call.body = b""

    def _fail(self, error: PorticoError) -> None:
        with self._lock:
            self._end = self._end or error
            calls = [*self._calls.values(), *self._waiting]
            self._calls.clear()
            self._waiting.clear()
        self._outbox.put(None)
        with suppress(InvalidStateError):
            self.ready.set_exception(error)
        for call in calls:
            call.tell(error)

    def _write(self) -> None:
        # If the process has ended, `_read` reports it.
        with suppress(OSError), _pipe(self._process.stdin) as stream:
            while (line := self._outbox.get()) is not None:
                stream.write(line + b"\n")
                stream.flush()

    def _listen(self) -> None:
        with _pipe(self._process.stderr) as stream:
            for line in stream:
                self._log.append(line.decode("utf-8", "replace"))

    def _read(self) -> None:
        failed: PorticoError | None = None
        with _pipe(self._process.stdout) as stream:
            for written in stream:
                try:
                    line = read_line(written)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    failed = ServiceUnavailable(
                        f"The process that runs {self._model} wrote a line that cannot be read: {error}."
                    )
                    self._process.kill()
                    break
                if line.failed is not None:
                    self._process.wait()
                    self._join_log()
                    failed = unfit(self._model, line.failed, self._log)
                elif line.ready is not None:
                    self.ready.set_result(line.ready)
                else:
                    self._pass_on(line)
        code = self._process.wait()
        self._join_log()
        self._fail(failed or end_error(self._model, code, self._log))

    def _join_log(self) -> None:
        for thread in self._threads[2:]:
            thread.join(_SECONDS_TO_END)

    def _pass_on(self, line: Line) -> None:
        with self._lock:
            call = self._calls.get(line.id)
            if line.end and call is not None:
                del self._calls[line.id]
                self._log.clear()  # it was about this call
                self._free += 1
                self._send_next()
        if call is None:
            return
        if line.chunk is not None:
            call.tell(line.chunk)
        elif line.end:
            call.tell(line.error)


def _start(*, show_log: bool) -> subprocess.Popen[bytes]:
    # -P: files in the working directory must not be imported. A new session: the application handles Ctrl-C and ends
    # this process.
    command = [sys.executable, "-P", "-m", "portico_llamacpp._child"]
    try:
        return subprocess.Popen(  # noqa: S603 - this interpreter and a module of ours
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if show_log else subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise ServiceUnavailable(
            f"The chat service 'llamacpp' cannot start a process for its model with {sys.executable!r}: {error}."
        ) from error


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # noqa: S101 - asked for when the process was started
    return stream


def _ignore(event: Event) -> None:
    """Ignore what a call would hear."""
