"""An answer's text for a terminal: quotations, citation marks, lists and code, and little else of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from portico_cli.output import plain

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text

__all__ = ["Hanging", "answer_lines"]

_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_QUOTE = re.compile(r"\s{0,3}((?:>\s?)+)")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*?)\s*#*$")
_ITEM = re.compile(r"(\s*)([-*+•]|\d{1,3}[.)])\s+(?=\S)")
# Blank lines, indented ones, rows of tables, rules.
_OWN_LINE = re.compile(r"\s*$|\s{4,}|\t|\s*\||\s*(?:[=\-~^*_]\s?){3,}$|.*\S {3,}\S")
_INLINE = re.compile(
    r"(?P<code>`[^`\n]+`)|\*\*(?P<bold>[^*\n]+)\*\*"
    r"|\[(?P<label>[^\]\n]+)\]\((?P<target>[^)\s]+)\)"
    r"|(?<![\w\])])(?P<mark>\[\d{1,4}(?:\s*,\s*\d{1,4})*\])(?!\()"
)
_LEAST_WIDTH = 8
# A line at least this long was broken because it was full, so it goes on in the next.
_FULL_LINE = 50


@dataclass(frozen=True, slots=True)
class Hanging:
    """Text whose lines all begin under each other: after ``first`` on the first, after ``rest`` on the others."""

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


@dataclass(slots=True)
class _Block:
    """A paragraph, an item or a line that stands by itself, with what its lines begin with."""

    text: str
    bar: str = ""
    marker: str = ""
    style: str = ""
    open: bool = False
    """Whether the next line may continue it."""


def answer_lines(text: str, links: Mapping[int, str | None]) -> Iterator[Hanging]:
    """Yield an answer block by block; ``links`` opens the citation marks by their numbers.

    Lines that were broken at a width are joined again, as Markdown means it.
    """
    from rich.text import Text

    for block in _blocks(plain(text).strip("\n").split("\n")):
        made = Text(block.text, style=block.style) if block.style else _inline(block.text, links)
        yield Hanging(made, block.bar + block.marker, block.bar + " " * len(block.marker), "dim")


def _blocks(lines: list[str]) -> Iterator[_Block]:
    fence: str | None = None
    block: _Block | None = None
    for line in lines:
        bar, body = _quoted(line) if fence is None else ("", line)
        mark = _FENCE.match(body)
        if block is not None and block.open and mark is None and _continues(block, bar, body):
            block.text += f" {body.strip()}"
            block.open = len(body) >= _FULL_LINE
            continue
        if block is not None:
            yield block
            block = None
        if fence is not None:
            if mark and mark[1].startswith(fence) and not body.strip().strip(fence[0]):
                fence = None
            else:
                block = _Block(body, "  ", style="cyan")
        elif mark:
            fence = mark[1]
        else:
            block = _block(bar, body)
    if block is not None:
        yield block


def _block(bar: str, body: str) -> _Block:
    heading, item = _HEADING.match(body), _ITEM.match(body)
    if heading and heading[1]:
        return _Block(heading[1], bar, style="bold")
    full = len(body) >= _FULL_LINE
    if item:
        marker = f"{item[1]}{'•' if item[2] in '-*+•' else item[2]} "
        return _Block(body[item.end() :], bar, marker, open=full)
    return _Block(body, bar, open=full and not _OWN_LINE.match(body))


def _continues(block: _Block, bar: str, body: str) -> bool:
    # What belongs to an item may be indented.
    line = body.strip() if block.marker else body
    return bar == block.bar and not (_OWN_LINE.match(line) or _HEADING.match(line) or _ITEM.match(line))


def _quoted(line: str) -> tuple[str, str]:
    found = _QUOTE.match(line)
    if found is None:
        return "", line
    return "│ " * found[1].count(">"), line[found.end() :]


def _inline(line: str, links: Mapping[int, str | None]) -> Text:
    from rich.style import Style
    from rich.text import Text

    made = Text()
    position = 0
    for found in _INLINE.finditer(line):
        made.append(line[position : found.start()])
        position = found.end()
        if found["code"]:
            made.append(found["code"].strip("`"), style="cyan")
        elif found["bold"]:
            made.append(found["bold"], style="bold")
        elif found["label"]:
            # Where a link of a document leads is shown, never hidden behind its words; a relative one leads nowhere.
            made.append(found["label"], style="underline")
            if found["target"].startswith(("https://", "http://")):
                made.append(f" ({found['target']})", style="dim")
        else:
            numbers = [int(number) for number in found["mark"].strip("[]").split(",")]
            link = links.get(numbers[0])
            made.append(found["mark"], style=Style(bold=True, color="green", link=link))
    made.append(line[position:])
    return made
