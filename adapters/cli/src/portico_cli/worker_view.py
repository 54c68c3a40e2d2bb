"""What a worker does, for the person at its terminal: one view that stays where it is."""

from __future__ import annotations

import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from portico_cli.answer_text import Hanging
from portico_cli.invocation import short_name
from portico_cli.output import console_for, plain, safe_text
from portico_cli.worker_events import JobBegun, JobEnded, Ready, StepBegun, StepEnded, Stopped, Stopping, WorkerEvent

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.text import Text

__all__ = ["WorkerView", "ended_words", "ready_words", "seconds_words"]

_REFRESHES = 2
"""A second; a view that changes more often is not read better."""
_LINES = 5
"""How many of those that ended last are shown."""
_OTHER_LINES = 6
"""Lines that are neither jobs under way nor ended ones."""
_MARKS = {"done": ("✓", "green"), "waiting": ("↻", "magenta"), "failed": ("✗", "red")}
_OTHERWISE = ("…", "yellow")
_GIVEN_BACK = "given back"


class WorkerView:
    """Show the jobs under way with what they do, how many ended, and the last that did; in the end, one line.

    The lines are drawn twice a second, also while a function keeps the event loop busy.
    """

    def __init__(self) -> None:
        # Made here: while work goes on, what is printed goes to standard error.
        self._console = console_for(sys.stdout)
        self._live: Live | None = None
        self._ready = False
        self._began = time.monotonic()
        self._jobs: dict[str, _Job] = {}
        self._ended: Counter[str] = Counter()
        self._last: deque[Text] = deque(maxlen=_LINES)
        self._stopping = False

    def __enter__(self) -> Self:
        from rich.live import Live

        self._live = Live(
            console=self._console,
            get_renderable=self._view,
            refresh_per_second=_REFRESHES,
            transient=True,
            vertical_overflow="crop",
        )
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, event: WorkerEvent) -> None:
        """Take note of an event; it is drawn with the next refresh."""
        match event:
            case Ready():
                self._ready = True
                self._console.print(Hanging(safe_text(ready_words(event), "bold"), "", "  "))
            case JobBegun():
                self._jobs[event.job] = _Job(event)
            case StepBegun():
                self._jobs[event.job].steps[event.step] = (event.function, time.monotonic())
            case StepEnded():
                self._jobs[event.job].steps.pop(event.step, None)
            case JobEnded():
                self._end(event)
            case Stopping():
                self._stopping = True
            case Stopped():
                self.__exit__(None, None, None)
                back = {_GIVEN_BACK: event.given_back} if event.given_back else {}
                self._console.print(_text(f"Worker stopped: {ended_words({**event.ended, **back})}."))

    def _end(self, event: JobEnded) -> None:
        from rich.text import Text

        job = self._jobs.pop(event.job)
        mark, style = _MARKS.get(event.state, _OTHERWISE)
        word = _GIVEN_BACK if event.state == "waiting" else event.state
        self._ended[word] += 1
        line = Text.assemble((f"  {mark} ", style), (_called(job.begun), "bold"))
        line.append(f"  {seconds_words(event.seconds)}", style="dim")
        # Before the goal, which may fill the line.
        if word != "done":
            reason = f": {' '.join(plain(event.reason).split())}" if event.reason else ""
            line.append(f"  {word}{reason}", style=style)
        line.append(f"  {plain(job.begun.about)}")
        line.no_wrap, line.overflow = True, "ellipsis"
        self._last.append(line)

    def _view(self) -> RenderableType:
        from rich.console import Group

        # Another thread draws: what it goes through is copied first.
        return Group(*self._lines(list(self._jobs.values()), list(self._last)))

    def _lines(self, jobs: list[_Job], last: list[Text]) -> Iterator[RenderableType]:
        from rich.text import Text

        if not self._ready:
            yield _text("Starting…", "dim")
            return
        doing = "Stopping: no more jobs are taken" if self._stopping else f"{len(jobs)} under way"
        yield _text(f"{doing}   {ended_words(dict(self._ended))}   at work for {_since(self._began)}", "dim")
        if jobs:
            yield Text()
            room = max(self._console.height - _OTHER_LINES - len(last), 1)
            yield _table(jobs[:room] if len(jobs) <= room else jobs[: room - 1])
            if len(jobs) > room:
                yield _text(f"  … and {len(jobs) - room + 1} more", "dim")
        if last:
            yield Text()
            yield from last


class _Job:
    """A job under way."""

    __slots__ = ("began", "begun", "steps")

    def __init__(self, begun: JobBegun) -> None:
        self.begun = begun
        self.began = time.monotonic()
        self.steps: dict[str, tuple[str, float]] = {}

    @property
    def doing(self) -> str:
        """What it does just now."""
        steps = list(self.steps.items())
        if steps:
            step, (function, began) = steps[0]
            more = f" and {len(steps) - 1} more" if len(steps) > 1 else ""
            return f"{step} {function}{more}, {_since(began)}"
        return "thinking" if self.begun.about else self.begun.kind


def ready_words(ready: Ready) -> str:
    """Say what a worker is, on one line.

    >>> ready_words(Ready("db1", 7, "dbos", "sqlite /srv/jobs.sqlite", ("pursuit", "embed"), 4))
    'Worker db1:7  dbos, sqlite /srv/jobs.sqlite  pursuit, embed  4 jobs at a time'
    """
    where = ", ".join(filter(None, (ready.runner, ready.place)))
    count = ready.concurrency
    many = "" if count is None else f"{count} job{'' if count == 1 else 's'} at a time"
    return "  ".join(filter(None, (f"Worker {ready.host}:{ready.pid}", where, ", ".join(ready.kinds), many)))


def ended_words(ended: dict[str, int]) -> str:
    """Say how many jobs ended in each state.

    >>> ended_words({"failed": 1, "done": 1200}), ended_words({})
    ('1,200 done, 1 failed', '0 done')
    """
    return ", ".join(f"{count:,} {state}" for state, count in {"done": 0, **ended}.items())


def seconds_words(seconds: float) -> str:
    """Return a time in words that stay short.

    >>> [seconds_words(each) for each in (0.25, 75.0, 7_325.0)]
    ['0.2 s', '1 min 15 s', '2 h 2 min']
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3_600} h {whole % 3_600 // 60} min"


def _since(began: float) -> str:
    # In whole seconds: what is drawn twice a second has no use for less.
    return seconds_words(float(int(time.monotonic() - began))).replace(".0", "")


def _called(begun: JobBegun) -> str:
    # A pursuit is called by its run; another job's name is long and says less than its kind.
    return plain(short_name(begun.job)) if begun.about else f"{plain(begun.kind)} {plain(begun.job)[-8:]}"


def _table(jobs: list[_Job]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=3, no_wrap=True, overflow="ellipsis")
    table.add_column(ratio=2, no_wrap=True, overflow="ellipsis")
    table.add_column(justify="right", no_wrap=True)
    for job in jobs:
        name = Text(f"  {_called(job.begun)}", style="bold")
        doing = Text(plain(job.doing), style="cyan")
        table.add_row(name, Text(plain(job.begun.about)), doing, Text(_since(job.began), style="dim"))
    return table


def _text(words: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(plain(words), style=style, no_wrap=True, overflow="ellipsis")
