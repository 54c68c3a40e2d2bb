"""What is shown of a conversation: to a person at a terminal, to a pipe, to a program."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

from portico_cli.failures import described, write_error
from portico_cli.output import console_for, plain, safe_text, show, write_json_line
from portico_cli.turn_account import TurnAccount, account_to_json, call_words
from portico_cli.written_text import WrittenText

if TYPE_CHECKING:
    from rich.live import Live

    from portico.agents.replies import AgentEvent
    from portico.turns import ToolFinished

__all__ = ["JsonScreen", "PlainScreen", "Screen", "TerminalScreen"]

_LEAST_WIDTH = 20
_MOST_WIDTH = 120


class Screen(Protocol):
    """Shows turns: `begin`, each event, then `end`, `stopped` or `failed`."""

    def begin(self) -> None:
        """Take note that a turn begins."""

    def event(self, event: AgentEvent[str]) -> None:
        """Show what happens."""

    def end(self, account: TurnAccount) -> None:
        """Show the answer, or what is left of it to show."""

    def stopped(self) -> None:
        """Say that a turn was stopped."""

    def failed(self, error: BaseException) -> None:
        """Say why there is no answer."""

    def note(self, words: str) -> None:
        """Say something beside the conversation."""


class PlainScreen:
    """Answers go to standard output as they are, with where their citations lead; all else to standard error."""

    def __init__(self) -> None:
        self._first = True

    def begin(self) -> None:
        """Nothing to show."""

    def event(self, event: AgentEvent[str]) -> None:
        """Nothing to show before the end."""

    def end(self, account: TurnAccount) -> None:
        """Write the answer; a blank line goes before every one but the first."""
        from rich.text import Text

        from portico_cli.answers import citation_lines, warning_lines

        blank = () if self._first else (Text(),)
        self._first = False
        show(*blank, safe_text(account.answer.strip("\n")), *citation_lines(account.citations))
        errors = console_for(sys.stderr)
        for line in warning_lines(account.warnings):
            errors.print(line)

    def stopped(self) -> None:
        """Nothing: an interrupt ends it all."""

    def failed(self, error: BaseException) -> None:
        """Write the error to standard error."""
        write_error(f"Error: {plain(described(error)[1])}")

    def note(self, words: str) -> None:
        """Write it to standard error."""
        write_error(plain(words))


class JsonScreen(PlainScreen):
    """One JSON object a turn, on one line."""

    def end(self, account: TurnAccount) -> None:
        """Write the turn."""
        write_json_line(account_to_json(account))

    def failed(self, error: BaseException) -> None:
        """Write the error in place of the turn."""
        kind, message, _ = described(error)
        write_json_line({"error": {"type": kind, "message": plain(message)}})


class TerminalScreen:
    """The answer as it is written, a dim line for each call, a line that says what goes on while nothing is written.

    ``output`` is the terminal; while a turn goes on, what libraries print goes elsewhere.
    """

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._console = console_for(output)
        self._errors = console_for(sys.stderr)
        self._text = WrittenText(self._write, _width)
        self._line: Live | None = None
        self._running: dict[str, str] = {}
        self._asked = False

    def begin(self) -> None:
        """Say that the agent is at work."""
        self._running.clear()
        self._say("Thinking…")

    def event(self, event: AgentEvent[str]) -> None:
        """Show a piece of the answer, or a call."""
        from portico.chat import ChatDelta
        from portico.turns import ToolFinished, ToolStarted

        match event:
            case ChatDelta(text=text) if text:
                if self._line is not None and text.strip():
                    self._hush()
                self._text.feed(text)
            case ChatDelta(reasoning=reasoning) if reasoning and not self._text.begun:
                self._say("Thinking…")
            case ToolStarted(call=call):
                self._text.end()
                self._running[call.id] = call_words(call)
                self._say_running()
            case ToolFinished():
                self._finished(event)

    def end(self, account: TurnAccount) -> None:
        """Show what the answer rests on."""
        from portico_cli.answers import citation_lines, warning_lines

        self._hush()
        if not account.answer.strip():
            self._errors.print(safe_text("The answer is empty.", "dim"))
        self._text.end()
        for line in citation_lines(account.citations):
            self._console.print(line)
        for line in warning_lines(account.warnings):
            self._errors.print(line)
        self._errors.print()

    def stopped(self) -> None:
        """Say that the answer was stopped, and what that means."""
        self._hush()
        self._text.end()
        self.note("Stopped. The conversation is as it was before the question.")
        self._errors.print()

    def failed(self, error: BaseException) -> None:
        """Say why there is no answer."""
        from portico_cli.answer_text import Hanging

        self._hush()
        self._text.end()
        text = safe_text("Error: ", "bold red").append_text(safe_text(described(error)[1]))
        self._errors.print(Hanging(text))
        self._errors.print()

    def note(self, words: str) -> None:
        """Say something beside the conversation, dim."""
        from portico_cli.answer_text import Hanging

        self._hush()
        self._errors.print(Hanging(safe_text(words, "dim")))

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keep the line away while somebody is asked."""
        self._hush()
        self._text.end()
        self._asked = True
        try:
            yield
        finally:
            self._asked = False
            self._say_running()

    def close(self) -> None:
        """Take the line away, whatever happened."""
        self._hush()

    def _finished(self, finished: ToolFinished) -> None:
        from rich.text import Text

        from portico_cli.answer_text import Hanging

        words = self._running.pop(finished.call.id, call_words(finished.call))
        self._hush()
        self._text.end()
        failed = finished.result.error
        mark = ("✗ ", "red") if failed else ("✓ ", "dim")
        seconds = f"  {finished.seconds:.1f} s"
        called = Text.assemble(mark, (plain(words), "dim"))
        called.truncate(max(self._errors.width - len(seconds), 1), overflow="ellipsis")
        self._errors.print(called.append(seconds, "dim"))
        if failed:
            why = safe_text(" ".join(finished.result.content.split()), "red")
            self._errors.print(Hanging(why, "  ", "  "))
        self._say_running()

    def _say_running(self) -> None:
        self._say(f"{', '.join(self._running.values())}…" if self._running else "Thinking…")

    def _say(self, words: str) -> None:
        if self._asked:
            return
        from rich.live import Live
        from rich.spinner import Spinner
        from rich.text import Text

        # Cut here: the spinner forgets that its text is not to be broken.
        line = Text(plain(words), style="dim")
        line.truncate(max(self._errors.width - 3, 1), overflow="ellipsis")
        spinner = Spinner("dots", line, style="dim")
        if self._line is None:
            # What libraries print is sent elsewhere already; and the line editor wants the real terminal.
            self._line = Live(
                spinner, console=self._errors, transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._line.start()
        else:
            self._line.update(spinner)

    def _hush(self) -> None:
        if self._line is not None:
            self._line.stop()
            self._line = None

    def _write(self, text: str) -> None:
        self._output.write(text)
        self._output.flush()


def _width() -> int:
    columns = shutil.get_terminal_size().columns
    return max(_LEAST_WIDTH, min(columns, _MOST_WIDTH))
