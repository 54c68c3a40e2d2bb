"""What the readers of structured text share: the headings that hold at a place, and cutting lines at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from portico_documents.chunking import Section

_LONGEST_HEADING = 200


class Outline:
    """The headings that are open, outermost first.

    >>> outline = Outline(title="Guide - Portico")
    >>> outline.enter(1, "Guide"), outline.enter(2, "Install")
    (('Guide',), ('Guide', 'Install'))
    >>> outline.enter(2, "Use")
    ('Guide', 'Use')
    """

    def __init__(self, title: str = "") -> None:
        self._title = _shortened(title)
        self._open: list[tuple[int, str]] = []
        self.headings: tuple[str, ...] = (self._title,) if self._title else ()

    def enter(self, level: int, heading: str) -> tuple[str, ...]:
        """Open a heading, close those of its level and below, and return the path.

        A document's title gives way to the first heading when it only repeats it, with the site's name perhaps.
        """
        heading = _shortened(heading)
        while self._open and self._open[-1][0] >= level:
            self._open.pop()
        if self._title and heading.casefold() in self._title.casefold():
            self._title = ""
        if heading:
            self._open.append((level, heading))
        path = tuple(text for _, text in self._open)
        self.headings = (self._title, *path) if self._title else path
        return self.headings


class LineSections:
    """Makes sections out of the lines of a file, exactly as they stand, as a reader goes through them.

    The reader says where a heading is and where code starts and ends; blank lines at the edges are left out. A
    heading with nothing under it becomes a section itself, so that its words are found.
    """

    def __init__(self, lines: Sequence[str], outline: Outline, start: int = 0, *, code: bool = False) -> None:
        self._lines = lines
        self._outline = outline
        self._start = start
        self._code = code
        self._continues = False
        self._bare: tuple[int, int, int] | None = None
        self.sections: list[Section] = []

    def heading(self, start: int, end: int, level: int, text: str) -> None:
        """Note a heading: its lines from ``start`` to before ``end``, counted from 0."""
        self._close(start, continues=False)
        self._keep_bare(level)
        self._outline.enter(level, text)
        self._bare = (start, end, level)
        self._start = end

    def turn(self, index: int, *, code: bool) -> None:
        """Note that the lines from ``index`` on are code, or are no longer."""
        if code != self._code:
            self._close(index, continues=True)
            self._code = code

    def leave_out(self, start: int, end: int) -> None:
        """Note that the lines from ``start`` to before ``end`` are nothing that a reader sees."""
        self._close(start, continues=False)
        self._start = end

    def part(self, index: int, headings: tuple[str, ...]) -> None:
        """Note that other headings hold from ``index`` on, which is not a heading itself."""
        if headings != self._outline.headings:
            self._close(index, continues=False)
            self._outline.headings = headings

    def finish(self) -> list[Section]:
        """Return all sections; nothing may follow."""
        self._close(len(self._lines), continues=False)
        self._keep_bare(0)
        return self.sections

    def _close(self, end: int, *, continues: bool) -> None:
        lines = self._lines
        start = self._start
        self._start = end
        if not self._continues:
            while start < end and not lines[start].strip():
                start += 1
        if start < end:
            text = "\n".join(lines[start:end]) + ("\n" if end < len(lines) else "")
            if self._continues and not text.strip():
                self.sections[-1] = replace(self.sections[-1], text=self.sections[-1].text + text)
            else:
                self.sections.append(
                    Section(text, start + 1, self._outline.headings, code=self._code, continues=self._continues)
                )
                self._bare = None
                self._continues = True
        self._continues = self._continues and continues

    def _keep_bare(self, level: int) -> None:
        """Keep the words of the heading before, when it had no text and no heading below it."""
        if self._bare is not None and level <= self._bare[2]:
            start, end, _ = self._bare
            self.sections.append(Section("\n".join(self._lines[start:end]), start + 1, self._outline.headings))
        self._bare = None


def _shortened(heading: str) -> str:
    heading = " ".join(heading[: 2 * _LONGEST_HEADING].split())
    return heading if len(heading) <= _LONGEST_HEADING else f"{heading[: _LONGEST_HEADING - 1].rstrip()}…"
