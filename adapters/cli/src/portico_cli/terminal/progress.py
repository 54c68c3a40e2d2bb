"""Show progress on standard error: steps that end, what runs now, and how far an index is."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from portico.errors import ConfigurationError
from portico.ports import IndexProgress, IndexReport, SearchIndex, TextSearch
from portico_cli.invocation import Invocation
from portico_cli.show.functions import selection_words
from portico_cli.show.output import console_for, plain

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.status import Status

    from portico.plans import RunEvent, Step
    from portico.plugins import Services
    from portico_cli.sources import Chosen


_MARKS = {"done": ("✓", "green"), "failed": ("✗", "red"), "held": ("…", "yellow"), "again": ("↻", "yellow")}
# No bar for work that takes less: a bar that flashes up is worse than none.
_PATIENCE = 0.3
_SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """A line for each step that ended, and below them one line that changes with the events of a run.

    Nothing is shown where standard error is not a terminal. ``idle`` is the line while nothing runs.
    """

    def __init__(self, idle: str = "Thinking…") -> None:
        self._idle = idle
        self._console: Console | None = None
        self._status: Status | None = None
        self._text = ""
        self._running: dict[str, tuple[str, float]] = {}

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._console = console_for(sys.stderr)
            self._status = self._console.status("")
            self._draw()
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keep the line away while the person is asked."""
        if self._status is not None:
            self._status.stop()
        try:
            yield
        finally:
            if self._status is not None:
                self._status.start()

    def __call__(self, event: RunEvent) -> None:
        """Show an event of the run."""
        if self._status is not None:
            self._note(event)
            self._draw()

    def say(self, idle: str) -> None:
        """Change the line that is shown while nothing runs."""
        self._idle = idle
        self._draw()

    def print(self, line: RenderableType) -> None:
        """Print a line that stays, above the one that changes."""
        if self._console is not None:
            self._console.print(line)

    def _note(self, event: RunEvent) -> None:
        import portico.plans as task
        from portico import FunctionsOffered

        match event:
            case task.Event.TextDelta(text=text):
                self._text += text
            case task.Event.StepStarted(step=step):
                self._running[step.id] = (called_by(step), time.monotonic())
            case task.Event.StepFinished(step=step):
                self._ended(step, "done")
            case task.Event.StepFailed(step=step, error=error):
                self._ended(step, "failed", error)
            case task.Event.StepPaused(step=task.Step() as step, reason=reason, uncertain=False):
                self._ended(step, "held", reason)
            case task.Event.StepRetried(step=step, error=error, attempt=attempt):
                self._ended(step, "again", f"attempt {attempt} follows: {error}")
            case task.Event.Refused(findings=findings):
                count = len(findings)
                self._remark(f"A proposal was refused for {count} finding{'' if count == 1 else 's'}.")
            case FunctionsOffered(selection=selection):
                self._remark(selection_words(selection))
            case task.Event.Proposed(saved_at=str(saved_at)):
                self._remark(f"Using the plan that was saved at {saved_at}.")
            case task.Event.RunStarted(resumed=steps) if steps:
                self._remark(f"{steps} step{' is' if steps == 1 else 's are'} done already.")

    def _ended(self, step: Step, how: str, why: str = "") -> None:
        from rich.text import Text

        began = self._running[step.id][1] if step.id in self._running else None
        if how != "again":
            self._running.pop(step.id, None)
        mark, style = _MARKS[how]
        text = Text.assemble((f"{mark} ", style), (plain(step.id), "bold"), f"  {plain(called_by(step))}")
        if began is not None and how != "again":
            text.append(f"  {time.monotonic() - began:.1f} s", style="dim")
        if why:
            text.append(f"  {' '.join(plain(why).split())}", style=style)
        self.print(text)

    def _remark(self, words: str) -> None:
        from rich.text import Text

        self.print(Text(plain(words), style="dim"))

    def _draw(self) -> None:
        if self._status is not None:
            from rich.text import Text

            if self._running:
                line = f"Running {', '.join(dict.fromkeys(called for called, _ in self._running.values()))}…"
            elif self._text:
                # The end of the text, so that one sees it grow.
                line = f"Writing the answer… {' '.join(plain(self._text[-200:]).split())[-50:]}"
            else:
                line = self._idle
            self._status.update(Text(plain(line), no_wrap=True, overflow="ellipsis"))


def called_by(step: Step) -> str:
    """Return in a word or two what a step calls."""
    from portico.plans import Plan

    if isinstance(step.function, str):
        return step.function
    return "a nested plan" if isinstance(step.function, Plan) else f"a template in {step.function.language}"


async def update_sources(invocation: Invocation, services: Services, chosen: Chosen) -> dict[str, IndexReport]:
    """Update every source that has an index, one after the other.

    A ``ConfigurationError`` of a source names the file and the table that configure it.
    """
    reports = {}
    configuration = chosen.application.configuration
    for name in chosen.sources:
        index = services.get(TextSearch, name).index
        if index is not None:
            try:
                reports[name] = await update_index(invocation, index, name)
            except ConfigurationError as error:
                settings = (configuration.values.get("search") or {}).get(name) or {}
                inner = "" if "path" in settings else " stands on a source that cannot be indexed"
                place = configuration.place(("search", name, "path"))
                raise ConfigurationError(f"{place}: search.{name}{inner}: {error}") from error
    return reports


async def update_index(invocation: Invocation, index: SearchIndex, name: str) -> IndexReport:
    """Update one index and show its progress: a bar on a terminal, a few lines elsewhere."""
    listener: _Bar | PlainProgress = _Bar(name) if sys.stderr.isatty() else PlainProgress(name)
    timer = asyncio.get_running_loop().call_later(_PATIENCE, listener.start)
    invocation.updating = True
    try:
        report = await index.update(progress=listener)
    finally:
        timer.cancel()
        listener.stop()
    invocation.updating = False
    return report


class PlainProgress:
    """Lines for a log: each wait, and the progress every ten seconds.

    >>> now = iter([0.0, 11.0, 22.0])
    >>> lines = PlainProgress("docs", write=print, clock=lambda: next(now))
    >>> lines(IndexProgress(300, 2000))
    Indexing docs: 300 of 2000
    >>> lines(IndexProgress(900, 2000, workers=3))
    Indexing docs with 3 workers: 900 of 2000
    """

    def __init__(
        self, name: str, *, write: Callable[[str], object] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        self._write = write or _write_to_log
        self._clock = clock
        self._written_at = clock()
        self._waiting: str | None = None

    def start(self) -> None:
        """Do nothing."""

    def __call__(self, progress: IndexProgress) -> None:
        """Write a line if there is something new."""
        if progress.waiting is not None:
            if progress.waiting != self._waiting:
                self._write(f"Waiting: {plain(progress.waiting)}")
            self._waiting = progress.waiting
            return
        now = self._clock()
        if now - self._written_at >= _SECONDS_BETWEEN_LINES:
            self._written_at = now
            total = "" if progress.total is None else f" of {progress.total}"
            self._write(f"{_words(self._name, progress)}: {progress.done}{total}")

    def stop(self) -> None:
        """Do nothing."""


def _write_to_log(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _words(name: str, progress: IndexProgress) -> str:
    workers = f" with {progress.workers} worker{'' if progress.workers == 1 else 's'}" if progress.workers else ""
    return f"Indexing {name}{workers}"


class _Bar:
    """A bar that appears when the work takes long enough and leaves nothing behind."""

    def __init__(self, name: str) -> None:
        self._name = plain(name)
        self._latest = IndexProgress(0, None)
        self._bar: Any = None
        self._task: Any = None

    def start(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bar, TextColumn
        from rich.table import Column

        console = console_for(sys.stderr)
        # Room for the "^C" that a terminal echoes: on a full line it would wrap, and the bar could not be removed.
        console.width = max(console.width - 3, 10)
        words = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        self._bar = Bar(
            TextColumn("{task.description}", markup=False, table_column=words),
            BarColumn(bar_width=min(console.width // 5, 30)),
            MofNCompleteColumn(),
            console=console,
            transient=True,
            expand=True,
        )
        self._task = self._bar.add_task("", total=None)
        self._bar.start()
        self(self._latest)

    def __call__(self, progress: IndexProgress) -> None:
        self._latest = progress
        if self._bar is not None:
            words = f"{_words(self._name, progress)} {' '.join(plain(Path(progress.current).name).split())}"
            words = words if progress.waiting is None else plain(progress.waiting)
            self._bar.update(self._task, description=words, completed=progress.done, total=progress.total)

    def stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
