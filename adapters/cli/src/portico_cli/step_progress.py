"""The steps of a run as they come and go, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from portico_cli.output import console_for, plain

if TYPE_CHECKING:
    from portico.plans.plan import Step
    from portico.plans.task import Event

__all__ = ["StepProgress", "called_by"]

_MARKS = {"done": ("✓", "green"), "failed": ("✗", "red"), "held": ("…", "yellow"), "again": ("↻", "yellow")}


class StepProgress:
    """A line for each step that ended, and on a terminal one below them that says what runs just now.

    ``idle`` is what that line says where nothing runs. Nothing is written where standard error is no terminal.
    """

    def __init__(self, idle: str = "Thinking…") -> None:
        self._console: Any = None
        self._idle = idle
        self._status: Any = None
        self._running: dict[str, tuple[str, float]] = {}
        self._text = ""

    def __enter__(self) -> StepProgress:
        if sys.stderr.isatty():
            self._console = console_for(sys.stderr)
            self._status = self._console.status(self._idle)
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keep the line that changes away while somebody is asked."""
        if self._status is not None:
            self._status.stop()
        try:
            yield
        finally:
            if self._status is not None:
                self._status.start()

    def __call__(self, event: Event) -> None:
        """Show an event of the pursuit."""
        if self._console is None:
            return
        from portico.plans import task

        match event:
            case task.StepStarted(step=step):
                self._running[step.id] = (called_by(step), time.monotonic())
            case task.StepFinished(step=step):
                self._ended(step, "done")
            case task.StepFailure(step=step, error=error):
                self._ended(step, "failed", error)
            case task.StepHeld(step=step, reason=reason):
                self._ended(step, "held", reason)
            case task.StepRetried(step=step, error=error, attempt=attempt):
                self._line(step, "again", f"attempt {attempt} follows: {error}")
            case task.Refused(findings=findings):
                count = len(findings)
                self._print(f"A proposal was refused for {count} finding{'' if count == 1 else 's'}.", "dim")
            case task.PlanReused(saved_at=saved_at):
                self._print(f"Using the plan that was saved at {saved_at}.", "dim")
            case task.Resumed(steps=steps) if steps:
                self._print(f"{steps} step{' is' if steps == 1 else 's are'} done already.", "dim")
            case task.TextDelta(text=text):
                self._text += text
        if self._status is not None:
            self._status.update(self._doing())

    def _ended(self, step: Step, how: str, why: str = "") -> None:
        _, began = self._running.pop(step.id, ("", None))
        took = "" if began is None else f"{time.monotonic() - began:.1f} s"
        self._line(step, how, why, took)

    def _line(self, step: Step, how: str, why: str = "", took: str = "") -> None:
        from rich.text import Text

        mark, style = _MARKS[how]
        text = Text.assemble((f"{mark} ", style), (plain(step.id), "bold"), f"  {plain(called_by(step))}")
        if took:
            text.append(f"  {took}", style="dim")
        if why:
            text.append(f"  {' '.join(plain(why).split())}", style=style)
        self._console.print(text)

    def _print(self, words: str, style: str) -> None:
        from rich.text import Text

        self._console.print(Text(plain(words), style=style))

    def _doing(self) -> Any:
        from rich.text import Text

        if self._running:
            names = dict.fromkeys(called for called, _ in self._running.values())
            line = f"Running {', '.join(names)}…"
        elif self._text:
            line = f"Writing the answer… {' '.join(plain(self._text[-200:]).split())[-50:]}"
        else:
            line = self._idle
        return Text(plain(line), no_wrap=True, overflow="ellipsis")


def called_by(step: Step) -> str:
    """Return what a step calls, in a word or two."""
    from portico.plans.plan import Plan

    if isinstance(step.function, str):
        return step.function
    return "a plan of its own" if isinstance(step.function, Plan) else f"a template in {step.function.language}"
