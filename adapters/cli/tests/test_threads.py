"""A thread of a package that does not end does not keep a command."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portico_cli import loops as lingering
from portico_cli.loops import end_though_threads_linger

PLUGIN = (Path(__file__).parent / "acme" / "portico_acme.py").read_text()
Make = Callable[..., None]


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
