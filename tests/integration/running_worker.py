"""Runs and resumes a ten-step plan with the real journal, in processes that may be killed: one fork for each line.

The parent has imported everything and opened nothing, so that a child begins to work at once. What happens in the
world is written to files beside the journal, which the tests count: ``calls`` has every call that began, ``effects``
what cannot be taken back.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

import portico_basics.sqlite.store
import portico_host
from portico import FunctionPlugin, Kernel, Run, function
from portico.errors import PorticoError
from portico.plans import Answer, Each, Expression, From, ListOf, Plan, Step, TextOf, Value

SECONDS = 0.006
"""How long a step works before what it does, and once more after it."""


def append(file: Path, line: str, *, sync: bool = False) -> None:
    """Add a line whole; no kill of this process takes it away, with ``sync`` no power failure either."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{line}\n".encode())
    if sync:
        os.fsync(descriptor)
    os.close(descriptor)


def plugin(base: Path, gate: str | None = None) -> FunctionPlugin:
    """Return the functions of the plan; ``step`` says which step calls.

    With a ``gate``, what may be done again does not end before there is a file of that name.
    """

    class Work:
        @function
        async def count(self, step: str, after: list[str], seconds: float = SECONDS) -> str:
            """Work on something that may be done again."""
            append(base / "calls", step)
            await asyncio.sleep(2 * seconds)
            while gate is not None and not (base / gate).exists():
                await asyncio.sleep(seconds)
            return f"{step}({','.join(after)})"

        @function(effects=True)
        async def send(self, step: str, after: list[str], seconds: float = SECONDS) -> str:
            """Send something out into the world."""
            append(base / "calls", step)
            await asyncio.sleep(seconds)
            append(base / "effects", step, sync=True)
            await asyncio.sleep(seconds)
            return f"{step}({','.join(after)})"

    return FunctionPlugin.of(Work(), "Work")


def plan() -> Plan:
    """Return ten steps: five with effects, five without, up to three at a time."""

    def step(id: str, name: str, *before: str) -> Step:
        given: dict[str, Expression] = {"step": Value(id), "after": ListOf(tuple(From(each) for each in before))}
        return Step(id, f"Work-{name}", given)

    return Plan(
        "Do ten things",
        (
            step("s1", "count"),
            step("s2", "send", "s1"),
            step("s3", "count", "s1"),
            step("s4", "send", "s1"),
            step("s5", "count", "s2", "s3"),
            step("s6", "send", "s4"),
            step("s7", "count", "s5", "s6"),
            step("s8", "send", "s6"),
            step("s9", "send", "s7"),
            step("s10", "count", "s8", "s9"),
        ),
        result=TextOf(("done: ", From("s10"))),
    )


def loop(count: int) -> Plan:
    """Return one step with effects for so many items, four at a time."""
    given: dict[str, Expression] = {"step": From("item"), "after": Value([]), "seconds": Value(0.002)}
    items = Value([f"s1[{index}]" for index in range(count)])
    return Plan("Send many", (Step("s1", "Work-send", given, each=Each(items, at_once=4)),), From("s1"))


async def work(base: Path, task: dict[str, Any]) -> Run:
    """Run the plan, or resume the run that the task names."""
    journal = {"use": "sqlite", "sqlite": {"path": base / "runs.sqlite3"}}
    planned = loop(task["items"]) if "items" in task else plan()
    application = portico_host.load(base / "portico.toml", {"runs": journal, "plugins": {"only": ["basics"]}})
    async with application.kernel((), plugins=[plugin(base, task.get("gate"))]) as kernel:
        return await resumed(kernel, task) if "run" in task else await kernel.run_plan(planned)


async def resumed(kernel: Kernel, task: dict[str, Any]) -> Run:
    return await kernel.resume(task["run"], retry=task.get("retry", []), results=task.get("results", {}))


def report(base: Path, task: dict[str, Any]) -> dict[str, Any]:
    try:
        run = asyncio.run(work(base, task))
    except PorticoError as error:
        return {"error": type(error).__name__, "message": str(error)}
    outcome = run.outcome
    if isinstance(outcome, Answer):
        return {"outcome": "answer", "text": outcome.text}
    return {"outcome": type(outcome).__name__.lower(), "uncertain": getattr(outcome, "uncertain", False)}


def main() -> None:
    """Fork a process for each task read, which writes its report to a file when it comes to an end."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        child = os.fork()
        if child:
            print(child, flush=True)
            continue
        try:
            base = Path(task["base"])
            made = report(base, task)
            (base / f"report-{os.getpid()}").write_text(json.dumps(made))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)


if __name__ == "__main__":
    assert portico_basics.sqlite.store
    main()
