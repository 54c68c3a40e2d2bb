"""The line on standard error that says what a pursuit does just now."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from portico_cli.output import console_for, plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from portico.plans.task import Event

__all__ = ["StatusLine"]


class StatusLine(ABC):
    """One line on a terminal that changes with the events of a pursuit; nothing where standard error is none.

    ``idle`` is what the line says where nothing runs. A subclass says which events it takes note of, and what the
    line says of them; both are asked only where there is a terminal.
    """

    def __init__(self, idle: str = "Thinking…") -> None:
        self._idle = idle
        self._console: Console | None = None
        self._status: Status | None = None
        self._text = ""

    def __enter__(self) -> Self:
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
        """Keep the line away while somebody is asked."""
        if self._status is not None:
            self._status.stop()
        try:
            yield
        finally:
            if self._status is not None:
                self._status.start()

    def __call__(self, event: Event) -> None:
        """Show an event of the pursuit."""
        if self._status is None:
            return
        from portico.plans.task import TextDelta

        if isinstance(event, TextDelta):
            self._text += event.text
        else:
            self._note(event)
        self._draw()

    def say(self, idle: str) -> None:
        """Change what the line says where nothing runs."""
        self._idle = idle
        self._draw()

    def _draw(self) -> None:
        if self._status is not None:
            from rich.text import Text

            self._status.update(Text(plain(self._line()), no_wrap=True, overflow="ellipsis"))

    @abstractmethod
    def _note(self, event: Event) -> None:
        """Take note of an event that is no piece of the answer's text."""

    @abstractmethod
    def _line(self) -> str:
        """Return what the line says now."""

    def _writing(self) -> str:
        """Return the end of the text that was written so far, so that one sees it grow; empty before it begins."""
        return f"Writing the answer… {' '.join(plain(self._text[-200:]).split())[-50:]}" if self._text else ""
