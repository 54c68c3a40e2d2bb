"""The steps of a run as they come and go, on standard error."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from portico_cli.output import plain
from portico_cli.selections import selection_words
from portico_cli.status_line import StatusLine

if TYPE_CHECKING:
    from rich.text import Text

    from portico.plans.plan import Step
    from portico.plans.task import Event

__all__ = ["StepProgress", "called_by"]

_MARKS = {"done": ("✓", "green"), "failed": ("✗", "red"), "held": ("…", "yellow"), "again": ("↻", "yellow")}


class StepProgress(StatusLine):
    """A line for each step that ended, and below them the one that says what runs just now."""

    def __init__(self, idle: str = "Thinking…") -> None:
        super().__init__(idle)
        self._running: dict[str, tuple[str, float]] = {}

    def _note(self, event: Event) -> None:
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
                self._step_line(step, "again", f"attempt {attempt} follows: {error}")
            case task.Refused(findings=findings):
                count = len(findings)
                self._remark(f"A proposal was refused for {count} finding{'' if count == 1 else 's'}.")
            case task.FunctionsOffered(selection=selection):
                self._remark(selection_words(selection))
            case task.PlanReused(saved_at=saved_at):
                self._remark(f"Using the plan that was saved at {saved_at}.")
            case task.Resumed(steps=steps) if steps:
                self._remark(f"{steps} step{' is' if steps == 1 else 's are'} done already.")

    def _ended(self, step: Step, how: str, why: str = "") -> None:
        _, began = self._running.pop(step.id, ("", None))
        took = "" if began is None else f"{time.monotonic() - began:.1f} s"
        self._step_line(step, how, why, took)

    def _step_line(self, step: Step, how: str, why: str = "", took: str = "") -> None:
        from rich.text import Text

        mark, style = _MARKS[how]
        text = Text.assemble((f"{mark} ", style), (plain(step.id), "bold"), f"  {plain(called_by(step))}")
        if took:
            text.append(f"  {took}", style="dim")
        if why:
            text.append(f"  {' '.join(plain(why).split())}", style=style)
        self._show(text)

    def _remark(self, words: str) -> None:
        from rich.text import Text

        self._show(Text(plain(words), style="dim"))

    def _show(self, text: Text) -> None:
        if self._console is not None:
            self._console.print(text)

    def _line(self) -> str:
        if self._running:
            names = dict.fromkeys(called for called, _ in self._running.values())
            return f"Running {', '.join(names)}…"
        return self._writing() or self._idle


def called_by(step: Step) -> str:
    """Return what a step calls, in a word or two."""
    from portico.plans.plan import Plan

    if isinstance(step.function, str):
        return step.function
    return "a plan of its own" if isinstance(step.function, Plan) else f"a template in {step.function.language}"
