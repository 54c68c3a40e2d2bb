"""Commands that are started: what is waited for, and that none outlives its test."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.support.processes import started

Failed = pytest.fail.Exception


def script(source: str) -> list[str]:
    return [sys.executable, "-c", source]


def test_a_command_is_at_work_when_what_is_waited_for_is_so(tmp_path: Path) -> None:
    source = "import pathlib\npathlib.Path('begun').touch()\nprint(input(), input())"
    with started(script(source), cwd=tmp_path, said="one\n", until=(tmp_path / "begun").exists) as process:
        assert process.poll() is None
        out, err = process.communicate("två\n", timeout=60)
    assert (process.returncode, out, err) == (0, "one två\n", "")


@pytest.mark.parametrize("said", ["", "never read\n" * 100_000], ids=["silent", "with much to read"])
def test_a_command_that_ends_before_is_a_failure_that_shows_what_it_wrote(said: str) -> None:
    source = "import sys; sys.stdin.close(); print('out'); print('no such option', file=sys.stderr); exit(2)"
    failing = started(script(source), said=said, until=lambda: False)
    with pytest.raises(Failed) as raised, failing:
        pass
    assert "ended with code 2 before what is waited for" in str(raised.value)
    assert "Standard output:\nout\n" in str(raised.value)
    assert "Standard error:\nno such option\n" in str(raised.value)


def test_a_command_that_still_runs_is_killed_with_what_it_started_and_its_pipes_are_closed() -> None:
    source = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print('both', flush=True)\ntime.sleep(600)"
    )
    with started(script(source)) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "both\n"
        process.stdin.write("left in the buffer")
        copy = os.dup(process.stdout.fileno())
    assert process.returncode not in (None, 0)
    assert process.stdout.closed
    assert process.stdin.closed
    try:
        assert os.read(copy, 1) == b"", "the child still has the pipe"
    finally:
        os.close(copy)
