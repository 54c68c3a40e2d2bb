"""The first Ctrl-C ends a command, also while a package is imported; and so does the command's own end.

Signals are sent to real processes. Those that should not end wait for a minute, which no test needs.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from portico_cli import loops as lingering
from portico_cli.loops import end_though_threads_linger, interruptible

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no signal is like Ctrl-C there")

PLUGIN = (Path(__file__).parent / "acme" / "portico_acme.py").read_text()
SLOW = "import pathlib, time\npathlib.Path('begun').touch()\ntime.sleep(60)\n"
CHOSEN = '[search.web]\nuse = "acme"\n'
Make = Callable[..., None]
Started = Callable[..., "subprocess.Popen[str]"]


@pytest.mark.parametrize(
    ("plugin", "search", "arguments"),
    [
        pytest.param(SLOW + PLUGIN, "", ("doctor",), id="doctor finds packages"),
        pytest.param(PLUGIN, SLOW, ("doctor",), id="doctor makes services"),
        pytest.param(PLUGIN, SLOW, ("search", "q", "--source", "web"), id="search imports what it uses"),
        pytest.param(PLUGIN, SLOW, ("ask", "q", "--source", "web"), id="ask does"),
        pytest.param(PLUGIN, SLOW, ("chat", "--source", "web"), id="chat does"),
        pytest.param(
            PLUGIN,
            f"def Search(*given):\n{indent(SLOW, '    ')}",
            ("search", "q", "--source", "web"),
            id="a slow factory",
        ),
    ],
)
def test_the_first_interrupt_acts_while_a_package_is_imported(
    package: Make, started: Started, folder: Path, plugin: str, search: str, arguments: tuple[str, ...]
) -> None:
    package(plugin, modules={"portico_acme_search": search})
    (folder / "portico.toml").write_text(CHOSEN)
    process = started(*arguments, until="begun")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=50)
    assert (process.returncode, out, err.strip()) == (130, "", "Interrupted.")


async def test_an_interrupt_elsewhere_is_left_to_the_loop() -> None:
    given: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: given.append(number))
    try:
        ours = signal.getsignal(signal.SIGINT)

        async def work() -> str:
            signal.raise_signal(signal.SIGINT)
            return "done"

        assert await interruptible(work) == "done"
        assert given == [signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is ours
    finally:
        signal.signal(signal.SIGINT, before)


async def test_a_process_that_is_not_to_be_interrupted_is_not() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:

        async def work() -> Any:
            return signal.getsignal(signal.SIGINT)

        assert await interruptible(work) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_thread_of_a_package_does_not_keep_the_command(package: Make, portico: Any) -> None:
    package(
        f"import threading, time\nthreading.Thread(target=time.sleep, args=(500,), name='poller').start()\n{PLUGIN}"
    )
    done = portico("plugins", "acme", "--json")
    assert (done.code, done.err) == (0, "Ended, though a thread of a package continues: 'poller'.\n")
    assert done.json["packages"][0]["distribution"] == "portico-acme", "what was written is whole"
    assert portico("plugins", "no-such-thing").code == 2


def test_a_thread_that_ends_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lingering, "_THREAD_PATIENCE", 60.0)
    monkeypatch.setattr("os._exit", lambda code: pytest.fail("it ends by itself"))
    thread = threading.Thread(target=lambda: None)
    thread.start()
    end_though_threads_linger(0)
    assert not thread.is_alive()
