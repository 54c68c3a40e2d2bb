"""Show a conversation: at a terminal, in a pipe, as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from portico import Citation, ToolCall
from portico_cli.failures import described, write_error
from portico_cli.show.functions import selection_to_json
from portico_cli.show.layout import AnswerText, Hanging
from portico_cli.show.output import console_for, plain, safe_text, show, write_json_line

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import RenderableType
    from rich.live import Live

    from portico import AgentReply, Selection, ToolFinished


_LONGEST = 60
_REFRESHES = 8


@dataclass(slots=True)
class Turn:
    """One turn of a conversation: the answer, its citations, and the calls."""

    reply: AgentReply[str] | None = None
    tools: list[ToolFinished] = field(default_factory=list)
    citations: tuple[Citation, ...] = ()
    warnings: list[str] = field(default_factory=list)

    @property
    def answer(self) -> str:
        """The text of the answer."""
        return self.reply.text if self.reply is not None else ""

    @property
    def selection(self) -> Selection | None:
        """How the offered functions were selected, if they were."""
        return self.reply.selections[-1] if self.reply is not None and self.reply.selections else None


class PlainScreen:
    """Write answers to standard output with their citations, everything else to standard error."""

    def __init__(self) -> None:
        self._first = True

    def begin(self) -> None:
        """Show that a turn begins."""

    def event(self, event: object) -> None:
        """Show an event of the turn."""

    def end(self, turn: Turn) -> None:
        """Show the answer, after a blank line if it is not the first."""
        from rich.text import Text

        from portico_cli.show.answer import citation_lines, warning_lines

        blank = () if self._first else (Text(),)
        self._first = False
        show(*blank, safe_text(turn.answer.strip("\n")), *citation_lines(turn.citations))
        errors = console_for(sys.stderr)
        for line in warning_lines(turn.warnings):
            errors.print(line)

    def stopped(self) -> None:
        """Show that a turn was stopped."""

    def failed(self, error: BaseException) -> None:
        """Show why there is no answer."""
        write_error(f"Error: {plain(described(error)[1])}")

    def note(self, words: str) -> None:
        """Show a remark beside the conversation."""
        write_error(plain(words))

    def quiet(self) -> AbstractContextManager[object]:
        """Keep the screen still while the person is asked."""
        return nullcontext()

    def close(self) -> None:
        """Leave nothing on the screen that moves."""


class JsonScreen(PlainScreen):
    """Write one JSON object for each turn, on one line."""

    def end(self, turn: Turn) -> None:
        """Write the turn."""
        reply = turn.reply
        assert reply is not None  # noqa: S101 - only a turn that ended well is shown
        write_json_line(
            {
                "answer": reply.text,
                "citations": [
                    {"number": each.number, "name": each.name, "link": each.link, "quote": each.quote}
                    for each in turn.citations
                ],
                "warnings": list(turn.warnings),
                "tools": [
                    {
                        "name": each.call.name,
                        "arguments": _parsed(each.call.arguments),
                        "error" if each.result.error else "result": _parsed(each.result.content),
                        "seconds": round(each.seconds, 3),
                    }
                    for each in turn.tools
                ],
                "selection": selection_to_json(turn.selection),
                "usage": {"input_tokens": reply.usage.input_tokens, "output_tokens": reply.usage.output_tokens},
                "service": reply.reply.service or None,
            }
        )

    def failed(self, error: BaseException) -> None:
        """Write the error in place of the turn."""
        kind, message, _ = described(error)
        write_json_line({"error": {"type": kind, "message": plain(message)}})


class TerminalScreen(PlainScreen):
    """Show the answer while it is written, and a line for each call.

    ``output`` is the terminal. While a turn goes on, what libraries print goes elsewhere.
    """

    def __init__(self, output: TextIO) -> None:
        self._console = console_for(output)
        self._live: Live | None = None
        self._text = ""
        self._running: dict[str, str] = {}

    def begin(self) -> None:
        """Show that the agent is at work."""
        from rich.live import Live

        self._running.clear()
        self._text = ""
        self._live = Live(
            console=self._console,
            get_renderable=self._view,
            refresh_per_second=_REFRESHES,
            transient=True,
            # The line editor needs the real terminal.
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def event(self, event: object) -> None:
        """Show a piece of the answer, or a call."""
        from portico import ChatDelta, ToolFinished, ToolStarted

        match event:
            case ChatDelta(text=text):
                self._text += text
            case ToolStarted(call=call):
                self._print_text()
                self._running[call.id] = call_words(call)
            case ToolFinished():
                self._finished(event)

    def end(self, turn: Turn) -> None:
        """Show the whole answer and its citations."""
        from portico_cli.show.answer import citation_lines, warning_lines

        self.close()
        if not turn.answer.strip():
            self._console.print(safe_text("The answer is empty.", "dim"))
        self._print_text()
        for line in (*citation_lines(turn.citations), *warning_lines(turn.warnings)):
            self._console.print(line)
        self._console.print()

    def stopped(self) -> None:
        """Show that the answer was stopped, and what that means."""
        self.close()
        self._print_text()
        self.note("Stopped. The conversation is as it was before the question.")
        self._console.print()

    def failed(self, error: BaseException) -> None:
        """Show why there is no answer."""
        self.close()
        self._print_text()
        self._console.print(Hanging(safe_text("Error: ", "bold red").append_text(safe_text(described(error)[1]))))
        self._console.print()

    def note(self, words: str) -> None:
        """Show a remark, dim."""
        self.close()
        self._console.print(Hanging(safe_text(words, "dim")))

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keep the screen still while the person is asked."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()
        self._print_text()
        try:
            yield
        finally:
            if live is not None:
                self._live = live
                live.start()

    def close(self) -> None:
        """Leave nothing on the screen that moves."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _print_text(self) -> None:
        text, self._text = self._text, ""
        if text.strip():
            self._console.print(AnswerText(text))

    def _finished(self, finished: ToolFinished) -> None:
        from rich.text import Text

        words = self._running.pop(finished.call.id, call_words(finished.call))
        failed = finished.result.error
        seconds = f"  {finished.seconds:.1f} s"
        called = Text.assemble(("✗ ", "red") if failed else ("✓ ", "dim"), (plain(words), "dim"))
        called.truncate(max(self._console.width - len(seconds), 1), overflow="ellipsis")
        self._console.print(called.append(seconds, "dim"))
        if failed:
            self._console.print(Hanging(safe_text(" ".join(finished.result.content.split()), "red"), "  ", "  "))

    def _view(self) -> RenderableType:
        """Return the last lines of the answer so far, or what goes on."""
        from rich.console import Group
        from rich.spinner import Spinner
        from rich.text import Text

        width, height = self._console.size
        if text := self._text.strip():
            # More than fills the screen is cut before it is wrapped.
            lines = safe_text(text[-width * height :]).wrap(self._console, width)
            return Group(*lines[-max(height - 2, 1) :])
        line = Text(plain(f"{', '.join(self._running.values())}…" if self._running else "Thinking…"), style="dim")
        line.truncate(max(width - 3, 1), overflow="ellipsis")
        return Spinner("dots", line, style="dim")


def call_words(call: ToolCall) -> str:
    """Return a call on one line.

    >>> call_words(ToolCall("1", "docs-Search", '{"query": "ports", "count": 2}'))
    'docs-Search(query="ports", count=2)'
    """
    arguments = _parsed(call.arguments)
    if not isinstance(arguments, dict):
        return f"{call.name}({_cut(str(arguments))})"
    words = (f"{name}={_cut(json.dumps(value, ensure_ascii=False))}" for name, value in arguments.items())
    return f"{call.name}({', '.join(words)})"


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _parsed(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text
