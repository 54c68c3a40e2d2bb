"""Lay out text for a terminal: hanging indents, Markdown, counts, places and links."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.style import Style
from rich.table import Table
from rich.text import Text

from portico_cli.show.output import plain

_LINE = re.compile(r"L(\d+)")
_PAGE = re.compile(r"page=(\d+)")
_LEAST_WIDTH = 8


@dataclass(frozen=True, slots=True)
class Hanging:
    """Text after ``first``; its further lines begin below the text."""

    text: Text
    first: str = ""
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Wrap the text to the width that is left."""
        indent = cell_len(self.first)
        width = max(options.max_width - indent, _LEAST_WIDTH)
        for number, line in enumerate(self.text.wrap(console, width, tab_size=4)):
            line.rstrip()
            whole = Text.assemble((" " * indent if number else self.first, self.style), line)
            whole.no_wrap, whole.overflow = True, "ignore"
            yield whole


def new_table(*columns: str) -> Table:
    """Return a table without lines, with the names of its columns above."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def markdown(text: str) -> RenderableType:
    """Return an answer laid out as Markdown. HTML is shown as it is written, and so is the target of a link."""
    from markdown_it import MarkdownIt  # both take a tenth of a command's start, and only a terminal shows Markdown
    from rich.markdown import Markdown

    made = Markdown("", code_theme="ansi_dark", hyperlinks=False)
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    made.parsed = parser.parse(plain(text).strip("\n"))
    return made


def count_words(number: int, word: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def place_head(name: str | None, link: str | None, style: str = "") -> Text:
    """Return the place of a passage and its title on one line; the place opens the link in terminals that can."""
    title, target = _on_one_line(name or ""), plain(link or "").replace("\n", "")
    try:
        parts = urlsplit(target)
    except ValueError:
        parts = urlsplit("")
    shown = target
    if parts.scheme == "file":
        path, fragment = unquote(parts.path), unquote(parts.fragment)
        if os.name == "nt":
            # It brings an HTTP client, which takes 20 ms, and elsewhere does no more than `unquote`.
            from urllib.request import url2pathname

            path = url2pathname(parts.path)
        line, page = _LINE.match(fragment), _PAGE.match(fragment)
        first, _, rest = title.partition(" › ")
        # The place shows the name of the file already.
        title = rest if _on_one_line(path).replace(os.sep, "/").endswith(first) else title
        with suppress(ValueError, OSError):
            path = os.fspath(Path(path).relative_to(Path.cwd().resolve()))
        shown = _on_one_line(path) + (f":{line[1]}" if line else f", page {page[1]}" if page else "")
    opened = target if parts.scheme in ("file", "http", "https") else None
    head = Text(shown, style=Style.parse("cyan") + Style(link=opened))
    return head.append(f"{'  ' if shown else ''}{title}", style) if title else head


def _on_one_line(text: str) -> str:
    # The name of a file may hold any character, a line break too.
    return plain(text).replace("\n", " ")
