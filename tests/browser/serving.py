"""`portico serve` as a user starts it, in a folder with documents, an application's functions and recorded plans."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.browser.plans import recorded
from tests.support.packages import install_package
from tests.support.processes import PATIENCE, killed_at_the_end

HARBOUR = Path(__file__).parent / "library" / "portico_harbour"
FERRIES = """# Ferries

The ferry to Oslo leaves pier 4 at nine in the morning and at half past one in the afternoon.

Bicycles travel free of charge. Dogs need a ticket.
"""
WEATHER = "# Weather\n\nThe wind in the fjord turns at noon.\n"
QUESTION = "When does the ferry to Oslo leave?"
CONFIGURATION = """
[runs]
use = "sqlite"
[runs.sqlite]
path = "runs.sqlite3"
[planner]
max_steps = 600
[planner.pilot]
[functions.harbour]
use = "harbour"
"""
_ADDRESS = re.compile(r"^(http://127\.0\.0\.1:\d+)/\?token=\S+$", re.MULTILINE)
_PAUSE = 0.02


@dataclass
class Server:
    """The folder, and the process that serves it."""

    folder: Path
    options: Sequence[str] = ("--docs", "docs", "--no-browser")
    url: str = ""
    processes: list[subprocess.Popen[Any]] = field(default_factory=list)
    visits: ExitStack = field(default_factory=ExitStack)
    """Closed before the server ends, so that its end is no failure of theirs."""

    @property
    def printed(self) -> str:
        """What the process has written to standard output."""
        return (self.folder / "serve.out").read_text("utf-8")

    @property
    def address(self) -> str:
        """The newest address with a token."""
        return [found[0] for found in _ADDRESS.finditer(self.printed)][-1]

    def start(self) -> None:
        """Start the command, at the port that it had before, and wait until it has printed its address."""
        port = self.url.rpartition(":")[2] or "0"
        command = [sys.executable, "-m", "portico_cli", "serve", "--port", port, *self.options]
        paths = [str(self.folder / "library"), *filter(None, [os.environ.get("PYTHONPATH")])]
        own = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUTF8": "1", "XDG_STATE_HOME": str(self.folder / "state")}
        environment = {**os.environ, **own}
        with (self.folder / "serve.out").open("w") as out, (self.folder / "serve.err").open("a") as err:
            process = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=out, stderr=err, start_new_session=True
            )
        self.processes.append(process)

        def ready() -> bool:
            if process.poll() is not None:
                pytest.fail(f"the server ended: {(self.folder / 'serve.err').read_text('utf-8')}")
            return _ADDRESS.search(self.printed) is not None

        eventually(ready)
        self.url = _ADDRESS.findall(self.printed)[-1]

    def kill(self) -> None:
        """End the process as kill -9 does."""
        self.processes[-1].kill()
        self.processes[-1].wait()

    def gate(self, *steps: str) -> None:
        """Let these steps end, and no other one; ``all`` lets all of them."""
        waiting = self.folder / "gate.new"
        waiting.write_text(" ".join(steps))
        waiting.replace(self.folder / "gate")

    def calls(self) -> Counter[str]:
        """Return how often each step has begun and ended: "begins book", "ends book"."""
        file = self.folder / "calls"
        return Counter(file.read_text().splitlines() if file.exists() else ())

    def plans(self, **plans: Any) -> None:
        """Write down what the planner proposes."""
        (self.folder / "plans.json").write_text(json.dumps({**recorded(), **plans}), "utf-8")


def install(folder: Path, *, chat: str = "", documents: dict[str, str] | None = None) -> None:
    """Put everything into a folder: documents, configuration, and the package of the application."""
    library = folder / "library"
    install_package(library, HARBOUR)
    (folder / "docs").mkdir()
    for name, text in {"ferries.md": FERRIES, "weather.md": WEATHER, **(documents or {})}.items():
        (folder / "docs" / name).write_text(text, "utf-8")
    (folder / "portico.toml").write_text(CONFIGURATION + (f'[chat]\nuse = "{chat}"\n' if chat else ""))
    Server(folder).plans()


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Server]:
    """Serve a folder for a block, however often the process is started again in it."""
    server = Server(folder)
    server.options = (*server.options, *options)
    server.start()
    try:
        with server.visits:
            yield server
    finally:
        for process in server.processes:
            with killed_at_the_end(process):
                pass


def eventually(true: Callable[[], object]) -> None:
    """Wait until something is so."""
    given_up = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > given_up:
            pytest.fail("what is waited for has not come")
        time.sleep(_PAUSE)
