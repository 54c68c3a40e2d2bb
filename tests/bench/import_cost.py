"""What imports cost: core against asyncio, the OpenAI chat against OpenAI's own client.

Run it with `nox -s bench` or `python -m tests.bench.import_cost`.

Each sample is a fresh interpreter. The kinds take turns, so that a slow moment of the machine falls on all of
them alike, and medians are compared. Two readings:

- *above bare*: the time that the import statement itself takes, measured inside the interpreter. The limits
  are held to this one: it is the stricter, since it leaves out the start of the interpreter, which is the
  same for all and would draw every ratio towards 1.
- *whole process*: from start to end as a user waits for it.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

FLOOR, CLIENT = "import asyncio", "from openai import AsyncOpenAI"
CHAT = "from portico_openai.chat import OpenAIChat"
KINDS: dict[str, tuple[str, str, float | None]] = {
    "bare interpreter": ("pass", FLOOR, None),
    FLOOR: (FLOOR, FLOOR, None),
    "import portico": ("import portico", FLOOR, 1.3),
    "from portico import Kernel, function": ("from portico import Kernel, function", FLOOR, 2.2),
    CLIENT: (CLIENT, CLIENT, None),
    CHAT: (CHAT, CLIENT, 1.15),
}
"""What is measured: the statement, what it is compared with, and the limit of the ratio."""
ROUNDS = 41


def sample(statement: str) -> tuple[float, float]:
    """Return the milliseconds of the statement and of the whole process."""
    script = f"from time import perf_counter as now; t = now()\n{statement}\nt = now() - t\nprint(t)"
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    return float(done.stdout) * 1000, (time.perf_counter() - started) * 1000


def main() -> int:
    """Measure, print the table and one JSON line; return 1 where a limit is broken."""
    samples: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    for turn in range(ROUNDS + 1):
        for kind, (statement, _, _) in KINDS.items():
            measured = sample(statement)
            if turn:  # The first round writes bytecode and warms the disk's cache.
                samples[kind].append(measured)
    above = {kind: statistics.median(inner for inner, _ in values) for kind, values in samples.items()}
    whole = {kind: statistics.median(outer for _, outer in values) for kind, values in samples.items()}

    print(f"medians of {ROUNDS} fresh interpreters each, milliseconds")
    print(f"{'':44}{'above bare':>12}{'ratio':>8}{'limit':>8}{'whole process':>16}{'ratio':>8}")
    broken = []
    report: dict[str, dict[str, float | None]] = {}
    for kind, (_, floor, limit) in KINDS.items():
        ratio, whole_ratio = above[kind] / above[floor], whole[kind] / whole[floor]
        if limit is not None and ratio > limit:
            broken.append(kind)
        shown = f"{limit:.2f}x" if limit else ""
        print(f"{kind:44}{above[kind]:12.1f}{ratio:7.2f}x{shown:>8}{whole[kind]:16.1f}{whole_ratio:7.2f}x")
        report[kind] = {"ms": above[kind], "ratio": ratio, "whole_ms": whole[kind], "whole_ratio": whole_ratio}
    print(json.dumps({"bench": "import_cost", "broken": broken, "figures": report}))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
