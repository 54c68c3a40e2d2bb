"""Portico beside its peers, each in a separate environment: `nox -s bench -- --peers [NAME...] [ROW...] [--newest]`.

Environments are made by uv in `.nox/peers` and kept; Portico's gets this checkout each time. Names are those of the
files `peer_NAME.py`, rows are those of `work.ROWS`; without any, all are measured. `--newest` takes the newest versions
instead of those that the files name. The figures go to `results.json`, and from there to the page and its plots. What
cannot be installed or measured says so in the table.
"""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from operator import sub, truediv
from pathlib import Path
from typing import Any

from tests.bench.chat_calls import served
from tests.bench.peers import page
from tests.bench.peers.floor import FIRST as FLOOR_FIRST
from tests.bench.peers.measure import peer_of
from tests.bench.peers.work import FIRST, IMPORT, ROWS, Peer

ROOT = Path(__file__).parents[3]
ENVIRONMENTS = ROOT / ".nox" / "peers"
NAMES = (
    "portico",
    "semantic_kernel",
    "semantic_kernel_planners",
    "langchain",
    "llama_index",
    "haystack",
    "pydantic_ai",
    "openai_agents",
    "agent_framework",
    "llm",
)
STARTS = 5
MEASURED_SECONDS = 1_200
SILENT = {
    "AGENT_FRAMEWORK_USER_AGENT_DISABLED": "true",
    "ANONYMIZED_TELEMETRY": "false",
    "DO_NOT_TRACK": "1",
    "ENABLE_INSTRUMENTATION": "false",
    "HAYSTACK_TELEMETRY_ENABLED": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
}
"""No peer reports or records anything, as Portico does not unless it is asked to."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Unmeasured(Exception):
    """A peer, or a row of it, that has no figures, and why."""


def environment() -> dict[str, str]:
    """Return the variables with which all run: without those of the user that a client reads."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OPENAI_", "PYTHON", "VIRTUAL_ENV"))}
    return {**kept, **SILENT, **ONE_THREAD, "LLM_USER_PATH": str(ENVIRONMENTS / "llm-user")}


def run(*words: str | Path, seconds: float = 600, cwd: Path = ROOT) -> str:
    """Run a program and return what it prints. Raises `Unmeasured` with the end of what it says."""
    try:
        done = subprocess.run(
            [str(word) for word in words],
            check=False,
            cwd=cwd,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise Unmeasured(f"was not done after {seconds:.0f} seconds") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise Unmeasured(last[:300])
    return done.stdout


def python_of(name: str, peer: Peer, newest: bool) -> Path:
    """Return the interpreter of a peer's environment, which is made where it is not there. Raises `Unmeasured`."""
    uv = shutil.which("uv") or sys.exit("This makes environments by uv, which is not installed: `pip install uv`.")
    place = ENVIRONMENTS / name
    python = place / "bin" / "python"
    wanted = [re.sub("==.*", "", each) if newest else each for each in peer.requires]
    ours = [str(ROOT / each) for each in wanted if each.startswith("./")]
    listed = place / "requires.json"
    if listed.exists() and json.loads(listed.read_text("utf-8")) == wanted and not ours:
        return python
    # Elsewhere, for in the workspace uv takes the pinned versions.
    with tempfile.TemporaryDirectory() as folder:
        run(uv, "venv", "--quiet", "--clear", f"--python={sys.executable}", place, cwd=Path(folder))
        command = (uv, "pip", "install", "--quiet", "--no-sources", f"--python={python}")
        run(*command, *(ours or wanted), cwd=Path(folder))
    listed.write_text(json.dumps(wanted), "utf-8")
    return python


def versions(python: Path, peer: Peer) -> dict[str, str]:
    """Return the versions of what a peer requires, and of `openai`, which is the floor."""
    names = [re.split("[=<>[]", each)[0] for each in peer.requires if not each.startswith("./")]
    wanted = [*dict.fromkeys([*names, "openai"])]
    program = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    return dict(zip(wanted, run(python, "-I", "-c", program, *wanted).split(), strict=True))


def started(python: Path, program: str) -> tuple[float, float, str]:
    """Return the milliseconds of a fresh process, by the processor and by the clock, and what it prints."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    printed = run(python, "-I", "-c", program, seconds=120)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return worked * 1_000, wall * 1_000, printed


def starts(python: Path, peer: Peer, address: str) -> dict[str, Any]:
    """Measure fresh processes: an import above an empty program, and all until the first reply beside the client's."""
    given = f"ADDRESS = {address!r}\n"
    programs = {"bare": "pass", "import": peer.imports, "first": given + peer.first, "floor": given + FLOOR_FIRST}
    taken: dict[str, list[tuple[float, float]]] = {kind: [] for kind in programs}
    for turn in range(STARTS + 1):
        printed = {}
        for kind, program in programs.items():
            *milliseconds, printed[kind] = started(python, program)
            if turn:  # The first round fills the caches of the disk.
                taken[kind].append((milliseconds[0], milliseconds[1]))
        if printed["first"] != printed["floor"]:
            raise Unmeasured(f"its first reply is {printed['first']!r}")

    def median(one: str, other: str, put_together: Callable[[float, float], float], by: int = 0) -> float:
        pairs = zip(taken[one], taken[other], strict=True)
        return statistics.median(put_together(mine[by], theirs[by]) for mine, theirs in pairs)

    return {
        IMPORT: {"ms": median("import", "bare", sub), "rounds": STARTS},
        FIRST: {
            "processor": median("first", "floor", truediv),
            "ratio": median("first", "floor", truediv, by=1),
            "rounds": STARTS,
        },
    }


def measured(name: str, address: str, newest: bool, rows: set[str]) -> dict[str, Any]:
    """Measure a peer, some of its rows or all. What fails is in the place of its figures."""
    peer = peer_of(name)
    found: dict[str, Any] = {"name": peer.name, "note": peer.note, "rows": {}}
    try:
        python = python_of(name, peer, newest)
        found["versions"] = versions(python, peer)
        if peer.first and (not rows or rows & {IMPORT, FIRST}):
            found["rows"] |= starts(python, peer, address)
        inside = rows - {IMPORT, FIRST}
        if inside or not rows:
            words: tuple[str | Path, ...] = (python, "-m", "tests.bench.peers.measure", name, address, *sorted(inside))
            found["rows"] |= json.loads(run(*words, seconds=MEASURED_SECONDS))
    except Unmeasured as error:
        found["failed"] = str(error)
    return found


def main() -> int:
    """Measure, save, write the page. Returns 1 where Portico itself could not be measured."""
    words = {word for word in sys.argv[1:] if not word.startswith("--")}
    keys = {row.key for row in ROWS}
    if strange := words - {*NAMES, *keys}:
        sys.exit(
            f"There is no peer or row {', '.join(sorted(strange))}. Peers are {', '.join(NAMES)}. "
            f"Rows are {', '.join(row.key for row in ROWS)}."
        )
    saved: dict[str, Any] = json.loads(page.RESULTS.read_text("utf-8")) if page.RESULTS.exists() else {"peers": {}}
    saved["machine"] = {
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "system": platform.system(),
    }
    with served() as address:
        for name in [name for name in NAMES if name in words] or NAMES:
            found = measured(name, address, "--newest" in sys.argv, words & keys)
            print(f"{name}: {found.get('failed', 'measured')}", flush=True)
            for key, row in found["rows"].items():
                print(f"  {key:15}{page.cell(key, row)}", flush=True)
            if words & keys:
                found["rows"] = saved["peers"].get(name, {}).get("rows", {}) | found["rows"]
            saved["peers"][name] = found
            saved["peers"] = {each: saved["peers"][each] for each in NAMES if each in saved["peers"]}
            page.RESULTS.write_text(json.dumps(saved, indent=1) + "\n", "utf-8")
    page.write(saved)
    print(f"The table is on {page.PAGE.relative_to(ROOT)}.")
    return 1 if "failed" in saved["peers"]["portico"] else 0


if __name__ == "__main__":
    sys.exit(main())
