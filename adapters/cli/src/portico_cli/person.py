"""The person at the terminal: asked before a plan or a step runs, answered to in time."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from portico_cli.answer_text import Hanging
from portico_cli.output import console_for, plain, safe_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from portico.kernel import Kernel
    from portico.middleware import PlanReview, StepRun
    from portico.plans.plan import Plan
    from portico_cli.invocation import Invocation

__all__ = ["Person", "is_there"]

_DEFAULT_FILE = "plan.json"
_LONGEST = 65_536


def is_there(invocation: Invocation) -> bool:
    """Tell whether somebody can be asked: at a terminal, and not a program that reads JSON."""
    # What shows progress takes the place of the stream meanwhile, and is no terminal before rich 15.
    shown = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
    return not invocation.json and sys.stdin.isatty() and shown.isatty()


class Person:
    """Asks at the terminal, on standard error; ``quiet`` keeps progress away meanwhile.

    One question at a time. The event loop goes on while the person thinks. The end of the input means no.
    """

    def __init__(self, kernel: Kernel, quiet: Callable[[], AbstractContextManager[object]]) -> None:
        self._kernel = kernel
        self._quiet = quiet
        self._asking = asyncio.Lock()
        self._line = b""

    async def about_plan(self, review: PlanReview) -> bool | str:
        """Show a plan and ask whether it may run; it may be saved first."""
        from portico.plans.text_form import plan_to_text

        plan = review.plan
        async with self._asking:
            with self._quiet():
                self.show(safe_text(plan_to_text(plan, catalogue=self._kernel.manuals)))
                while True:
                    answer = await self._choice("Run this plan? [y]es, [n]o, [s]ave it: ", "yns")
                    if answer != "s":
                        return answer == "y"
                    await self._save(plan)

    async def about_step(self, run: StepRun) -> bool | str:
        """Show a step with what it is given and ask whether it may run."""
        async with self._asking:
            with self._quiet():
                called = run.step.function if isinstance(run.step.function, str) else "a plan of its own"
                self.show(Hanging(safe_text(f"Step {run.step.id} calls {called}, which has effects.", "bold")))
                if run.step.reason:
                    self.show(Hanging(safe_text(run.step.reason, "dim"), "  ", "  "))
                for name, value in run.arguments.items():
                    from portico_cli.answers import one_line

                    self.show(Hanging(safe_text(one_line(value)), f"  {plain(name)} = ", "    ", "dim"))
                return await self._choice("Run it? [y]es, [n]o: ", "yn") == "y"

    async def about_call(self, function: str, arguments: Mapping[str, object]) -> str:
        """Show a call of a function with effects and ask whether it may be made: "y", "n", or "a" for always."""
        from portico_cli.answers import one_line

        async with self._asking:
            with self._quiet():
                self.show(Hanging(safe_text(f"{function} has effects. It would be called with:", "bold")))
                for name, value in arguments.items():
                    self.show(Hanging(safe_text(one_line(value)), f"  {plain(name)} = ", "    ", "dim"))
                return await self._choice("Call it? [y]es, [n]o, [a]lways in this conversation: ", "yna")

    def show(self, renderable: RenderableType) -> None:
        """Write to the terminal, beside what the command answers."""
        console_for(sys.stderr).print(renderable)

    async def _save(self, plan: Plan) -> None:
        from portico_cli.failures import Misused
        from portico_cli.origins import run_words
        from portico_cli.plan_files import write_text, written_plan

        given = await self._read(f"File [{_DEFAULT_FILE}]: ")
        file = Path((given or "").strip() or _DEFAULT_FILE)
        there = os.path.exists(file)  # noqa: ASYNC240, PTH110 - the person waits for it
        if there and await self._choice(f"{file} is there. Overwrite it? [y]es, [n]o: ", "yn") != "y":
            return
        try:
            write_text(file, written_plan(plan, "json"))
        except Misused as error:
            self.show(safe_text(error.message, "red"))
        else:
            self.show(safe_text(f"Saved as {file}. `{run_words(file, self._kernel.origin or {})}` runs it.", "dim"))

    async def _choice(self, question: str, letters: str) -> str:
        while True:
            given = await self._read(question)
            if given is None:
                self.show("")
                return "n"
            word = given.strip().lower()[:1]
            if word and word in letters:
                return word

    async def _read(self, question: str) -> str | None:
        """Return a line without its end, None at the end of the input."""
        sys.stderr.write(question)
        sys.stderr.flush()
        while b"\n" not in self._line and len(self._line) < _LONGEST:
            piece = await _readable_piece()
            if not piece:
                rest, self._line = self._line, b""
                return rest.decode("utf-8", "replace") if rest else None
            self._line += piece
        line, _, self._line = self._line.partition(b"\n")
        return line.decode("utf-8", "replace")


async def _readable_piece() -> bytes:
    """Read what the terminal has, without blocking the event loop where it can say that there is something."""
    descriptor = sys.stdin.fileno()
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
    except (RuntimeError, OSError):
        # Windows cannot watch a console; what else runs waits there for the answer.
        return os.read(descriptor, _LONGEST)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, _LONGEST)
