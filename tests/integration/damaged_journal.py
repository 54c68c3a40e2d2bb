"""Write a journal into a folder and be killed in the middle of a run: `damaged_journal.py FOLDER`.

The first runs lie in the database, the later ones in its log only.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from portico import From, Kernel, Plan, RequireApproval, Step, Value, function
from portico_basics.config import SqliteSettings
from portico_basics.sqlite.store import SqliteRunStore

HELD, KILLED = "held-run", "killed-run"


@function
def shout(text: str) -> str:
    """Say it louder."""
    return text.upper() + "!" * 300


@function(effects=True)
def send(text: str) -> str:
    """Send it, or be killed."""
    if "killed" in text.lower():
        os._exit(9)
    return f"sent {text}"


async def hold(context, proceed):
    """Ask a person before the last step of one run."""
    held = context.step.id == "s3" and Path(os.environ.get("PORTICO_TEST_HOLD", "/none")).exists()
    return RequireApproval("May it be sent?") if held else await proceed()


def kernel_of(folder: Path, keep: int = 1_000) -> Kernel:
    """Return a kernel with the journal of a folder."""
    kernel = Kernel(run_store=SqliteRunStore(SqliteSettings(path=folder / "runs.sqlite3", keep=keep, sync="never")))
    kernel.add_function(shout)
    kernel.add_function(send)
    kernel.middleware.step.append(hold)
    return kernel


def plan_of(text: str) -> Plan:
    """Return a plan of three steps, the last of which has effects."""
    steps = (
        Step("s1", "shout", {"text": Value(text)}),
        Step("s2", "shout", {"text": From("s1")}),
        Step("s3", "send", {"text": From("s2")}),
    )
    return Plan(f"Send {text}", steps, result=From("s3"))


async def write(folder: Path) -> None:
    """Write runs that ended, one that is held, and one that is killed."""
    for name in ("before", "after"):
        kernel = kernel_of(folder, keep=12)  # old runs are removed, and leave free pages
        for number in range(8):
            await kernel.run_plan(plan_of(f"{name} {number}"), run=f"{name}-{number}")
        if name == "before":
            await kernel.run_store.aclose()
    (folder / "hold").touch()
    os.environ["PORTICO_TEST_HOLD"] = str(folder / "hold")
    await kernel.run_plan(plan_of("held"), run=HELD)
    (folder / "hold").unlink()
    await kernel.run_plan(plan_of("killed"), run=KILLED)


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1])))
