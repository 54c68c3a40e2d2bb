"""Show what a worker does: a line for each job at a terminal, else a JSON object for each event."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any, TypeAlias

from rich.text import Text

from portico_cli.invocation import short_name
from portico_cli.show.output import console_for, plain, write_json

_MARKS = {"done": ("✓", "green"), "waiting": ("↻", "magenta"), "failed": ("✗", "red")}


WorkerListener: TypeAlias = Callable[[dict[str, Any]], None]


def worker_listener(*, json: bool) -> WorkerListener:
    """Return what shows the events of a worker on standard output.

    Call it before the event loop runs: then, what a library prints goes to standard error. The listener raises
    `portico_cli.show.output.OutputClosed` when the reader is gone.
    """
    if sys.stdout.isatty() and not json:
        return _terminal_listener()
    stream = sys.stdout

    def write(event: dict[str, Any]) -> None:
        with redirect_stdout(stream):
            write_json(event, indent=None)

    return write


def _terminal_listener() -> WorkerListener:
    console = console_for(sys.stdout)
    names: dict[str, str] = {}

    def line(*parts: tuple[str, str]) -> None:
        text = Text.assemble(*((plain(words).replace("\n", " "), style) for words, style in parts))
        text.no_wrap, text.overflow = True, "ellipsis"
        console.print(text)

    def write(event: dict[str, Any]) -> None:
        match event:
            case {"event": "ready", "host": host, "pid": pid, "runner": runner, "place": place, "concurrency": many}:
                facts = [f"Worker {host}:{pid}", ", ".join(filter(None, (runner, place)))]
                line(("  ".join(facts + ([f"jobs at a time: {many}"] if many else [])), "bold"))
            case {"event": "job-begun", "job": job, "kind": kind, "about": about}:
                # A run has a short name; the name of another job is long and says less than its kind.
                names[job] = short_name(job) if about else f"{kind} {job[-8:]}"
                line(("  → ", "cyan"), (names[job], "bold"), (f"  {about}", ""))
            case {"event": "job-ended", "job": job, "state": state, "seconds": seconds, "reason": reason}:
                mark, style = _MARKS.get(state, ("…", "yellow"))
                words = f"{'given back' if state == 'waiting' else state}{f': {reason}' if reason else ''}"
                line(
                    (f"  {mark} ", style),
                    (names.pop(job), "bold"),
                    (f"  {seconds:.1f} s", "dim"),
                    (f"  {words}", style),
                )
            case {"event": "stopping"}:
                line(("Stopping: no more jobs are taken.", "dim"))
            case {"event": "stopped", "ended": ended, "given_back": given_back}:
                counts = {"done": 0, **ended} | ({"given back": given_back} if given_back else {})
                line((f"Worker stopped: {', '.join(f'{count:,} {state}' for state, count in counts.items())}.", ""))

    return write
