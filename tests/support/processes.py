"""Commands that are at work while a test does something to them, and that end with the test whatever becomes of it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

__all__ = ["PATIENCE", "killed_at_the_end", "started"]

PATIENCE = 90.0
"""Seconds that a command is given: long, as the machine may be busy, but shorter than a test usually is given."""

_PAUSE = 0.02
"""Seconds between two looks at whether it is time."""


@contextmanager
def started(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    said: str = "",
    until: Callable[[], object] | None = None,
    patience: float = PATIENCE,
) -> Iterator[subprocess.Popen[str]]:
    """Start a command with pipes, say something to it, wait until something is so, and kill it after the block.

    >>> with started([sys.executable, "-c", "print(input() + input())"], said="How ") as process:
    ...     process.communicate("are\\nyou?\\n")[0]
    'How areyou?\\n'

    ``env`` is the whole environment, that of this process by default. Until ``until`` is true nobody reads what the
    command writes, so it may write some 60,000 bytes to each pipe before. A command that ends before that, or needs
    more than ``patience`` seconds for it, fails the test, which shows what was written.
    """
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    with killed_at_the_end(process):
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # It has ended; what it was to do tells whether that is a failure.
            process.stdin.write(said)
            process.stdin.flush()
        given_up = time.monotonic() + patience
        while until is not None and not until():
            if process.poll() is not None and not until():
                _fail(command, process, f"ended with code {process.returncode} before what is waited for")
            if time.monotonic() > given_up:
                _fail(command, process, f"did not do in {patience:g} seconds what is waited for")
            time.sleep(_PAUSE)
        yield process


@contextmanager
def killed_at_the_end(process: subprocess.Popen[Any]) -> Iterator[None]:
    """Kill a process after the block if it still runs, and close its pipes.

    It must lead a session of its own (``start_new_session=True``): what it started is killed with it. A process that
    has ended by itself answers for its children.
    """
    try:
        yield
    finally:
        _kill(process)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):  # Something was left in a buffer; the pipe is closed all the same.
                    pipe.close()


def _kill(process: subprocess.Popen[Any]) -> None:
    if process.poll() is None:
        # Nobody has waited for it yet, so its number is still its own.
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _fail(command: Sequence[str], process: subprocess.Popen[str], why: str) -> NoReturn:
    _kill(process)
    try:
        out, err = process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        out = err = "(cannot be read to its end: something else has it open)"
    pytest.fail(f"`{shlex.join(command)}` {why}.\nStandard output:\n{out}\nStandard error:\n{err}")
