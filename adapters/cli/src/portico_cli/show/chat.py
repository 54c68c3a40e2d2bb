"""Show a conversation: at a terminal, in a pipe, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from portico import Citation, ToolCall
from portico_cli.failures import describe_error, write_error
from portico_cli.show.answer import citation_lines, usage_to_json, warning_lines
from portico_cli.show.functions import selection_to_json
from portico_cli.show.layout import Hanging, markdown
from portico_cli.show.output import console_for, plain, safe_text, show, show_errors, write_json

if TYPE_CHECKING:
    from portico import AgentReply, Selection, ToolFinished


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
        blank = () if self._first else (Text(),)
        self._first = False
        show(*blank, safe_text(turn.answer.strip("\n")), *citation_lines(turn.citations))
        show_errors(*warning_lines(turn.warnings))

    def stopped(self) -> None:
        """Show that a turn was stopped."""

    def failed(self, error: BaseException) -> None:
        """Show why there is no answer."""
        write_error(f"Error: {plain(describe_error(error)[1])}")

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
        tools = [
            {
                "name": each.call.name,
                "arguments": _parse_json(each.call.arguments),
                "error" if each.result.error else "result": _parse_json(each.result.content),
                "seconds": round(each.seconds, 3),
            }
            for each in turn.tools
        ]
        made = {
            "answer": reply.text,
            "citations": [asdict(each) for each in turn.citations],
            "warnings": list(turn.warnings),
            "tools": tools,
            "selection": selection_to_json(turn.selection),
            "usage": usage_to_json(reply.usage),
            "service": reply.reply.service or None,
        }
        write_json(made, indent=None)

    def failed(self, error: BaseException) -> None:
        """Write the error in place of the turn."""
        kind, message, _ = describe_error(error)
        write_json({"error": {"type": kind, "message": plain(message)}}, indent=None)


class TerminalScreen(PlainScreen):
    """Show the answer while it is written, and a line for each call.

    ``output`` is the terminal. During a turn, what libraries print goes elsewhere.
    """

    def __init__(self, output: TextIO) -> None:
        self._console = console_for(output)
        self._live: Live | None = None
        self._text = ""
        self._running: dict[str, str] = {}

    def begin(self) -> None:
        """Show that the agent is at work."""
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
            case ToolFinished(call=call, result=result, seconds=seconds):
                self._running.pop(call.id, None)
                line = Text.assemble(("✗", "red") if result.error else ("✓", "dim"), f"  {seconds:.1f} s  ")
                line.append(plain(call_words(call)), "dim")
                self._console.print(line, no_wrap=True, overflow="ellipsis")
                if result.error:
                    self._console.print(Hanging(safe_text(" ".join(result.content.split()), "red"), "  "))

    def end(self, turn: Turn) -> None:
        """Show the whole answer and its citations."""
        lines = [*citation_lines(turn.citations), *warning_lines(turn.warnings)]
        self._end_turn(*([] if turn.answer.strip() else [safe_text("The answer is empty.", "dim")]), *lines)

    def stopped(self) -> None:
        """Show that the answer was stopped, and what that means."""
        self._end_turn(safe_text("Stopped. The conversation is as it was before the question.", "dim"))

    def failed(self, error: BaseException) -> None:
        """Show why there is no answer."""
        self._end_turn(Hanging(safe_text("Error: ", "bold red").append_text(safe_text(describe_error(error)[1]))))

    def _end_turn(self, *lines: RenderableType) -> None:
        self.close()
        self._print_text()
        for line in lines:
            self._console.print(line)
        self._console.print()

    def note(self, words: str) -> None:
        """Show a remark, dim."""
        self.close()
        self._console.print(Hanging(safe_text(words, "dim")))

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keep the screen still while the person is asked."""
        live = self._live
        self.close()
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
            self._console.print(markdown(text))

    def _view(self) -> RenderableType:
        """Return the last lines of the answer so far, or what the agent does now."""
        width, height = self._console.size
        if text := self._text.strip():
            # More than fills the screen is cut before it is wrapped.
            lines = safe_text(text[-width * height :]).wrap(self._console, width)
            return Group(*lines[-max(height - 2, 1) :])
        words = f"{', '.join(self._running.values())}…" if self._running else "Thinking…"
        return Spinner("dots", Text(plain(words)[: width - 3], style="dim"))


def help_lines(commands: Mapping[str, str]) -> Iterator[RenderableType]:
    """Yield the commands of a conversation, and how a message is typed."""
    width = max(map(len, commands)) + 2
    for name, summary in commands.items():
        yield Hanging(Text(summary), name.ljust(width), "cyan")
    words = "A line that ends in a backslash continues in the next. Ctrl-C stops an answer or clears the line."
    yield Hanging(Text(words, style="dim"))


def call_words(call: ToolCall) -> str:
    """Return a call on one line."""
    return " ".join(f"{call.name} {call.arguments}".split())


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text
