"""Lay out text for a terminal: hanging indents, Markdown, places and links."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from portico_cli.show.output import plain

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text


_LINE = re.compile(r"L(\d+)")
_PAGE = re.compile(r"page=(\d+)")
_OPENED = ("file", "http", "https")
_LEAST_WIDTH = 8


@dataclass(frozen=True, slots=True)
class Hanging:
    """Text whose lines begin under each other: after ``first`` on the first line, after ``rest`` on the others."""

    text: Text
    first: str = ""
    rest: str = ""
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Wrap the text to the width that is left."""
        from rich.cells import cell_len
        from rich.text import Text

        width = max(options.max_width - max(cell_len(self.first), cell_len(self.rest)), _LEAST_WIDTH)
        for number, line in enumerate(self.text.wrap(console, width, tab_size=4)):
            line.rstrip()
            whole = Text.assemble((self.rest if number else self.first, self.style), line)
            whole.no_wrap = True
            whole.overflow = "ignore"
            yield whole


@dataclass(frozen=True, slots=True)
class AnswerText:
    """An answer laid out as Markdown. HTML is shown as it is written, and the target of a link is shown."""

    text: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lay it out; lines are not filled up with spaces."""
        from markdown_it import MarkdownIt
        from rich.markdown import Markdown
        from rich.segment import Segment

        made = Markdown("", code_theme="ansi_dark", hyperlinks=False)
        parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
        made.parsed = parser.parse(plain(self.text).strip("\n"))
        lines = console.render_lines(made, options, pad=False)
        while lines and not "".join(segment.text for segment in lines[-1]).strip():
            lines.pop()
        for line in lines:
            while line and not line[-1].text.strip():
                line.pop()
            if line:
                line[-1] = Segment(line[-1].text.rstrip(), line[-1].style)
            yield from line
            yield Segment.line()


def count_words(number: int, word: str) -> str:
    """Return a number with its noun.

    >>> count_words(1, "step"), count_words(1200, "step")
    ('1 step', '1,200 steps')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a passage: the text that is shown, the title beside it, and the link that opens it."""

    shown: str
    title: str
    link: str | None


def place_of(name: str | None, link: str | None) -> Place:
    """Return the place that a result's name and link mean.

    >>> place_of("x.md › Writing", "file:///nowhere/x.md#L12")
    Place(shown='/nowhere/x.md:12', title='Writing', link='file:///nowhere/x.md#L12')
    >>> place_of("A page", "https://example.org/a")
    Place(shown='https://example.org/a', title='A page', link='https://example.org/a')
    """
    title = _on_one_line(name or "")
    link = plain(link).replace("\n", "") if link else None
    if link is None:
        return Place("", title, None)
    try:
        parts = urlsplit(link)
    except ValueError:
        return Place(link, title, None)
    if parts.scheme != "file":
        return Place(link, title, link if parts.scheme in _OPENED else None)
    path = url2pathname(parts.path)
    fragment = unquote(parts.fragment)
    line, page = _LINE.match(fragment), _PAGE.match(fragment)
    suffix = f":{line[1]}" if line else f", page {page[1]}" if page else ""
    first, _, rest = title.partition(" › ")
    # The place shows the name of the file already.
    title = rest if _on_one_line(path).replace(os.sep, "/").endswith(first) else title
    with suppress(ValueError, OSError):
        path = os.fspath(Path(path).relative_to(Path.cwd().resolve()))
    return Place(_on_one_line(path) + suffix, title, link)


def place_head(name: str | None, link: str | None, style: str = "") -> Text:
    """Return the place of a passage and its title on one line; the place opens the link in terminals that can."""
    from rich.style import Style
    from rich.text import Text

    place = place_of(name, link)
    text = Text(place.shown, style="cyan")
    if place.link is not None:
        text.stylize(Style(link=place.link))
    head = Text().append_text(text)
    return head.append(("  " if place.shown else "") + place.title, style) if place.title else head


def _on_one_line(text: str) -> str:
    # The name of a file may hold any character, a line break too.
    return plain(text).replace("\n", " ")
