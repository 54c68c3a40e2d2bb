"""What can be said to the command line itself in a conversation: words that begin with a slash."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from portico.errors import nearest
from portico_cli.output import plain, safe_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType

    from portico.functions import FunctionManual
    from portico.selection.selection import Selection

__all__ = ["COMMANDS", "function_lines", "help_lines", "parsed_command", "unknown_command"]

COMMANDS = {
    "/help": "Show this.",
    "/functions": "Show the functions that the last answer could use; before the first, all.",
    "/undo": "Take back the last question and its answer.",
    "/clear": "Begin anew.",
    "/save FILE": "Save the conversation; --thread FILE goes on with it.",
    "/quit": "Leave; so does Ctrl-D.",
}
_NAMES = tuple(name.partition(" ")[0] for name in COMMANDS)
_OTHERS = {"/exit": "/quit", "/bye": "/quit", "/?": "/help", "/reset": "/clear"}


def parsed_command(text: str) -> tuple[str, str] | None:
    """Return the command and what follows it; None for a message, such as one that begins with two slashes.

    >>> parsed_command("/save a.json"), parsed_command("Hello /help"), parsed_command("//etc is a folder")
    (('/save', 'a.json'), None, None)
    """
    first = text.strip()
    if not first.startswith("/") or first.startswith("//") or "\n" in first:
        return None
    name, _, rest = first.partition(" ")
    return _OTHERS.get(name.lower(), name.lower()), rest.strip()


def unknown_command(name: str) -> str:
    """Say which command was meant, perhaps."""
    close = nearest(name, _NAMES, count=1)
    advice = f"Did you mean {close[0]}?" if close else "/help lists those there are."
    return f"There is no command {name}. {advice} A message that begins with a slash is written with two."


def help_lines() -> Iterator[RenderableType]:
    """Yield the commands and the keys."""
    from rich.text import Text

    from portico_cli.answer_text import Hanging

    width = max(map(len, COMMANDS)) + 2
    for name, summary in COMMANDS.items():
        yield Hanging(Text(summary), name.ljust(width), " " * width, "cyan")
    yield Hanging(
        Text(
            "A line that ends in a backslash goes on in the next, and a pasted block is one message. Ctrl-C stops an "
            "answer or clears the line.",
            style="dim",
        )
    )


def function_lines(manuals: Mapping[str, FunctionManual], selection: Selection | None) -> Iterator[RenderableType]:
    """Yield the functions that may be offered; where they were chosen, which and why, and what came nearest."""
    from rich.text import Text

    from portico_cli.answer_text import Hanging
    from portico_cli.selections import selection_lines

    if selection is not None:
        yield from selection_lines(selection)
        return
    if not manuals:
        yield safe_text("There are no functions.")
    for name, manual in manuals.items():
        words = " ".join(plain(manual.description).split())
        yield Hanging(Text.assemble((plain(name), "cyan"), "  ", (words, "dim")), "  ", "    ")
