"""Splits a passage into units to quote: sentences, list items, table rows, blocks of code.

A unit is a pair of offsets, so that a quote is an exact part of its source. The text is read line by line, as Markdown,
reStructuredText or plain text. Any text has units.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

LONGEST = 700
"""Characters of one unit at most; a longer one is cut where a word or a line ends."""

_ITEM_WHOLE = 300
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_UNDERLINE = re.compile(r"\s*([=\-~^\"'`#*+])\1{2,}\s*$")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)]|\(?[a-zA-Z][.)])\s+(?=\S)")
_ROW = re.compile(r"\s*\|")
_RULE = re.compile(r"[\s|:+=\-]*$")
_INDENTED = re.compile(r" {4,}\S|\t+\S")
_CODE_LINE = re.compile(
    r"""\s*(?:
        (?:def|class|import|from|return|async|await|elif|public|private|static|const|let|var|func|fn|struct)\s.*[\w:;{()}=\]"']\s*$
        | (?:\$|>>>|@)\s?[\w./-]+ .* $
        | [\w.\[\]"']+\s*[:+\-*/|]?=\s*\S.*$
        | \[{1,2}[\w.\-"]+\]{1,2}\s*$
        | [\w.]+\([^)]*\)[;:]?\s*$
        | .*[{};]\s*$
        | [)\]}]+[,;]?\s*$
        | (?:\#|//|/\*|\*/)\s?\S*
    )""",
    re.VERBOSE,
)
_SENTENCE_END = re.compile(r"[.!?…]+[\"')\]”’*_»]*(?=\s)|[。！？]+[」』”]?")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'“])(?:e\.g|i\.e|etc|vs|cf|ca|approx|resp|incl|fig|figs|eq|sec|ch|vol|no|nr|pp?|ed|eds|al|inc|ltd"
    r"|co|corp|dept|est|mr|mrs|ms|dr|prof|sr|jr|st|mt|gen|rev|hon|z\.\s?b|d\.\s?h|u\.\s?a|bzw|usw|ggf|vgl|abb|bspw"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|m|mme|mlle|p\.\s?ex|sra?|[A-Z])\.$",
    re.IGNORECASE,
)
_INLINE_CODE = re.compile(r"`[^`\n]+`")


Kind: TypeAlias = Literal["sentence", "item", "row", "code"]


@dataclass(frozen=True, slots=True)
class Unit:
    """One quotable part: ``text[start:end]`` under ``heading``; ``block`` counts paragraphs, lists and tables."""

    start: int
    end: int
    kind: Kind
    heading: str
    block: int


@dataclass(frozen=True, slots=True)
class _Place:
    heading: str
    block: int


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str

    @property
    def blank(self) -> bool:
        return not self.text.strip()


def split(text: str) -> list[Unit]:
    """Return the units of ``text`` in order. Headings are no units but the context of units."""
    lines = list(_lines(text))
    units: list[Unit] = []
    headings: list[tuple[int, str]] = []
    position = 0
    block = 0
    while position < len(lines):
        line = lines[position]
        if line.blank:
            position += 1
            continue
        block += 1
        place = _Place(" ".join(title for _, title in headings), block)
        if fence := _FENCE.match(line.text):
            stop = _fence_end(lines, position, fence.group(1))
            units += _code(text, lines[position:stop], place)
        elif found := _heading(lines, position):
            level, title, stop = found
            headings = [pair for pair in headings if pair[0] < level] + [(level, title)]
        else:
            stop = _paragraph_end(lines, position)
            units += _paragraph(text, lines[position:stop], place)
        position = stop
    return units


def _lines(text: str) -> Iterator[_Line]:
    start = 0
    while start < len(text):
        stop = text.find("\n", start)
        end = len(text) if stop < 0 else stop
        yield _Line(start, end, text[start:end])
        start = end + 1


def _fence_end(lines: list[_Line], position: int, fence: str) -> int:
    for number in range(position + 1, len(lines)):
        stripped = lines[number].text.strip()
        if stripped.startswith(fence) and not stripped.strip(fence[0]):
            return number + 1
    return len(lines)


def _heading(lines: list[_Line], position: int) -> tuple[int, str, int] | None:
    line = lines[position]
    if match := _HEADING.match(line.text):
        return len(match.group(1)), match.group(2), position + 1
    if position + 1 < len(lines) and len(line.text) <= 120 and not _ITEM.match(line.text) and "|" not in line.text:
        mark = _UNDERLINE.match(lines[position + 1].text)
        if mark and len(lines[position + 1].text.strip()) >= min(len(line.text.strip()), 4):
            return (1 if mark.group(1) == "=" else 2), line.text.strip(), position + 2
    return None


def _paragraph_end(lines: list[_Line], position: int) -> int:
    number = position + 1
    while number < len(lines):
        line = lines[number]
        if line.blank or _FENCE.match(line.text) or _HEADING.match(line.text):
            break
        number += 1
    return number


def _paragraph(text: str, lines: list[_Line], place: _Place) -> Iterator[Unit]:
    if all(_INDENTED.match(line.text) and not _ITEM.match(line.text) for line in lines) or _looks_like_code(lines):
        yield from _code(text, lines, place)
        return
    first = 0
    for number, line in enumerate(lines):
        if number > first and (_ITEM.match(line.text) or _ROW.match(line.text) or _ROW.match(lines[first].text)):
            yield from _piece(text, lines[first:number], place)
            first = number
    yield from _piece(text, lines[first:], place)


def _looks_like_code(lines: list[_Line]) -> bool:
    alike = sum(bool(_CODE_LINE.match(line.text)) and not _ITEM.match(line.text) for line in lines)
    return alike * 5 >= len(lines) * 3


def _piece(text: str, lines: list[_Line], place: _Place) -> Iterator[Unit]:
    start, end = lines[0].start, lines[-1].end
    if _ROW.match(lines[0].text):
        if not _RULE.match(lines[0].text):
            yield from _cut(text, start, end, "row", place)
        return
    marker = _ITEM.match(lines[0].text)
    if marker:
        start += marker.end()
        if end - start <= _ITEM_WHOLE:
            yield from _cut(text, start, end, "item", place)
            return
    if _RULE.match(text[start:end]):
        return
    for first, last in _sentences(text, start, end):
        yield from _cut(text, first, last, "item" if marker else "sentence", place)


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    quoted = [match.span() for match in _INLINE_CODE.finditer(text, start, end)]
    begin = start
    span = 0
    for match in _SENTENCE_END.finditer(text, start, end):
        while span < len(quoted) and quoted[span][1] <= match.start():
            span += 1
        if span < len(quoted) and quoted[span][0] < match.start():
            continue
        follows = text[match.end() : match.end() + 40].lstrip()[:1]
        if follows.islower() or _ABBREVIATION.search(text[max(begin, match.start() - 12) : match.start() + 1]):
            continue
        yield begin, match.end()
        begin = match.end()
    if begin < end:
        yield begin, end


def _code(text: str, lines: list[_Line], place: _Place) -> Iterator[Unit]:
    """Yield a block of code, cut at line ends, if possible at blank lines, when it is long."""
    first = 0
    while first < len(lines):
        last = first
        size = 0
        gap = first
        while last < len(lines) and (size + len(lines[last].text) + 1 <= LONGEST or last == first):
            size += len(lines[last].text) + 1
            last += 1
            if last < len(lines) and lines[last].blank:
                gap = last
        if last < len(lines) and gap > first:
            last = gap
        start, end = lines[first].start, lines[last - 1].end
        if text[start:end].strip():
            yield from _cut(text, start, end, "code", place)
        first = last


def _cut(text: str, start: int, end: int, kind: Kind, place: _Place) -> Iterator[Unit]:
    while start < end:
        while start < end and text[start].isspace() and (kind != "code" or text[start] == "\n"):
            start += 1
        stop = end
        if stop - start > LONGEST:
            space = max(text.rfind(" ", start + 1, start + LONGEST), text.rfind("\n", start + 1, start + LONGEST))
            stop = space if space > start else start + LONGEST
        last = stop
        while last > start and text[last - 1].isspace():
            last -= 1
        if last > start:
            yield Unit(start, last, kind, place.heading, place.block)
        start = stop
