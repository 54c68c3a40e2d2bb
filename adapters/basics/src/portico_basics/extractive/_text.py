"""Passages as units to quote, and text as it is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, takewhile
from typing import Literal, NamedTuple, TypeAlias

from portico_basics.extractive._words import stop_words

LONGEST = 700
"""Characters of one unit at most; a longer one is cut where a word or a line ends."""

_ITEM_WHOLE = 300
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_UNDERLINE = re.compile(r"\s*([=\-~^\"'`#*+])\1{2,}\s*$")
_ITEM = re.compile(r"\s*(?:(?:[-*+•]|\d{1,3}[.)]|\(?[a-zA-Z][.)])\s+(?=\S)|(?=:[A-Za-z][^:\n`]{1,60}:\s+\S))")
_ROW = re.compile(r"\s*[|│]")
_CELLS = re.compile(r"(?<=\S) \| ?(?=\S)")
_RULE = re.compile(r"[\s|:+=\-]*$")
_INDENTED = re.compile(r" {4,}\S|\t+\S")
_CODE_LINE = re.compile(
    r"""\s*+(?:
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
_DIRECTIVE = re.compile(r"\s*\.\. +(?:([\w:+-]+)::\s*(.*)|.*)$")
_OBJECT = re.compile(
    r"\w+:\w+|data|function|class|method|attribute|exception|module|option|envvar|confval|describe|term"
)
_LITERAL = re.compile(r"code|code-block|sourcecode|parsed-literal|prompt|doctest|testcode|testoutput|math|graphviz")
_UNSEEN = re.compile(
    r"version(?:added|changed|removed)|deprecated|image|figure|index|toctree|contents|include|currentmodule|module"
)
_NO_TEXT = re.compile(r"\s*(?::{3,}.*|%\s.*|:[\w-]+:(?:\s.*)?|\.{4,}|\[\^?\w+\]:.*)$")
_INLINE_TERM = re.compile(
    r"\s*((?:-{1,2}\w[\w-]*|[a-z][\w.-]+|[A-Z][A-Z\d_]+)(?:[ =]?[<\[(][^>\])]*[>\])])*)\s+"
    r"(?=(?:If|The|An?|When|This|Each|Any|Like|Same|Set|Specif|Return|Print|Enable|Display|Show|Use)\w*\s+[a-z])"
)
_LEAD = re.compile(
    r"(\*\*[^*\n]{1,60}\*\*|`{1,2}[^`\n]{1,60}`{1,2}|[\"“][^\"”\n]{1,60}[\"”]|--?\w[\w=<>-]*|:[A-Za-z][^:\n`]{1,60}(?=:))\s*(?:[:.—–]|-(?=\s))\s+(?=\S)"
)
_TERM = re.compile(r"-.*[^.,;:!?{}]|[^#<>=.,;:!?{}*=][^,;=*{}]*[^.,;:!?{}=*]|\w")
_SIGNATURE = re.compile(r"\s*+(?:[\w\[\], ]+ = )?[\w.:]+ ?\((?:[^()]|\([^()]*\))*\)\s*$")
_NUMBERED = re.compile(r"(?:[A-Z]\.)?\d+(?:\.\d+)+\.?(?:\s+\w|$)")
_GOES_ON = re.compile(r"[.,;:!?…]$|\s(?:an?|the|of|and|or|by|its)$")
"""The end of a line that is no title: the sentence goes on, or is whole."""
_LONGEST_TERM = 100
_PARAGRAPHS_OF_TERM = 3


Kind: TypeAlias = Literal["sentence", "item", "row", "code"]


@dataclass(frozen=True, slots=True)
class Unit:
    """One quotable part: ``text[start:end]`` under ``heading``; ``block`` counts paragraphs, lists and tables.

    ``term`` is where the term stands that it explains, in a glossary or a list of options. Of a row it is the header.
    ``first`` marks what follows the term directly.
    """

    start: int
    end: int
    kind: Kind
    heading: str
    block: int
    term: tuple[int, int] | None = None
    first: bool = False


class _Line(NamedTuple):
    start: int
    end: int
    text: str


_Span: TypeAlias = tuple[int, int, Kind]
"""Where a unit starts and ends, and its kind."""


def split(text: str) -> list[Unit]:
    """Return the units of ``text`` in order. Headings and terms are no units but the context of units.

    A unit is a pair of offsets, so that a quote is an exact part of its source. The text is read line by line, as
    Markdown, reStructuredText or plain text. Any text has units.
    """
    lines = _lines(text)
    units: list[Unit] = []
    headings: list[tuple[int, str]] = []
    terms = _Terms()
    literal = -1  # the indentation above a literal block
    position = 0
    block = 0
    while position < len(lines):
        line = lines[position]
        if not line.text.strip():
            position += 1
            continue
        block += 1
        spans: Iterator[_Span] = iter(())
        indent = _indent(line.text)
        if indent <= literal:
            literal = -1
        if fence := _FENCE.match(line.text):
            stop = _fence_end(lines, position, fence.group(1))
            spans = _code(text, lines[position:stop])
        elif literal >= 0:
            stop = _paragraph_end(lines, position)
            spans = _code(text, lines[position:stop])
        elif found := _heading(lines, position):
            level, title, stop = found
            headings = [pair for pair in headings if pair[0] < level] + [(level, title)]
            terms.end()
        else:
            stop = _paragraph_end(lines, position)
            paragraph = terms.read(lines, position, stop)
            if terms.literal or (paragraph and paragraph[-1].text.rstrip().endswith("::")):
                literal = indent
            spans = _paragraph(text, paragraph, explaining=terms.deeper)
        above = " ".join(title for _, title in headings)
        made = list(_with_leads(text, (Unit(*span, above, block, terms.term) for span in spans)))
        ruled = position + 1 < len(lines) and _RULE.match(lines[position + 1].text)
        if made and made[0].kind == "row" and (units or ruled):  # A passage may begin inside a table.
            header = (made[0].start, made[0].end)
            made[1:] = [replace(unit, term=header) if unit.kind == "row" else unit for unit in made[1:]]
        elif made and terms.term and not terms.explained:
            made[0] = replace(made[0], first=True)
            terms.explained = True
        units += made
        position = stop
    return units


def _with_leads(text: str, units: Iterable[Unit]) -> Iterator[Unit]:
    """Yield the units; what an item begins with is the term of its sentences."""
    term: tuple[int, int] | None = None
    for unit in units:
        if unit.kind != "item":
            term = None
        elif lead := _LEAD.match(text, unit.start, unit.end):
            term = lead.span(1)
            unit = replace(unit, start=lead.end(), first=True)  # noqa: PLW2901 - the rest is the unit
        elif (
            not text[max(0, unit.start - 2) : unit.start].strip(" \n")
            and term
            and text[term[0] : unit.start].count("\n\n")
        ):
            term = None
        yield replace(unit, term=term) if term else unit


class _Terms:
    """The term that the following paragraphs explain."""

    def __init__(self) -> None:
        self.term: tuple[int, int] | None = None
        self.explained = self.literal = False
        self._indent = self._paragraphs = 0
        self._deeper = False

    @property
    def deeper(self) -> bool:
        """Whether the paragraph is indented below the term."""
        return self.term is not None and self._deeper

    def end(self) -> None:
        """Leave the term."""
        self.term = None

    def read(self, lines: list[_Line], position: int, stop: int) -> list[_Line]:
        """Find the term of a paragraph; return the lines that are text."""
        paragraph = lines[position:stop]
        indent = _indent(paragraph[0].text)
        self.literal = False
        self._paragraphs += 1
        if (self._paragraphs > _PARAGRAPHS_OF_TERM and not self._deeper) or (self._deeper and indent <= self._indent):
            self.end()
        if directive := _DIRECTIVE.match(paragraph[0].text):
            name, argument = directive.group(1) or "", directive.group(2) or ""
            if _OBJECT.fullmatch(name) and argument:
                self._begin(paragraph[0], directive.start(2), indent, deeper=True)
            elif _LITERAL.fullmatch(name):
                self.literal = True
                return []
            elif not name or _UNSEEN.fullmatch(name):
                return []
            paragraph = paragraph[1:]
        else:
            after = next((line.text for line in lines[stop : stop + 2] if line.text.strip()), "")
            signatures = list(takewhile(lambda line: _SIGNATURE.match(line.text), paragraph))
            if signatures and re.match(
                r"\s*[A-Z][a-z]+ ", "".join(one.text for one in paragraph[len(signatures) :][:1])
            ):
                self._begin(signatures[0], indent, indent, deeper=False)
                self.term = (signatures[0].start + indent, signatures[-1].end)
                paragraph = paragraph[len(signatures) :]
            for _ in range(2):  # A title may stand above the first term.
                if not paragraph or not (start := self._find(paragraph, after, indent)):
                    break
                inline = paragraph[0]._replace(start=paragraph[0].start + start, text=paragraph[0].text[start:])
                paragraph = [inline, *paragraph[1:]] if inline.text.strip() else paragraph[1:]
        return [line for line in paragraph if not _NO_TEXT.match(line.text)]

    def _find(self, paragraph: list[_Line], after: str, indent: int) -> int:
        """Begin a term that the first line has; return how many characters of the line belong to it."""
        first = paragraph[0].text.rstrip()
        short = first.strip()
        if _ITEM.match(first) or _ROW.match(first) or _CELLS.search(first) or len(short) > LONGEST:
            return 0
        if len(short) <= _LONGEST_TERM and _TERM.fullmatch(short):
            rest = [line.text.rstrip() for line in paragraph[1:]] or ([after] if _indent(after) > indent else [])
            deeper = bool(rest) and _indent(rest[0]) > indent
            if rest and (deeper or not _GOES_ON.search(short)) and not _looks_like_code(paragraph):
                word = rest[0].split()[0]
                room = max(map(len, rest))
                begins = word.lstrip("“\"'`(*").isidentifier() and word.lstrip("“\"'`(*")[:1].isupper()
                if (deeper and len(short) <= 70) or (begins and (len(first) + len(word) + 1) * 5 < room * 4):
                    self._begin(paragraph[0], indent, indent, deeper=deeper)
                    if _NUMBERED.match(short) or (short.isdigit() and not deeper):  # a title or number of a page
                        self.end()
                    return len(paragraph[0].text)
        if (match := _INLINE_TERM.match(first)) and match.group(1) not in stop_words("english"):
            self._begin(paragraph[0]._replace(text=match.group(1)), match.start(1), indent, deeper=False)
            return match.end()
        return 0

    def _begin(self, line: _Line, start: int, indent: int, *, deeper: bool) -> None:
        text = line.text.rstrip()
        begin = line.start + start
        self.term = (begin, line.start + len(text) if start < len(text) else begin + len(text))
        self.explained = False
        self._indent, self._deeper, self._paragraphs = indent, deeper, 0


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _lines(text: str) -> list[_Line]:
    lines = text.split("\n")
    starts = accumulate((len(line) + 1 for line in lines), initial=0)
    return [_Line(start, start + len(line), line) for start, line in zip(starts, lines, strict=False)]


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
    for number in range(position + 1, len(lines)):
        line = lines[number].text
        if not line.strip() or _FENCE.match(line) or _HEADING.match(line):
            return number
    return len(lines)


def _paragraph(text: str, lines: list[_Line], *, explaining: bool = False) -> Iterator[_Span]:
    if not lines:
        return
    indented = all(_INDENTED.match(line.text) and not _ITEM.match(line.text) for line in lines)
    if indented and not (explaining or _is_prose(lines)):
        yield from _code(text, lines)
        return
    if any(_CELLS.search(line.text) for line in lines) and not any(_ROW.match(line.text) for line in lines):
        for cells, run in groupby(lines, lambda line: len(_CELLS.findall(line.text))):
            together = list(run)
            row = cells > 0 and len(together) > 1
            for piece in [[line] for line in together] if row else [together]:
                yield from _piece(text, piece, row=row)
        return
    if _looks_like_code(lines):
        yield from _code(text, lines)
        return
    first = 0
    room = max(len(line.text) for line in lines)
    for number, line in enumerate(lines):
        broken = number > first and _is_broken(lines[number - 1].text, line.text, room)
        begins = _ITEM.match(line.text) or _ROW.match(line.text) or _ROW.match(lines[first].text)
        if broken or (begins and number > first):
            yield from _piece(text, lines[first:number])
            first = number
    yield from _piece(text, lines[first:])


def _looks_like_code(lines: list[_Line]) -> bool:
    alike = sum(bool(_CODE_LINE.match(line.text)) and not _ITEM.match(line.text) for line in lines)
    return alike * 5 >= len(lines) * 3


def _is_broken(line: str, after: str, room: int) -> bool:
    """Tell whether a line ends early, so that the next begins something else, as after a title or a command."""
    word = after.strip().partition(" ")[0]
    early = room >= 50 and (len(line) + len(word)) * 5 < room * 3
    return early and word[:1].isupper() and not _GOES_ON.search(line.rstrip())


def _is_prose(lines: list[_Line]) -> bool:
    """Tell whether indented lines are sentences, as in a licence or below an option."""
    joined = " ".join(line.text.strip() for line in lines)
    plain = sum(character.isalnum() or character in " ,.;:'’\"()-`" for character in joined)
    return joined.count(" ") >= 4 and plain >= 0.95 * len(joined) and not _looks_like_code(lines)


def _piece(text: str, lines: list[_Line], *, row: bool = False) -> Iterator[_Span]:
    start, end = lines[0].start, lines[-1].end
    if row or _ROW.match(lines[0].text):
        if not _RULE.match(lines[0].text):
            yield from _cut(text, start, end, "row")
        return
    marker = _ITEM.match(lines[0].text)
    if marker:
        start += marker.end()
        if end - start <= _ITEM_WHOLE:
            yield from _cut(text, start, end, "item")
            return
    if _RULE.match(text[start:end]):
        return
    for first, last in _sentences(text, start, end):
        yield from _cut(text, first, last, "item" if marker else "sentence")


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


def _code(text: str, lines: list[_Line]) -> Iterator[_Span]:
    """Yield a block of code, cut at line ends, if possible at blank lines, when it is long."""
    first = 0
    while first < len(lines):
        last = first
        size = 0
        gap = first
        while last < len(lines) and (size + len(lines[last].text) + 1 <= LONGEST or last == first):
            size += len(lines[last].text) + 1
            last += 1
            if last < len(lines) and not lines[last].text.strip():
                gap = last
        if last < len(lines) and gap > first:
            last = gap
        start, end = lines[first].start, lines[last - 1].end
        if text[start:end].strip():
            yield from _cut(text, start, end, "code")
        first = last


def _cut(text: str, start: int, end: int, kind: Kind) -> Iterator[_Span]:
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
            yield start, last, kind
        start = stop


_ROLE = re.compile(r"(?::[\w:+-]+:|\{[\w:+-]+\})`[~!]?([^`<]*?)(?:\s*<[^`]*>)?`")
_REFERENCE = re.compile(r"`([^`<\n]+?)\s*<[^`>]*>`__?|(?<![\w`])`([^`\n]+)`__?(?!\w)|\b(\w[\w-]*)_(?=[\s.,;:)]|$)")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()\s]*(?:\s[^()]*)?\)|\[[^\[\]]*\])")
_DOUBLE = re.compile(r"(?<!`)``([^`]+)``(?!`)")
_EMPHASIS = re.compile(r"(?<![\w*\\`])(\*{1,2})(?=[^\s*])([^*\n]*[^\s*])\1(?![\w*])")


def as_read(text: str) -> str:
    """Return text as a reader sees it: without the marks of roles, references, links and emphasis.

    >>> as_read("Call :func:`~json.dumps`, see `the *list* <https://example.org>`_ or [this](a.md), and set ``x``.")
    'Call `json.dumps`, see the list or this, and set `x`.'
    """
    if "`" in text:
        text = _ROLE.sub(r"`\1`", text)
        text = _REFERENCE.sub(lambda match: match.group(1) or match.group(2) or match.group(3), text)
        text = _DOUBLE.sub(r"`\1`", text)
    if "](" in text or "][" in text:
        text = _LINK.sub(r"\1", text)
    return _EMPHASIS.sub(r"\2", text) if "*" in text else text
