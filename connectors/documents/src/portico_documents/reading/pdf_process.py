"""Read one PDF. This runs as a process, which the system stops when a file takes too much time or memory.

The file comes on standard input. Each section goes to standard output as a line of JSON: its text, page and headings.
The last line is an object: empty, or with the reason why the file cannot be read.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from pypdfium2 import PdfDocument, PdfiumError
from pypdfium2.raw import FPDF_ERR_PASSWORD

Found: TypeAlias = tuple[str, int, tuple[str, ...]]
"""Text, page (from 1), headings."""
Mark: TypeAlias = tuple[int, str]
"""A bookmark: its level, from 0, and its title."""

_MEMORY = 300_000_000
_MOST_BOOKMARKS = 20_000
_DEEPEST = 8
_RECURS = 3
_LONGEST_END = 6
"""Lines in which a sentence that a page breaks off must end."""
_NO_TITLE = re.compile(r"(?i)untitled|microsoft word|powerpoint|\.(?:docx?|pptx?|xlsx?|indd|qxd|tex|dvi|pdf|rtf|odt)\b")
_SURROGATES_AND_CONTROLS = re.compile(r"[\ud800-\udfff\x00-\x08\x0e-\x1f\x7f\ufffe]")
_HYPHENATED = re.compile(r"[\x02\ufffe](?:\r?\n)?(?=\w)")
_LEADERS = re.compile(r"(?:\.[ \xa0]?){4,}\s*[\divxlc]+\s*$|(?:…\s*){2,}\d+\s*$")
_OUTER_NUMBER = re.compile(r"^\W*\d{1,5}(?=\W*$|\s)|(?<=\s)\d{1,5}$|(?<=page )\d{1,5}", re.IGNORECASE)
_ROMAN = re.compile(r"\W*[ivxlc]{1,7}\W*")
_NUMBERING = re.compile(r"(?i)(?:(?:chapter|section|part)\s+)?(?:\d+(?:\.\d+)*|[a-z](?:\.\d+)*|[ivxlc]+)[.):]?\s+")
_SENTENCE = re.compile(r"[.!?][)\"'’”]*(?=\s+[A-Z]|\s*$)")
_END = re.compile(r"[.!?:][)\"'’”]*$")


def main(megabytes: float, pages: int, characters: int) -> None:
    """Read standard input and print its sections: of so many pages, as long as they have so many characters."""
    _limit(megabytes)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        for section in read(sys.stdin.buffer.read(), pages, characters):
            out.write(json.dumps(section) + "\n")
        end = {}
    except PdfiumError as error:
        locked = error.err_code == FPDF_ERR_PASSWORD
        end = {"reason": "encrypted"} if locked else {"reason": "damaged", "detail": str(error)}
    except OverflowError as error:
        end = {"reason": "too large", "detail": str(error)}
    except MemoryError:
        end = {"reason": "too large", "detail": "more memory than a file may take"}
    out.write(json.dumps(end) + "\n")
    out.flush()


def _limit(megabytes: float) -> None:
    try:
        import resource
    except ImportError:  # not on this system; the caller limits the time
        return
    memory = _MEMORY + int(3_000_000 * megabytes)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seconds = 10 + int(2 * megabytes)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))


def read(data: bytes, most_pages: int, most_characters: int) -> Iterator[Found]:
    """Yield the sections of a document, page by page, each under the bookmarks that lead to it.

    A page that cannot be read is left out, as long as another can. Running heads, page numbers and tables of contents
    are left out. Raises ``PdfiumError``, ``OverflowError``.
    """
    document = PdfDocument(data)
    texts: dict[int, list[str]] = {}
    failure: PdfiumError | None = None
    characters = 0
    for number in range(len(document)):
        try:
            text = _text(document, number)
        except PdfiumError as error:
            failure = error
            continue
        characters += len(text)
        if characters > most_characters:
            raise OverflowError(f"more than {most_characters} characters")
        if text and not text.isspace():
            texts[number] = text.split("\n")
            if len(texts) == most_pages:
                break
    if not texts and failure is not None:
        raise failure
    title = _clean(document.get_metadata_value("Title") or "")[:200]
    top = (title,) if len(title) > 2 and not _NO_TITLE.search(title) else ()
    yield from sections(texts, _bookmarks(document), top)


def sections(texts: dict[int, list[str]], marks: dict[int, list[Mark]], top: tuple[str, ...]) -> Iterator[Found]:
    """Cut the lines of pages, numbered from 0, at the bookmarks of each page."""
    pages = _without_running_heads({number: _without_contents(lines) for number, lines in texts.items()})
    _complete_sentences(list(pages.values()))
    path: list[Mark] = []
    for number, lines in pages.items():
        rest = lines
        for mark in marks.get(number, ()):
            place = next((at for at, line in enumerate(rest) if _is_heading(line, mark[1])), -1)
            if place > 0:
                yield from _section(rest[:place], number, top, path)
            rest = rest[place + 1 :]
            path = [*(each for each in path if each[0] < mark[0]), mark]
        yield from _section(rest, number, top, path)


def _without_contents(lines: list[str]) -> list[str]:
    """Leave out the lines of a table of contents, and a page that consists of them."""
    kept = [line for line in lines if not _LEADERS.search(line)]
    return kept if len(kept) >= len(lines) / 2 else []


def _complete_sentences(pages: Sequence[list[str]]) -> None:
    """Move the end of a sentence that a page breaks off to the page on which it begins."""
    for before, page in pairwise(pages):
        if not (before and page and page[0][:1].islower()) or _END.search(before[-1].rstrip()):
            continue
        for count, line in enumerate(page[:_LONGEST_END]):
            if end := _SENTENCE.search(line):
                before += [*page[:count], line[: end.end()]]
                page[: count + 1] = [rest] if (rest := line[end.end() :].lstrip()) else []
                break


def _section(lines: Sequence[str], number: int, top: tuple[str, ...], path: Sequence[Mark]) -> Iterator[Found]:
    text = _paragraphs(lines)
    if text and not text.isspace():
        titles = (title for _, title in path)
        yield text, number + 1, (*top, *(title for title in titles if title not in top))[:_DEEPEST]


def _paragraphs(lines: Sequence[str]) -> str:
    """Join lines, with a blank line after each that is short and ends a sentence."""
    full = sorted(map(len, lines))[len(lines) * 9 // 10] if lines else 0
    short = full * 0.8 if full > 40 else 0
    return "\n".join(line + "\n" if len(line) < short and _END.search(line) else line for line in lines)


def _text(document: PdfDocument, number: int) -> str:
    page = document[number]
    try:
        text = page.get_textpage()
        try:
            found: str = text.get_text_bounded()
        finally:
            text.close()
    finally:
        page.close()
    found = _SURROGATES_AND_CONTROLS.sub("", _HYPHENATED.sub("", found))
    return found.replace("\r\n", "\n").replace("\r", "\n")


def _bookmarks(document: PdfDocument) -> dict[int, list[Mark]]:
    marks: dict[int, list[Mark]] = {}
    try:
        for count, bookmark in enumerate(document.get_toc(max_depth=_DEEPEST)):
            if count == _MOST_BOOKMARKS:
                break
            place: Any = bookmark.get_dest()
            page = place.get_index() if place else None
            title = _clean(bookmark.get_title())[:200]
            if page is not None and title:
                marks.setdefault(page, []).append((bookmark.level, title))
    except PdfiumError:
        return {}
    return marks


def _clean(text: str) -> str:
    return " ".join(_SURROGATES_AND_CONTROLS.sub("", text).split())


def _is_heading(line: str, title: str) -> bool:
    """Tell whether a line is the heading that a bookmark names; either may have a number before it."""
    if len(line) > len(title) + 40:
        return False
    line, title = _clean(line).casefold(), title.casefold()
    return line == title or _NUMBERING.sub("", line, count=1) == _NUMBERING.sub("", title, count=1)


def _edges(lines: Sequence[str]) -> set[int]:
    """Return the places of the first two and the last two lines of a page that are not empty."""
    places = [place for place, line in enumerate(lines) if line and not line.isspace()]
    return {*places[:2], *places[-2:]}


def _without_running_heads(texts: dict[int, list[str]]) -> dict[int, list[str]]:
    """Leave out lines at the edge of a page that carry its number, or recur: of these, the first stays.

    A page of nothing else stays as it is.
    """
    edges = [(number, place, texts[number][place]) for number in texts for place in _edges(texts[number])]
    lines = Counter(line for line, _ in {(_clean(line), number) for number, _, line in edges})
    offsets = Counter(offset for number, _, line in edges for offset in _offsets(line, number))
    offset, times = max(offsets.items(), key=lambda each: each[1], default=(0, 0))
    out: dict[int, set[int]] = {}
    seen: set[str] = set()
    for number, place, line in sorted(edges):
        numbered = times >= _RECURS and offset in _offsets(line, number)
        if numbered or (lines[_clean(line)] >= _RECURS and _clean(line) in seen) or _ROMAN.fullmatch(line[:20]):
            out.setdefault(number, set()).add(place)
        seen.add(_clean(line))
    pages = {}
    for number, every in texts.items():
        kept = [line for place, line in enumerate(every) if place not in out.get(number, ())]
        pages[number] = kept if any(line and not line.isspace() for line in kept) else every
    return pages


def _offsets(line: str, number: int) -> set[int]:
    """Return by how much the numbers at the ends of a line differ from that of the page."""
    return {int("".join(filter(str.isdecimal, found))) - number for found in _OUTER_NUMBER.findall(_clean(line[:300]))}
