"""What a package's import brings with it, found in a process of its own, since this one has imported everything.

The process is given what to import as JSON and answers with JSON. It imports nothing but the standard library and
core before the package.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from portico_testkit import _package_cost

__all__ = ["Probe", "main", "probe"]

_ALLOWED = ("attr", "attrs", "portico", "portico_testkit")
_BETWEEN = ("<frozen", _package_cost.__file__)
"""Who stands between an import statement and the import system."""
_SECONDS = 120.0
"""Patience with a vendor's import on a busy machine."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What a fresh process found.

    ``failed`` is the error of the entry point's import or of a hook; ``foreign`` has each package of others that this
    import brought, with the line that did; ``modules`` is how many it brought in all, and ``printed`` what it wrote.
    ``deeds`` is what was done until every module of the package was imported. ``listing`` is the processor time that
    its own code took to be listed and ``importing`` that until all was imported, in sums of a million squares.
    """

    failed: str | None
    foreign: dict[str, str]
    modules: int
    deeds: list[str]
    printed: str
    listing: float
    importing: float


def probe(entry_points: Sequence[str], others: Sequence[str], folder: Path) -> Probe:
    """Import the modules of entry points and ask their hooks, then import the other modules, and return what happened.

    ``folder`` is the one that the package's own code lies in. One process answers all who ask the same. Raises
    ``RuntimeError`` when the process did not come to an answer.
    """
    task = {"path": sys.path, "entry_points": [*entry_points], "others": [*others], "folder": [str(folder)]}
    return _answered(json.dumps(task))


@cache
def _answered(task: str) -> Probe:
    program = (
        "import json, sys; task = json.loads(sys.stdin.read()); sys.path[:] = task['path']; "
        "from portico_testkit._package_probe import main; main(task)"
    )
    run = subprocess.run(
        [sys.executable, "-B", "-P", "-c", program],
        input=task,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    try:
        return Probe(**json.loads(run.stdout.rsplit("\n", 2)[-2]))
    except (IndexError, ValueError):
        raise RuntimeError(f"a fresh process ended with {run.returncode}: {run.stderr[-2000:]}") from None


class _Importer:
    """Sees each import first, finds nothing, and remembers who asked for the packages of others."""

    def __init__(self, own: Sequence[str]) -> None:
        self._known = {*sys.stdlib_module_names, *_ALLOWED, *own}
        self.foreign: dict[str, str] = {}

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Note the package, with the line outside the import system that asked."""
        top = name.partition(".")[0]
        if top in self._known or top in self.foreign:
            return
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(_BETWEEN):
            frame = frame.f_back
        self.foreign[top] = f"{frame.f_code.co_filename}:{frame.f_lineno}"


def main(task: dict[str, list[str]]) -> None:
    """Answer a task on standard output."""
    import contextlib
    import io
    import traceback
    from importlib import import_module

    from portico.ports import PORTS
    from portico.registration import Registration  # noqa: F401 - what every `_plugin.py` imports
    from portico_testkit._package_watch import Deed, everything_is_watched, watched

    unit = _package_cost.yardstick()
    everything_is_watched()
    own = {name.partition(".")[0] for name in [*task["entry_points"], *task["others"]]}
    importer = _Importer(sorted(own))
    sys.meta_path.insert(0, importer)
    failed = None
    printed = io.StringIO()
    before = set(sys.modules)
    clock = _package_cost.OwnTime(own)
    clock.install()
    path = sys.path
    with contextlib.redirect_stdout(printed), watched(task["folder"][0]) as deeds:
        try:
            for name in task["entry_points"]:
                module = import_module(name)
                for port in PORTS:
                    hook = vars(module).get(port.hook)
                    if callable(hook):
                        hook()
        except BaseException:
            failed = traceback.format_exc()
        listing = clock.seconds()
        # What was not there, for a name that an import only tries, is nobody's.
        foreign = {name: line for name, line in importer.foreign.items() if name in sys.modules}
        modules = len(set(sys.modules) - before)
        written = printed.getvalue()
        for name in task["others"]:
            # One that cannot be imported may be for another system, or for an extra that is not installed.
            with contextlib.suppress(BaseException):
                import_module(name)
        importing = clock.seconds()
        if sys.path is not path:
            deeds.append(Deed("a module", "sets sys.path anew"))
    found = {
        "failed": failed,
        "foreign": foreign,
        "modules": modules,
        "deeds": [str(deed) for deed in deeds if not deed.reads],
        "printed": written,
        "listing": listing / unit,
        "importing": importing / unit,
    }
    print(json.dumps(found), flush=True)
    # Threads that the package has started, and what it does at the end, are of no more interest.
    os._exit(0)
