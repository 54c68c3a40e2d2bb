"""Processes that may be killed: a program that forks one for each task it is given, and ends with its input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["Forking", "forking", "is_running"]


class Forking:
    """A program at work, which has imported everything, so that a process of it begins with its task at once.

    It reads each task as a line of JSON and answers with the number of the process that it forked for it.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self, task: Any) -> int:
        """Let a process begin with a task, and return its number."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(task), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())


@contextmanager
def forking(program: Path) -> Iterator[Forking]:
    """Run a program of Python that writes ``ready`` and then forks, until the block is left."""
    command = [sys.executable, str(program)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield Forking(process)
        process.stdin.close()


def is_running(pid: int) -> bool:
    """Tell whether there is a process of that number.

    >>> is_running(os.getpid())
    True
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
