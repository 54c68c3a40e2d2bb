"""What a person sees while something takes its time; all of it on standard error."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from portico.errors import ConfigurationError
from portico.ports.search_index import IndexProgress, IndexReport, SearchIndex
from portico.ports.text_search import TextSearch
from portico_cli.invocation import Invocation
from portico_cli.output import console_for, plain
from portico_cli.status_line import StatusLine

if TYPE_CHECKING:
    from rich.progress import Progress

    from portico.plans.task import Event
    from portico.registration import Services
    from portico_cli.sources import Chosen

__all__ = ["Activity", "PlainProgress", "searching", "update_index", "update_sources"]

# What is done sooner needs no bar; one that flashes up is worse than none.
_PATIENCE = 0.3
_SECONDS_BETWEEN_LINES = 10.0
_NARROW = 57


class _Listener(Protocol):
    def start(self) -> None: ...
    def __call__(self, progress: IndexProgress) -> None: ...
    def stop(self) -> None: ...


async def update_sources(invocation: Invocation, services: Services, chosen: Chosen) -> dict[str, IndexReport]:
    """Bring every source that has an index up to date, one after the other, with a bar for each.

    A ``ConfigurationError`` of a source is told with the file and the table that it is configured in.
    """
    reports = {}
    for name in chosen.sources:
        index = services.get(TextSearch, name).index
        if index is not None:
            try:
                reports[name] = await update_index(invocation, index, name)
            except ConfigurationError as error:
                configuration = chosen.application.configuration
                inner = "" if "path" in _settings(chosen, name) else " stands on a source that cannot be indexed"
                place = configuration.place(("search", name, "path"))
                raise ConfigurationError(f"{place}: search.{name}{inner}: {error}") from error
    return reports


def _settings(chosen: Chosen, name: str) -> Mapping[str, Any]:
    values = chosen.application.configuration.values.get("search") or {}
    return values.get(name) or {}


async def update_index(invocation: Invocation, index: SearchIndex, name: str) -> IndexReport:
    """Bring one index up to date and show how far it is: a bar on a terminal, a few lines elsewhere."""
    listener: _Listener = _Bar(name) if sys.stderr.isatty() else PlainProgress(name)
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
    """Lines for a log: who is waited for, and every ten seconds how far it is.

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
        self._write = write or _to_standard_error
        self._clock = clock
        self._said = clock()
        self._waiting: str | None = None

    def start(self) -> None:
        """Nothing to begin."""

    def __call__(self, progress: IndexProgress) -> None:
        """Take note, and speak when there is something new."""
        if progress.waiting is not None:
            if progress.waiting != self._waiting:
                self._write(f"Waiting: {plain(progress.waiting)}")
            self._waiting = progress.waiting
            return
        now = self._clock()
        if now - self._said >= _SECONDS_BETWEEN_LINES:
            self._said = now
            total = "" if progress.total is None else f" of {progress.total}"
            self._write(f"{_doing(self._name, progress)}: {progress.done}{total}")

    def stop(self) -> None:
        """Nothing to end."""


def _doing(name: str, progress: IndexProgress) -> str:
    workers = f" with {progress.workers} worker{'' if progress.workers == 1 else 's'}" if progress.workers else ""
    return f"Indexing {name}{workers}"


def _to_standard_error(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _end(path: str, room: int) -> str:
    """Cut a path at its beginning: its end says more."""
    return path if len(path) <= room else f"…{path[1 - room :]}"


class _Bar:
    """A bar that appears when the work takes long enough and leaves nothing behind."""

    def __init__(self, name: str) -> None:
        self._name = plain(name)
        self._latest = IndexProgress(0, None)
        self._progress: Progress | None = None
        self._task: Any = None
        self._room = 0

    def start(self) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            ProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.table import Column

        console = console_for(sys.stderr)
        # Room for the "^C" that a terminal echoes: on a full line it would wrap, and the bar could not be removed.
        console.width = max(console.width - 3, 10)
        words = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
        wide = console.width >= _NARROW
        bar = BarColumn(bar_width=min(console.width // 5, 30) if wide else None)
        columns: list[ProgressColumn] = [words, bar, MofNCompleteColumn()]
        if wide:
            file = Column(ratio=1, no_wrap=True, overflow="ellipsis")
            # What the other columns leave, about: the bar, two counts, the time and the name.
            self._room = max(console.width - console.width // 5 - len(self._name) - 30, 10)
            columns += [
                TimeRemainingColumn(compact=True),
                TextColumn("{task.fields[current]}", style="dim", markup=False, table_column=file),
            ]
        self._progress = Progress(*columns, console=console, transient=True, expand=True)
        self._task = self._progress.add_task(f"Indexing {self._name}", total=None, current="")
        self._progress.start()
        self(self._latest)

    def __call__(self, progress: IndexProgress) -> None:
        self._latest = progress
        if self._progress is not None:
            doing = _doing(self._name, progress) if progress.waiting is None else plain(progress.waiting)
            self._progress.update(
                self._task,
                description=doing,
                completed=progress.done,
                total=progress.total,
                current=_end(plain(progress.current).replace("\n", " "), self._room),
            )

    def stop(self) -> None:
        if self._progress is not None:
            self._progress.stop()


@contextmanager
def searching(sources: Sequence[str]) -> Iterator[None]:
    """Say on a terminal which sources are searched; nothing where standard error is none."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.text import Text

    line = Text(plain(f"Searching {', '.join(sources)}…"), no_wrap=True, overflow="ellipsis")
    with console_for(sys.stderr).status(line):
        yield


class Activity(StatusLine):
    """One line that says what a pursuit does just now.

    Searches are called by the names of their ``sources``, anything else by the function that is run.
    """

    def __init__(self, sources: Sequence[str] = ()) -> None:
        super().__init__()
        # A function's name knows no hyphen.
        self._sources = {name.replace("-", "_"): name for name in sources}
        self._running: dict[str, str] = {}
        self._ended = 0

    def _note(self, event: Event) -> None:
        from portico.plans.task import StepFailure, StepFinished, StepStarted

        match event:
            case StepStarted(step=step):
                self._running[step.id] = step.function if isinstance(step.function, str) else step.id
            case StepFinished(step=step) | StepFailure(step=step):
                self._running.pop(step.id, None)
                self._ended += 1

    def _line(self) -> str:
        if self._text:
            return self._writing()
        line = f"{self._doing()}…" if self._running else self._idle
        return f"{line} ({self._ended} step{'' if self._ended == 1 else 's'} done)" if self._ended else line

    def _doing(self) -> str:
        plugins = {function: function.partition("-")[0] for function in self._running.values()}
        searched = [self._sources[plugin] for plugin in plugins.values() if plugin in self._sources]
        others = [function for function, plugin in plugins.items() if plugin not in self._sources]
        parts = [("Searching ", dict.fromkeys(searched)), ("Running ", others)]
        return "; ".join(doing + ", ".join(names) for doing, names in parts if names)
