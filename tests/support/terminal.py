"""Commands at a terminal of their own: what a person types, and what that person sees.

Terminals are POSIX's: on Windows a test that needs one is to be skipped.
"""

from __future__ import annotations

import codecs
import errno
import os
import re
import select
import shlex
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest
from tests.support.processes import PATIENCE, killed_at_the_end

__all__ = ["CTRL_C", "CTRL_D", "Shown", "at_terminal", "without_escapes"]

CTRL_C = "\x03"
CTRL_D = "\x04"

# Control sequences and operating system commands, as ECMA-48 has them, sections 5.4 and 5.6; terminals let a bell end
# a command too.
_ESCAPE = r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
_TOKEN = re.compile(rf"{_ESCAPE}|[\r\n\b]|[^\x1b\r\n\b]+|\x1b")

# Not a function to call in the child: that is unsafe where this process has threads. It makes the terminal the
# one that Ctrl-C comes from. Tests that a shell runs in the background have interrupts ignored, which is inherited.
_LAUNCH = """\
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.SIG_DFL)
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except OSError as error:
    print(f"{sys.argv[1]}: {error.strerror}")
    sys.exit(127)
"""

_PAUSE = 0.2
"""Seconds for which to wait for something to be written before the clock is looked at."""

_LEFT_OPEN = 1.0
"""Seconds of silence that end a command which has ended, but left something running that has the terminal open."""

_AGAIN = 5.0
"""Seconds without an effect after which a person presses Ctrl-C again."""

_HOLDS = 4096
"""Bytes that Linux holds for a command to read; what is typed beyond them waits in another place."""

_GO_ON = b"\x11"
"""Ctrl-Q, which a terminal takes for itself."""


def without_escapes(written: str) -> str:
    """Leave out colours, links and what else moves or sets a terminal.

    >>> without_escapes("\\x1b[1mbold\\x1b[0m and \\x1b]8;;https://example.org\\x1b\\\\linked\\x1b]8;;\\x1b\\\\")
    'bold and linked'
    """
    return re.sub(_ESCAPE, "", written)


@dataclass(frozen=True, slots=True)
class Shown:
    """How a command at a terminal ended: its exit code, and all that was written, echoes and escapes included.

    >>> Shown(0, "Working…\\r\\x1b[2K\\x1b[1mdone\\x1b[0m\\r\\n").text
    'Working…\\rdone\\n'
    """

    code: int
    written: str

    @property
    def text(self) -> str:
        """What was written, without escapes, and with plain ends of lines."""
        return without_escapes(self.written).replace("\r\n", "\n")

    @property
    def screen(self) -> list[str]:
        r"""The lines that stay: what a progress bar wrote and took away is not among them.

        A line that is too long for the terminal is not broken, so that a test can tell. Each character is taken to be
        one column wide. Cursors are moved up and along a line, and lines are erased, which is what rich and readline
        do; other escapes have no effect.

        >>> Shown(0, "Working…\r\x1b[2Kdone\r\n").screen
        ['done', '']
        """
        lines: list[list[str]] = [[]]
        row = column = 0
        for token in _TOKEN.findall(self.written):
            if token == "\n":
                row += 1
                lines += [[] for _ in range(row + 1 - len(lines))]
            elif token == "\r":
                column = 0
            elif token == "\b":
                column = max(0, column - 1)
            elif moved := re.fullmatch(r"\x1b\[(\d*)([ACDK])", token):
                number, kind = moved.groups()
                match kind:
                    case "A":
                        row = max(0, row - int(number or 1))
                    case "C":
                        column += int(number or 1)
                    case "D":
                        column = max(0, column - int(number or 1))
                    case _:
                        _erase(lines[row], column, number)
            elif not token.startswith("\x1b"):
                line = lines[row]
                line += " " * (column - len(line))
                line[column : column + len(token)] = token
                column += len(token)
        return ["".join(line) for line in lines]


def _erase(line: list[str], column: int, part: str) -> None:
    if part in ("1", "2"):
        line[: column + 1] = " " * min(column + 1, len(line))
    if part in ("", "0", "2"):
        del line[0 if part == "2" else column :]


def at_terminal(
    command: Sequence[str],
    *,
    steps: Iterable[tuple[str, str]] = (),
    columns: int = 80,
    rows: int = 24,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    patience: float = PATIENCE,
) -> Shown:
    """Run a command at a terminal of its own to its end, and type the answer to each thing that it asks.

    >>> greet = "print('Hello ' + input('Your name: '))"
    >>> at_terminal([sys.executable, "-c", greet], steps=[("name: ", "Ada\\n")]).text
    'Your name: Ada\\nHello Ada\\n'

    A step is a text that is waited for, escapes included, and what is then typed; the next step looks only at what
    comes after that text. `CTRL_C` does what it does at any terminal: it also drops what was written and is not read
    yet, so wait for the last of what you want to see. Between two keys a Python that reads a line with readline does
    not hear an interrupt before the next key, so where nothing is written for some seconds Ctrl-C is pressed again, as
    people do.

    ``env`` is the whole environment, that of this process by default; ``COLUMNS`` and ``LINES`` in it usually win
    over the size of the terminal, and ``TERM`` says what it can do. A command that ends before all steps are done, or
    has not ended after ``patience`` seconds, fails the test, which shows what was written. Nothing that was started
    runs on, and no file stays open.
    """
    import pty
    import termios

    master, slave = pty.openpty()
    try:
        try:
            termios.tcsetwinsize(slave, (rows, columns))
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _LAUNCH, *command],
                cwd=cwd,
                env=env,
                stdin=slave,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
            )
        finally:
            os.close(slave)
        with killed_at_the_end(process):
            dialogue = _Dialogue(shlex.join(command), process, master, steps)
            return dialogue.to_its_end(patience)
    finally:
        os.close(master)


class _Dialogue:
    """What is written to and typed at the terminal ``master`` is the other end of."""

    def __init__(
        self, command: str, process: subprocess.Popen[bytes], master: int, steps: Iterable[tuple[str, str]]
    ) -> None:
        os.set_blocking(master, False)
        self._command, self._process, self._master = command, process, master
        self._steps = deque(steps)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._written = ""
        self._seen = 0
        """Where in what was written the next step begins to look."""
        self._typed = b""
        """What is typed and not yet taken."""
        self._much = False
        self._silent_since = time.monotonic()
        self._pressed: tuple[int, float] | None = None
        """How much was written when Ctrl-C was pressed, and when it is pressed again."""

    def to_its_end(self, patience: float) -> Shown:
        given_up = time.monotonic() + patience
        while self._exchange():
            self._press_again()
            self._answer()
            if time.monotonic() > given_up:
                waiting = f", and {self._steps[0][0]!r} did not come" if self._steps else ""
                self._fail(f"has not ended after {patience:g} seconds{waiting}")
        self._written += self._decoder.decode(b"", final=True)
        try:
            code = self._process.wait(max(1.0, given_up - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._fail(f"has closed its terminal and has not ended after {patience:g} seconds")
        if self._steps:
            self._fail(f"ended with code {code}, and {self._steps[0][0]!r} did not come")
        return Shown(code, self._written)

    def _exchange(self) -> bool:
        """Read and type what can be at the moment; tell whether the terminal is still open."""
        typing = [self._master] if self._typed else []
        readable, writable, _ = select.select([self._master], typing, [], _PAUSE)
        if not (self._typed or readable):
            self._wake()
        try:
            if writable:
                self._typed = self._typed[os.write(self._master, self._typed) :]
            if readable:
                piece = os.read(self._master, 65536)
                self._written += self._decoder.decode(piece)
                self._silent_since = time.monotonic()
                return bool(piece)
        except BlockingIOError:
            pass  # It is busy after all.
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return False  # So Linux says that nobody has the terminal any more.
        # An end restarts the silence: this process may have been stopped, and have slept through all of it.
        if self._process.returncode is None and self._process.poll() is not None:
            self._silent_since = time.monotonic()
        return self._process.returncode is None or time.monotonic() < self._silent_since + _LEFT_OPEN

    def _answer(self) -> None:
        while self._steps and (found := self._written.find(self._steps[0][0], self._seen)) >= 0:
            text, typed = self._steps.popleft()
            self._seen = found + len(text)
            self._typed += typed.encode()
            self._much = len(self._typed) > _HOLDS
            if typed == CTRL_C:
                self._pressed = (len(self._written), time.monotonic() + _AGAIN)

    def _wake(self) -> None:
        """Have Linux hand on what it could not hold: on a busy machine it may forget to, until one more key comes."""
        import termios

        # Elsewhere the command would read that key.
        if self._much and termios.tcgetattr(self._master)[0] & termios.IXON:
            with suppress(BlockingIOError):
                os.write(self._master, _GO_ON)

    def _press_again(self) -> None:
        if self._pressed is None:
            return
        length, due = self._pressed
        if len(self._written) > length:
            self._pressed = None
        elif time.monotonic() > due:
            self._typed += CTRL_C.encode()
            self._pressed = (length, time.monotonic() + _AGAIN)

    def _fail(self, why: str) -> NoReturn:
        told = "It wrote nothing."
        if self._written:
            told = (
                f"It wrote, without escapes:\n{without_escapes(self._written)[-6000:]}\n"
                f"and last, with them: {self._written[-200:]!r}"
            )
        pytest.fail(f"`{self._command}` {why}.\n{told}")
