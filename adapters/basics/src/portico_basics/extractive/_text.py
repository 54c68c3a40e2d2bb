"""Passages as units to quote, and words in the form in which they are compared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import snowballstemmer

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


class _Line(NamedTuple):
    start: int
    end: int
    text: str


_Span: TypeAlias = tuple[int, int, Kind]
"""Where a unit starts and ends, and its kind."""


def split(text: str) -> list[Unit]:
    """Return the units of ``text`` in order. Headings are no units but the context of units.

    A unit is a pair of offsets, so that a quote is an exact part of its source. The text is read line by line, as
    Markdown, reStructuredText or plain text. Any text has units.
    """
    lines = _lines(text)
    units: list[Unit] = []
    headings: list[tuple[int, str]] = []
    position = 0
    block = 0
    while position < len(lines):
        line = lines[position]
        if not line.text.strip():
            position += 1
            continue
        block += 1
        spans: Iterator[_Span] = iter(())
        if fence := _FENCE.match(line.text):
            stop = _fence_end(lines, position, fence.group(1))
            spans = _code(text, lines[position:stop])
        elif found := _heading(lines, position):
            level, title, stop = found
            headings = [pair for pair in headings if pair[0] < level] + [(level, title)]
        else:
            stop = _paragraph_end(lines, position)
            spans = _paragraph(text, lines[position:stop])
        above = " ".join(title for _, title in headings)
        units += (Unit(start, end, kind, above, block) for start, end, kind in spans)
        position = stop
    return units


def _lines(text: str) -> list[_Line]:
    lines = []
    start = 0
    for line in text.split("\n"):
        lines.append(_Line(start, start + len(line), line))
        start += len(line) + 1
    return lines


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


def _paragraph(text: str, lines: list[_Line]) -> Iterator[_Span]:
    if all(_INDENTED.match(line.text) and not _ITEM.match(line.text) for line in lines) or _looks_like_code(lines):
        yield from _code(text, lines)
        return
    first = 0
    for number, line in enumerate(lines):
        if number > first and (_ITEM.match(line.text) or _ROW.match(line.text) or _ROW.match(lines[first].text)):
            yield from _piece(text, lines[first:number])
            first = number
    yield from _piece(text, lines[first:])


def _looks_like_code(lines: list[_Line]) -> bool:
    alike = sum(bool(_CODE_LINE.match(line.text)) and not _ITEM.match(line.text) for line in lines)
    return alike * 5 >= len(lines) * 3


def _piece(text: str, lines: list[_Line]) -> Iterator[_Span]:
    start, end = lines[0].start, lines[-1].end
    if _ROW.match(lines[0].text):
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


STOP_WORDS = {
    "english": """
        a about actually all also always am an and any anything are as at be because been being between both but
        by can cannot could did do does doing done each either else ever every exactly few for from get gets
        give given had happen happens has have having he her here hers him his how i if in into is it its just
        kind let like made make makes many may me mean means might mine more most much must my need needed needs
        no not of off on once one only or other our out over own per please possible quite really same say shall
        she should so some something sort such take takes tell than that the their them then there these they
        thing things this those to too up upon us use used using very was way we were what whatever when where
        which while who whom whose why will with within without would you your yours what's it's i'm how's don't
        doesn't can't explain describe
    """,
    "german": """
        aber alle allem allen aller alles als also am an auch auf aus bei bin bis bitte da damit dann das dass
        dem den denn der des die dies diese diesem diesen dieser dieses doch du durch ein eine einem einen einer
        eines er es etwas für gibt haben hat hier ich ihr im in ist ja kann können man mehr mein mich mir mit
        muss müssen nach nicht noch nur ob oder ohne sein sich sie sind so soll über um und uns unter viel viele
        vom von vor wann war warum was wegen weil welche welchem welchen welcher welches wenn wer werden weshalb
        wie wieso wird wo wohin woher wozu wurde zu zum zur
    """,
    "french": """
        à au aux avec ce ces cet cette combien comme comment dans de des du elle elles en est et être faire fait
        il ils je la le les leur lui ma mais me même mes moi mon ne nos notre nous on ont où ou par pas plus
        pour pourquoi quand que quel quelle quelles quels qui quoi sa sans se ses si son sont sur ta te tes toi
        ton tu un une vos votre vous y a l'on qu'est c'est d'un d'une
    """,
    "spanish": """
        a al algo como cómo con cual cuál cuáles cuando cuándo cuanto cuánto cuántos cuántas de del desde donde
        dónde el él ella ellos en entre es esa ese eso esta está este esto estos hay la las le les lo los más me
        mi muy no nos o para pero por porque qué que quien quién quiénes se ser si sin sobre son su sus también
        tiene tu un una uno unos y ya puedo puede
    """,
    "italian": """
        a ai al alla anche che chi ci come con cosa da dal dalla de del della delle di dove e è ed essere gli ha
        ho i il in io la le lo loro ma mi nel nella no non o per perché più posso può qual quale quali quando
        quanti quanto quante questa questo se si sono su sua suo sul sulla ti tra tu un una uno
    """,
    "dutch": """
        aan al als bij dan dat de deze die dit doe door een en er had hebben heeft het hij hoe hoeveel ik in is
        je kan kunnen maar me meer met mijn moet na naar niet nog nu of om onder ons ook op over te tot uit van
        veel voor waar waarom wanneer was wat we welke wie wij word worden wordt zal ze zich zijn zo zou
    """,
    "portuguese": """
        a ao aos as até com como da das de do dos e é ela ele em entre é esta está este eu foi há isso isto já
        mais mas me meu muito na não nas no nos o onde os ou para pela pelo por porque posso pode qual quais
        quando quanto quantos quantas que quê quem se sem ser seu sua são também tem um uma
    """,
}
"""Words without a topic, by Snowball's name of the language."""

IRREGULAR_ENGLISH = """
began begun begin
bought buy
broke broken break
brought bring
built build
caught catch
children child
chose chosen choice choose
data datum
drew drawn draw
failure fail
fell fallen fall
felt feel
forgot forgotten forget
found find
gone went go
grew grown growth grow
held hold
hidden hide
indices index
kept keep
knew known knowledge know
led lead
left leave
lost loss lose
made make
men man
met meet
paid payment pay
people person
ran run
said say
saw seen see
sent send
shown show
sold sell
spent spend
spoke spoken speak
stood stand
taught teach
thought think
threw thrown throw
told tell
took taken take
understood understand
women woman
won win
wrote written write
"""
"""One group a line: the forms, then their base."""


_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?", re.UNICODE)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


class Words:
    """Makes the terms of a text in one language. Stemmers have state: use one object for one call.

    A term is a Snowball stem. Irregular English forms become their base first, names such as
    ``get_text_search_results`` and ``SearchConnector`` are split, and scripts without spaces between words become pairs
    of characters.
    """

    def __init__(self, language: str) -> None:
        self._stemmer = snowballstemmer.stemmer(language)
        self._stop = _stop_words(language)
        self._irregular = self._bases() if language == "english" else {}
        self._known: dict[str, tuple[str, ...]] = {}

    def terms(self, text: str) -> list[str]:
        """Return the terms of ``text`` in order, without stop words."""
        found: list[str] = []
        for match in _WORD.finditer(text):
            word = match.group()
            terms = self._known.get(word)
            if terms is None:
                terms = self._known[word] = tuple(self._terms_of(word))
            found.extend(terms)
        return found

    def _terms_of(self, word: str) -> list[str]:
        if len(word) > 80:
            return []
        if _UNSPACED.search(word):
            return [pair for run in _UNSPACED.findall(word) for pair in _pairs(run)]
        found = []
        for part in _HUMP.split(word):
            folded = part.casefold().replace("’", "'")
            if folded in self._stop:
                continue
            head, _, tail = folded.partition("'")
            folded = head if len(head) > 2 or not tail else tail
            if tail == "t" and head.endswith("n"):
                continue
            if folded not in self._stop:
                stem = self._stemmer.stemWord(folded)
                found.append(self._irregular.get(folded) or self._irregular.get(stem, stem))
        return found

    def _bases(self) -> dict[str, str]:
        """Return the stem of the base by each irregular form and by its stem."""
        bases = {}
        for group in IRREGULAR_ENGLISH.strip().splitlines():
            *forms, base = group.split()
            stem = self._stemmer.stemWord(base)
            for form in forms:
                bases[form] = bases[self._stemmer.stemWord(form)] = stem
        return bases


def language_of(question: str) -> str:
    """Return the language with the most stop words in the question, English when several have as many."""
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(question[:2_000])]
    best, most = "english", sum(word in _stop_words("english") for word in words)
    for language in STOP_WORDS:
        hits = sum(word in _stop_words(language) for word in words)
        if hits > most:
            best, most = language, hits
    return best


def _stop_words(language: str) -> frozenset[str]:
    return frozenset(STOP_WORDS[language].split())


def _pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[place : place + 2] for place in range(len(run) - 1)]
