"""Show what a worker does: a line for each job at a terminal, else a JSON object for each event."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout

from portico_cli.invocation import short_name
from portico_cli.show.layout import count_words
from portico_cli.show.output import console_for, plain, write_json_line
from portico_cli.worker import JobBegun, JobEnded, Ready, Stopped, Stopping, WorkerEvent, event_to_json

_MARKS = {"done": ("✓", "green"), "waiting": ("↻", "magenta"), "failed": ("✗", "red")}


def worker_listener(*, json: bool) -> Callable[[WorkerEvent], None]:
    """Return what shows the events of a worker on standard output.

    Call it before the event loop runs: then, what a library prints goes to standard error. The listener raises
    `portico_cli.show.output.OutputClosed` when the reader is gone.
    """
    return _log() if json or not sys.stdout.isatty() else _lines()


def _log() -> Callable[[WorkerEvent], None]:
    stream = sys.stdout

    def write(event: WorkerEvent) -> None:
        with redirect_stdout(stream):
            write_json_line(event_to_json(event))

    return write


def _lines() -> Callable[[WorkerEvent], None]:
    from rich.text import Text

    console = console_for(sys.stdout)
    begun: dict[str, JobBegun] = {}

    def line(*parts: tuple[str, str]) -> None:
        text = Text.assemble(*((plain(" ".join(words.split(" "))).replace("\n", " "), style) for words, style in parts))
        text.no_wrap, text.overflow = True, "ellipsis"
        console.print(text)

    def write(event: WorkerEvent) -> None:
        match event:
            case Ready():
                where = ", ".join(filter(None, (event.runner, event.place)))
                many = "" if event.concurrency is None else f"{count_words(event.concurrency, 'job')} at a time"
                words = (f"Worker {event.host}:{event.pid}", where, ", ".join(event.kinds), many)
                line(("  ".join(filter(None, words)), "bold"))
            case JobBegun():
                begun[event.job] = event
                line(("  → ", "cyan"), (_name(event), "bold"), (f"  {event.about}", ""))
            case JobEnded():
                mark, style = _MARKS.get(event.state, ("…", "yellow"))
                state = "given back" if event.state == "waiting" else event.state
                reason = f": {event.reason}" if event.reason else ""
                name = _name(begun.pop(event.job))
                line((f"  {mark} ", style), (name, "bold"), (f"  {event.seconds:.1f} s", "dim"), (f"  {state}", style))
                if reason:
                    line((f"    {state}{reason}", style))
            case Stopping():
                line(("Stopping: no more jobs are taken.", "dim"))
            case Stopped():
                ended = {"done": 0, **event.ended} | ({"given back": event.given_back} if event.given_back else {})
                line((f"Worker stopped: {', '.join(f'{count:,} {state}' for state, count in ended.items())}.", ""))

    return write


def _name(begun: JobBegun) -> str:
    # A run has a short name; the name of another job is long and says less than its kind.
    return short_name(begun.job) if begun.about else f"{begun.kind} {begun.job[-8:]}"
