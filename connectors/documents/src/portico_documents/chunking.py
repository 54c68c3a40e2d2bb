"""Cutting sections into passages: large enough to say something, small enough to be about one thing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple


class Section(NamedTuple):
    r"""A stretch of text under one heading path, as a reader yields it.

    ``line`` is the line of the file, from 1, on which ``text`` starts; every newline inside ``text`` is a newline
    of the file, so the line of any character follows. In a PDF there are no lines: ``line`` and ``page`` are both
    the page, from 1. ``headings`` goes from the outermost inwards. ``code`` marks literal text, which may be cut
    only between lines. ``continues`` says that the text carries straight on from the section before, under the
    same heading, so that the two may share a passage; that section then ends with a newline.

    >>> Section("Install it:\n\n", line=3, headings=("Guide",)).headings
    ('Guide',)
    """

    text: str
    line: int
    headings: tuple[str, ...] = ()
    page: int | None = None
    code: bool = False
    continues: bool = False


class Passage(NamedTuple):
    """A stretch of text that is indexed, found and quoted as one.

    It starts on ``line`` and ends on ``end_line`` of the file, both counted from 1 and inclusive. In a PDF both
    are the page.

    >>> Passage("Install it.", line=3, end_line=3, headings=("Guide",)).page is None
    True
    """

    text: str
    line: int
    end_line: int
    headings: tuple[str, ...]
    page: int | None = None


_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*+\n)++")
_LEADING_BLANK_LINES = re.compile(r"(?:[^\S\n]*+\n)++")

_ANY_LINE = re.compile(r"\n")
_ANY_SPACE = re.compile(r"\s++")
_SENTENCE = re.compile(r"[.!?…][)\]\"'’”»*_`]*+\s++(?=[^\sa-z])|[。！？]")
_ITEM_LINE = re.compile(r"\n(?=[^\S\n]*+(?:[|*+>-]|\d))")
_ITEM = re.compile(r"\s*+(?:[|*+>-]\s?|\d{1,9}[.)]\s)")
_TOP_LEVEL = re.compile(r"\n(?:[^\S\n]*+\n)++(?=[^\s)}\]])")
# Where to cut what is too long, the best kind of place first.
_PROSE = (_SENTENCE, _ANY_LINE, _ANY_SPACE)
_ITEMS = (_ITEM_LINE, _ANY_LINE, _SENTENCE, _ANY_SPACE)
_CODE = (_TOP_LEVEL, _BLANK_LINES, _ANY_LINE, re.compile(r"[\s;,]"))


def cut(sections: Iterable[Section], *, target: int, maximum: int) -> Iterator[Passage]:
    r"""Yield the passages of a document, in order; ``target`` and ``maximum`` are in characters.

    A passage never spans two headings or two pages. Paragraphs, and stretches of code, stay whole when they fit in
    ``maximum``; neighbours share a passage up to ``target``, and beyond it when one of them would be a scrap alone,
    such as the line that introduces an example. What is longer than ``maximum`` is cut to about ``target``: prose
    after sentences, tables and lists between lines, code at blank lines before what starts at the margin, and
    anything at worst anywhere. Passages do not overlap, and nothing but white space around them is lost.

    Reads the sections as it goes and holds those under one heading. Time is proportional to the text.

    >>> text = "One sentence here. Another one there.\n\nA second paragraph."
    >>> [passage.text for passage in cut([Section(text, 1)], target=20, maximum=30)]
    ['One sentence here.', 'Another one there.', 'A second paragraph.']
    """
    if not 0 < target <= maximum:
        raise ValueError(f"target and maximum must be positive, target the smaller: {target}, {maximum}")
    run: list[Section] = []
    for section in sections:
        if run and not section.continues:
            yield from _passages(run, target, maximum)
            run = []
        run.append(section)
    if run:
        yield from _passages(run, target, maximum)


@dataclass(slots=True)
class _Unit:
    """What is not cut any further: text that does not start with a blank line, or nothing but white space."""

    text: str
    line: int


def _passages(run: list[Section], target: int, maximum: int) -> Iterator[Passage]:
    """Pack the units of one heading into passages."""
    scrap = target // 4
    held: list[_Unit] = []
    held_size = 0
    last: list[_Unit] = []
    last_size = 0
    for unit in _units(run, target, maximum):
        size = len(unit.text.rstrip())
        if not size:
            # Kept inside a passage, so that it is the file's own text; stripped at its ends.
            if last:
                last.append(unit)
                last_size += len(unit.text)
            continue
        together = last_size + size
        if not last or together <= target or (last_size <= scrap and together <= maximum):
            last.append(unit)
        else:
            if held:
                yield _passage(held, run[0])
            introduction = _introduction(last, min(scrap, maximum - size))
            if introduction:
                last_size -= len(introduction[0].text)
            held, held_size = last, last_size
            last, last_size = [*introduction, unit], sum(len(each.text) for each in introduction)
        last_size += len(unit.text)
    if held and last_size <= scrap and held_size + last_size <= maximum:
        held.extend(last)
        last = []
    for units in (held, last):
        if units:
            yield _passage(units, run[0])


def _introduction(units: list[_Unit], longest: int) -> list[_Unit]:
    """Take off the last unit if it only introduces what comes next: `For example:`."""
    if len(units) > 1 and len(units[-1].text) <= longest and units[-1].text.rstrip().endswith(":"):
        return [units.pop()]
    return []


def _passage(units: list[_Unit], section: Section) -> Passage:
    text = "".join(unit.text for unit in units).rstrip() if len(units) > 1 else units[0].text.rstrip()
    if section.page is not None:
        return Passage(text, section.page, section.page, section.headings, section.page)
    final = next(unit for unit in reversed(units) if not unit.text.isspace())
    end_line = final.line + final.text.rstrip().count("\n")
    return Passage(text, units[0].line, end_line, section.headings)


def _units(run: list[Section], target: int, maximum: int) -> Iterator[_Unit]:
    for section in run:
        text = section.text
        line = section.line
        start = 0
        if match := _LEADING_BLANK_LINES.match(text):
            start = match.end()
            yield _Unit(text[:start], line)
            line += text.count("\n", 0, start)
        if section.code or len(text) - start <= target // 2:
            ends = [len(text)]
        else:
            ends = [match.end() for match in _BLANK_LINES.finditer(text, start)]
            if not ends or ends[-1] < len(text):
                ends.append(len(text))
        for end in ends:
            part = text[start:end]
            start = end
            if len(part) > maximum and len(part.rstrip()) > maximum:
                yield from _pieces(part, line, section.code, target, maximum)
            elif part:
                yield _Unit(part, line)
            line += part.count("\n")


def _pieces(text: str, line: int, code: bool, target: int, maximum: int) -> Iterator[_Unit]:
    """Cut what is longer than ``maximum`` into units of about ``target``."""
    kinds = _CODE if code else _ITEMS if _ITEM.match(text) else _PROSE
    length = len(text.rstrip())
    enough = min(target + target // 4, maximum)
    start = 0
    while start < length:
        end = len(text) if length - start <= enough else _boundary(text, start, kinds, target, maximum)
        piece = text[start:end]
        yield _Unit(piece, line)
        line += piece.count("\n")
        start = end


def _boundary(text: str, start: int, kinds: tuple[re.Pattern[str], ...], target: int, maximum: int) -> int:
    """Return where to end the piece that begins at ``start``: for each kind of place, best nearest below ``target``."""
    for kind in kinds:
        end = 0
        for match in kind.finditer(text, start + target // 2, start + target):
            end = match.end()
        if end:
            return end
        if match_after := kind.search(text, start + target, start + maximum):
            return match_after.end()
    return start + target
