"""Text on a terminal while it is being written: broken between words, and never by what it holds."""

from __future__ import annotations

import re
from collections.abc import Callable

from portico_cli.output import plain

__all__ = ["WrittenText"]

_PIECE = re.compile(r"\n|[^\S\n]+|\S+")
_AS_IT_IS = re.compile(r" {4}|\t|\s*\|")
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
# What begins a line of its own, whatever stands before it: a list's item, a heading, a quotation, a table, code.
_OWN_LINE = re.compile(r"[-*+•#>|]|\d{1,3}[.)]|```|~~~")
# A line at least this long was broken because it was full, so it goes on in the next.
_FULL_LINE = 50


class WrittenText:
    r"""Write pieces of a text as they come; a word goes to the next line where it would not fit.

    >>> lines = []
    >>> text = WrittenText(lines.append, lambda: 12)
    >>> for piece in ("Ports are pro", "tocols.", "\n"):
    ...     text.feed(piece)
    >>> text.end()
    >>> "".join(lines)
    'Ports are\nprotocols.\n'

    Code, rows of tables and indented lines are written as they are. Lines that were broken at a width are joined again,
    as Markdown means it. The word that is being written is kept back until
    its end is known, and so are blank lines at the end; `end` writes the word, and ends the line.
    """

    def __init__(self, write: Callable[[str], object], width: Callable[[], int]) -> None:
        self._write = write
        self._width = width
        self._column = 0
        self._line = ""
        self._space = self._word = ""
        self._breaks = 0
        self._last_column = 0
        self._full = False
        self._code = False
        self._begun = False

    @property
    def begun(self) -> bool:
        """Whether anything was written since the last `end`."""
        return self._begun

    def feed(self, text: str) -> None:
        """Write what can be written of a piece."""
        written: list[str] = []
        for piece in _PIECE.findall(plain(text)):
            if piece == "\n":
                self._end_word(written)
                self._end_line()
            elif piece.isspace():
                self._end_word(written)
                self._space += piece
            else:
                self._word += piece
        if written:
            self._write("".join(written))

    def end(self) -> None:
        """Write what was kept back and end the line."""
        written: list[str] = []
        self._end_word(written)
        if self._begun:
            written.append("\n")
        self._column, self._line, self._space, self._breaks = 0, "", "", 0
        self._code = self._begun = self._full = False
        if written:
            self._write("".join(written))

    def _end_word(self, written: list[str]) -> None:
        from rich.cells import cell_len

        word, self._word = self._word, ""
        if not word:
            return
        space, self._space = self._space.expandtabs(4), ""
        if self._breaks:
            goes_on = self._breaks == 1 and self._full and not self._code
            if goes_on and len(space) < 4 and not _OWN_LINE.match(word):
                space = " "
                self._column = self._last_column
            elif self._begun:
                written.append("\n" * min(self._breaks, 2))
            self._breaks = 0
        self._line += space + word
        self._begun = True
        wide = cell_len(word)
        fits = self._column + len(space) + wide <= self._width()
        if fits or not self._column or self._code or _AS_IT_IS.match(self._line):
            written.append(space + word)
            self._column += len(space) + wide
        else:
            written.append(f"\n{word}")
            self._column = wide

    def _end_line(self) -> None:
        fence = _FENCE.match(self._line) is not None
        if fence:
            self._code = not self._code
        if not self._breaks:
            self._last_column = self._column
            self._full = len(self._line) >= _FULL_LINE and not fence and not _AS_IT_IS.match(self._line)
        self._column, self._line, self._space = 0, "", ""
        self._breaks += 1
