"""Show progress on standard error: steps that end, what runs now, and how far an index is."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rich.text import Text

from portico.errors import ConfigurationError
from portico.plans import RunEvent, Step
from portico.plugins import Services
from portico.ports import IndexProgress, IndexReport, SearchIndex, TextSearch
from portico_cli.failures import write_error
from portico_cli.invocation import Invocation
from portico_cli.show.functions import selection_words
from portico_cli.show.layout import count_words
from portico_cli.show.output import console_for, plain
from portico_cli.show.plans import called_name

if TYPE_CHECKING:
    from portico_cli.sources import Chosen


_MARKS = {
    "done": ("✓", "green"),
    "skipped": ("–", "dim"),
    "failed": ("✗", "red"),
    "held": ("…", "yellow"),
    "again": ("↻", "yellow"),
}
# An index that takes less shows no bar: one that flashes up is worse than none.
_PATIENCE = 0.3


class Progress:
    """A line for each step that ended, and below them one line that changes, with a bar for an index.

    Nothing is shown where standard error is not a terminal. ``idle`` is the line while nothing runs.
    """

    def __init__(self, idle: str = "Thinking…", *, bar: bool = False) -> None:
        self._idle = idle
        self._bar = bar
        self._display: Any = None
        self._count: tuple[int, int | None] = (0, None)
        self._text = ""
        self._running: dict[str, tuple[str, float]] = {}
        self._items: dict[str, int] = {}
        self._kept: list[Text] | None = None
        """Lines for after the question that is open; None without one."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to show the line that changes."""
        if not sys.stderr.isatty():
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress as Display, SpinnerColumn, TextColumn
        from rich.table import Column

        column = Column(ratio=1 if self._bar else None, no_wrap=True, overflow="ellipsis")
        words = TextColumn("{task.description}", markup=False, table_column=column)
        bar = (BarColumn(bar_width=10), MofNCompleteColumn()) if self._bar else ()
        console = console_for(sys.stderr)
        self._display = Display(SpinnerColumn(), words, *bar, console=console, transient=True, expand=self._bar)
        self._display.add_task("", total=None)
        self._draw()
        self._display.start()

    def stop(self) -> None:
        """Take the line that changes away."""
        if self._display is not None:
            self._display.stop()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keep the line away while the person is asked; steps that end meanwhile are shown afterwards."""
        self.stop()
        self._kept = []
        try:
            yield
        finally:
            kept, self._kept = self._kept, None
            if self._display is not None:
                self._display.start()
                for text in kept:
                    self._print(text)

    def say(self, idle: str, done: int = 0, total: int | None = None) -> None:
        """Change the line that is shown while nothing runs, and how far the bar is."""
        self._idle, self._count = idle, (done, total)
        self._draw()

    def __call__(self, event: RunEvent) -> None:
        """Show an event of the run."""
        if self._display is not None:
            self._note(event)
            self._draw()

    def _note(self, event: RunEvent) -> None:
        import portico.plans as task
        from portico import FunctionsOffered

        match event:
            case task.Event.TextDelta(text=text):
                self._text += text
            case task.Event.StepStarted(step=step):
                self._running[step.id] = (called_name(step), time.monotonic())
            case task.Event.StepFinished(step=step) if step.id.endswith("]"):
                # One of many items: only the line that changes counts them.
                self._running.pop(step.id, None)
                loop = step.id.rpartition("[")[0]
                self._items[loop] = self._items.get(loop, 0) + 1
            case task.Event.StepFinished(step=step):
                self._print_step(step, "done")
            case task.Event.StepSkipped(step=step) if not step.id.endswith("]"):
                self._print_step(step, "skipped")
            case task.Event.StepFailed(step=step, error=error):
                self._print_step(step, "failed", error)
            case task.Event.StepPaused(step=task.Step() as step, reason=reason, uncertain=False):
                self._print_step(step, "held", reason)
            case task.Event.StepRetried(step=step, error=error, attempt=attempt):
                self._print_step(step, "again", f"attempt {attempt} follows: {error}")
            case task.Event.Refused(findings=findings):
                self._print_remark(f"A proposal was refused for {count_words(len(findings), 'finding')}.")
            case FunctionsOffered(selection=selection):
                self._print_remark(selection_words(selection))
            case task.Event.Proposed(saved_at=str(saved_at)):
                self._print_remark(f"Using the plan that was saved at {saved_at}.")
            case task.Event.RunStarted(resumed=steps) if steps:
                self._print_remark(f"Done already: {count_words(steps, 'step')}.")

    def _print_step(self, step: Step, how: str, why: str = "") -> None:
        mark, style = _MARKS[how]
        text = Text.assemble((f"{mark} ", style), (plain(step.id), "bold"), f"  {plain(called_name(step))}")
        if how != "again" and step.id in self._running:
            _, began = self._running.pop(step.id)
            text.append(f"  {time.monotonic() - began:.1f} s", style="dim")
        if why and not why.startswith(f"Step {step.id}["):
            text.append(f"  {' '.join(plain(why).split())}", style=style)
        self._print(text)

    def _print_remark(self, words: str) -> None:
        self._print(Text(plain(words), style="dim"))

    def _print(self, text: Text) -> None:
        if self._kept is None:
            self._display.console.print(text)
        else:
            self._kept.append(text)

    def _draw(self) -> None:
        if self._display is None:
            return
        line = self._idle
        if self._running:
            shown = (
                f"{called} ({done} done)" if (done := self._items.get(id)) else called
                for id, (called, _) in self._running.items()
                if not id.endswith("]")
            )
            line = f"Running {', '.join(dict.fromkeys(shown))}…"
        elif self._text:
            # The end of the text, so that one sees it grow.
            line = f"Writing the answer… {self._text[-50:]}"
        done, total = self._count
        [task] = self._display.task_ids
        self._display.update(task, description=" ".join(plain(line).split()), completed=done, total=total)


async def update_sources(invocation: Invocation, services: Services, chosen: Chosen) -> dict[str, IndexReport]:
    """Update every source that has an index, one after the other, and say what was damaged and is repaired.

    A ``ConfigurationError`` of a source names the file and the table that configure it.
    """
    reports = {}
    for name in chosen.sources:
        index = services.get(TextSearch, name).index
        if index is not None:
            try:
                reports[name] = await update_index(invocation, index, name)
                for sentence in reports[name].repaired:
                    write_error(f"Repaired: {plain(sentence)}")
            except ConfigurationError as error:
                place = chosen.application.configuration.place(("search", name, "path"))
                raise ConfigurationError(f"{place}: search.{name}: {error}") from error
    return reports


async def update_index(invocation: Invocation, index: SearchIndex, name: str) -> IndexReport:
    """Update one index and show its progress: a bar on a terminal; elsewhere only what it waits for."""
    progress, waiting = Progress(f"Indexing {name}", bar=True), None

    def show(state: IndexProgress) -> None:
        nonlocal waiting
        workers = f" with {count_words(state.workers, 'worker')}" if state.workers else ""
        words = state.waiting or f"Indexing {name}{workers} {Path(state.current).name}"
        progress.say(words, state.done, state.total)
        if state.waiting not in (None, waiting) and not sys.stderr.isatty():
            write_error(f"Waiting: {plain(words)}")
        waiting = state.waiting

    timer = asyncio.get_running_loop().call_later(_PATIENCE, progress.start)
    invocation.updating = True
    try:
        report = await index.update(progress=show)
    finally:
        timer.cancel()
        progress.stop()
    invocation.updating = False
    return report
