"""What a worker does as lines of JSON, for programs and for whoever collects logs."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from types import TracebackType
from typing import Self, TextIO

from portico_cli.output import write_json_line
from portico_cli.worker_events import WorkerEvent, event_to_json

__all__ = ["WorkerLog"]


class WorkerLog:
    """Write each event as one JSON object on a line of standard output, as that is now.

    Made before the event loop runs: what a library prints meanwhile goes to standard error.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Nothing to end."""

    def __call__(self, event: WorkerEvent) -> None:
        """Write an event. Raises `portico_cli.output.OutputClosed` where nobody reads any more."""
        with redirect_stdout(self._stream):
            write_json_line(event_to_json(event))
