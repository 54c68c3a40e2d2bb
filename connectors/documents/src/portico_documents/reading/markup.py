"""Markdown and reStructuredText: headings and code; all else stays as it is written.

The readers find where blocks start, as CommonMark and docutils have it, and render nothing: a passage is the file's
own lines, so what is quoted can be found in the file, and links keep their addresses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

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
        self._title = _shorten(title)
        self._open: list[tuple[int, str]] = []
        self.headings: tuple[str, ...] = (self._title,) if self._title else ()

    def enter(self, level: int, heading: str) -> tuple[str, ...]:
        """Open a heading, close those of its level and below, and return the path.

        A document's title gives way to the first heading when it only repeats it, with the site's name perhaps.
        """
        heading = _shorten(heading)
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

    The reader says where a heading is and where code starts and ends; blank lines at the edges are left out.
    """

    def __init__(self, lines: Sequence[str], outline: Outline, start: int = 0, *, code: bool = False) -> None:
        self._lines = lines
        self._outline = outline
        self._start = start
        self._code = code
        self._continues = False
        self.sections: list[Section] = []

    def heading(self, start: int, end: int, level: int, text: str) -> None:
        """Note a heading: its lines from ``start`` to before ``end``, counted from 0."""
        self._close(start, continues=False)
        self._outline.enter(level, text)
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
                self.sections[-1] = self.sections[-1]._replace(text=self.sections[-1].text + text)
            else:
                self.sections.append(
                    Section(text, start + 1, self._outline.headings, code=self._code, continues=self._continues)
                )
                self._continues = True
        self._continues = self._continues and continues


def _shorten(heading: str) -> str:
    heading = " ".join(heading[: 2 * _LONGEST_HEADING].split())
    return heading if len(heading) <= _LONGEST_HEADING else f"{heading[: _LONGEST_HEADING - 1].rstrip()}…"


_ATX = re.compile(r"(#{1,6})(?:[ \t]+(.*))?$", re.DOTALL)
_FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})", re.DOTALL)
_LIST_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_COMMENT = re.compile(r"<!--.*?-->")
_ANCHOR = re.compile(r"\s*\{[#.:][^{}]*\}\s*$")
_TITLE_LINE = re.compile(r"""title\s*[:=]\s*["']?(.*?)["']?\s*$""", re.IGNORECASE)
_LONGEST_SETEXT = 3
_NO_PARAGRAPH = frozenset("><|=")
_MARKS = frozenset("#[{`*_")


def read_markdown(text: str) -> list[Section]:
    r"""Return the sections of a Markdown file, under its headings and the title of its front matter.

    >>> [(section.text, section.headings, section.code) for section in read_markdown("# A\nHello\n```\nx = 1\n```")]
    [('Hello\n', ('A',), False), ('```\nx = 1\n```', ('A',), True)]
    """
    lines = text.split("\n")
    start, title = _front_matter(lines)
    writer = LineSections(lines, Outline(title), start)
    _scan(lines, start, writer)
    return writer.finish()


def _scan(lines: list[str], start: int, writer: LineSections) -> None:
    fence = ""
    comment = -1
    indented = in_list = False
    after_blank = True
    paragraph = -1
    for index in range(start, len(lines)):
        line = lines[index]
        bare = line.lstrip()
        if fence:
            if bare.startswith(fence) and not bare.strip(fence[0] + " \t"):
                fence = ""
                writer.turn(index + 1, code=False)
            continue
        if comment >= 0:
            if "-->" in bare:
                if not bare.partition("-->")[2].strip():
                    writer.leave_out(comment, index + 1)
                comment = -1
            continue
        if not bare:
            after_blank = True
            paragraph = -1
            continue
        first = bare[0]
        indent = len(line) - len(bare)
        deep = indent >= 4 or (indent > 0 and "\t" in line[:indent])
        if after_blank:
            if not indent:
                in_list = False
            if deep and not in_list:
                if not indented:
                    indented = True
                    writer.turn(index, code=True)
                after_blank = False
                continue
            paragraph = -1 if first in _NO_PARAGRAPH else index
        if indented:
            if deep:
                continue
            indented = False
            paragraph = index
            writer.turn(index, code=False)
        after_blank = False
        if first in "`~" and (match := _FENCE.match(bare)):
            fence = match[1] or match[2]
            writer.turn(index, code=True)
            paragraph = -1
        elif first == "#" and not deep and (match := _ATX.match(bare)):
            writer.heading(index, index + 1, len(match[1]), _markdown_heading(match[2] or ""))
            after_blank = True
            in_list = False
        elif first in "=-" and 0 <= paragraph < index and not deep and not bare.rstrip().strip(first):
            if index - paragraph <= _LONGEST_SETEXT:
                writer.heading(
                    paragraph, index + 1, 1 if first == "=" else 2, _markdown_heading(" ".join(lines[paragraph:index]))
                )
                after_blank = True
            paragraph = -1
        elif _LIST_ITEM.match(bare):
            in_list = True
            paragraph = -1
        elif first == "<" and bare.startswith("<!--"):
            if "-->" not in bare:
                comment = index
            elif not _COMMENT.sub("", bare).strip():
                writer.leave_out(index, index + 1)


def _markdown_heading(text: str) -> str:
    """Take the marks off a heading: closing ``#``, links, emphasis, code, an anchor in braces."""
    text = text[:500].strip()
    if _MARKS.isdisjoint(text):
        return text
    text = re.sub(r"(?:^|[ \t])#+$", "", text)
    text = _ANCHOR.sub("", text)
    return _LINK.sub(r"\1", text).replace("`", "").replace("**", "").strip("*_ \t")


def _front_matter(lines: list[str]) -> tuple[int, str]:
    """Return the index of the first line after the front matter, and the title that it gives."""
    mark = lines[0].rstrip()
    if mark not in {"---", "+++"}:
        return 0, ""
    title = ""
    for index in range(1, len(lines)):
        line = lines[index].rstrip()
        if line == mark or (line == "..." and mark == "---"):
            return index + 1, title
        if not title and (match := _TITLE_LINE.match(line[:500])):
            title = match[1]
    return 0, ""


_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*+\s*$")
_CODE_DIRECTIVE = re.compile(
    r"\.\. +(?:code|code-block|sourcecode|parsed-literal|prompt|doctest|testcode|testoutput|math|graphviz)::"
)
_ROLE = re.compile(r":[\w:.+-]{1,60}:`([^`<]*)(?:<[^`]*)?`")
_SHORTEST_BELOW_LONGER_TITLE = 4


def read_restructuredtext(text: str) -> list[Section]:
    r"""Return the sections of a reStructuredText file.

    >>> [(section.text, section.headings) for section in read_restructuredtext("Title\n=====\n\nHello.")]
    [('Hello.', ('Title',))]
    """
    lines = text.split("\n")
    writer = LineSections(lines, Outline())
    styles: list[tuple[str, bool]] = []
    literal_above = -1  # inside a literal block: the indentation that ends it
    after_blank = True
    index = 0
    while index < len(lines):
        line = lines[index]
        bare = line.lstrip()
        if not bare:
            after_blank = True
            index += 1
            continue
        indent = len(line) - len(bare)
        if literal_above >= 0:
            if indent > literal_above:
                writer.turn(index, code=True)
                index += 1
                continue
            literal_above = -1
            writer.turn(index, code=False)
        if after_blank and (title := _title_at(lines, index)) is not None:
            heading, end, style = title
            if style not in styles:
                styles.append(style)
            writer.heading(index, end, styles.index(style) + 1, heading)
            index = end
            continue
        after_blank = False
        if bare.startswith(".. "):
            if _CODE_DIRECTIVE.match(bare):
                writer.turn(index, code=True)
                literal_above = indent
        elif bare.rstrip().endswith("::"):
            literal_above = indent
        index += 1
    return writer.finish()


def _title_at(lines: list[str], index: int) -> tuple[str, int, tuple[str, bool]] | None:
    """Return the title that starts on a line: its text, the index after it, its style."""
    line = lines[index]
    over = _ADORNMENT.match(line)
    if over is not None:
        if index + 2 >= len(lines) or not lines[index + 1].strip():
            return None
        under = _ADORNMENT.match(lines[index + 2])
        fits = under is not None and under[1] == over[1] and len(lines[index + 2].rstrip()) == len(line.rstrip())
        return (
            (_plain_heading(lines[index + 1]), index + 3, (over[1], True)) if fits and len(line.rstrip()) > 1 else None
        )
    if line[0].isspace() or index + 1 >= len(lines):
        return None
    under = _ADORNMENT.match(lines[index + 1])
    if under is None:
        return None
    length = len(lines[index + 1].rstrip())
    if length < len(line.rstrip()) and length < _SHORTEST_BELOW_LONGER_TITLE:
        return None
    return _plain_heading(line), index + 2, (under[1], False)


def _plain_heading(text: str) -> str:
    """Take roles and marks off a title."""
    return _ROLE.sub(r"\1", text[:500].strip()).replace("`", "").replace("**", "")
