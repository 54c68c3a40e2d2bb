"""Citations: sources with numbers, the citations of an answer, and quotations that no source has."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from portico._chat.messages import Citation, Source
from portico._search.results import TextSearchResult

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

LinkInText = tuple[int, str]
"""The place of a link in a text, and its address as written."""

# A fence that is not closed runs to the end, as in CommonMark; a code span stays within some lines.
_CODE = re.compile(
    r"(?:^|\n)[ \t]{0,3}(?P<fence>`{3,100}(?!`)|~{3,100}(?!~))[^`\n]*\n.*?(?:\n[ \t]{0,3}(?P=fence)|\Z)"
    r"|(?P<run>(?<!`)`+)(?!`)(?=[^`])(?:(?!\n\s*\n).){1,2000}?(?<!`)(?P=run)(?!`)"
    r"|```.*",
    re.DOTALL,
)
_IMAGE = re.compile(r"!\[[^\[\]\n]{0,500}\]\([^()\s]{0,4000}(?:[ \t][^()\n]{0,500})?\)")
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{1,20}://"
# Characters of an address in running text. Brackets and marks of Chinese and Japanese end it too.
_INSIDE = r"[^\s<>\"`{}|\\^\u3000-\u3003\u3008-\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\u2018-\u201f\u2026]"
_ADDRESS = r"[^\s()<>]{1,4000}(?:\([^\s()<>]{0,4000}\)[^\s()<>]{0,4000}){0,20}"
_TARGET = re.compile(
    r"\]\(\s{0,4}(?:<(?P<angled>[^<>\n]{1,4000})>|(?P<plain>" + _ADDRESS + "))"
    rf"|<(?P<auto>{_SCHEME}[^\s<>]{{1,4000}})>"
    rf"|(?<![A-Za-z0-9])(?P<bare>{_SCHEME}{_INSIDE}{{1,4000}})"
)
_LABELLED = re.compile(r"\[(?:[^\[\]\n]|\[[^\[\]\n]{0,100}\]){0,500}\]\([^\n)]{0,4000}\)")
SHORTEST_QUOTE = 20
"""Characters; less may stand in an answer by chance."""
_CLOSING = {")": "(", "]": "["}
_DEFAULT_PORTS = {("http", 80), ("https", 443)}


def without_code(text: str) -> str:
    """Return a text with blanks for its code and images, so that places in it stay the same.

    >>> without_code("See `a[1]` [2].")
    'See        [2].'
    """
    return _IMAGE.sub(_blank, _CODE.sub(_blank, text))


def without_links(text: str) -> str:
    """Return a text with blanks for its links and their labels, so that places in it stay the same."""
    text = _LABELLED.sub(_blank, text)
    return _TARGET.sub(lambda match: _blank(match) if match["bare"] or match["auto"] else match[0], text)


def find_links(text: str) -> Iterator[LinkInText]:
    """Yield the addresses in a text with their places: links of Markdown, and bare addresses.

    >>> list(find_links("See [the docs](https://a.example/b) and https://c.example/d."))
    [(15, 'https://a.example/b'), (40, 'https://c.example/d')]

    Links within the document (``#part``) and addresses without ``://`` (``mailto:``) are left out.
    """
    for match in _TARGET.finditer(text):
        link = match["angled"] or match["plain"] or match["auto"]
        if link is None:
            link = _trim(match["bare"])
        if re.match(_SCHEME, link):
            yield match.start(match.lastgroup or 0), link


def place_of(link: str) -> tuple[str, str]:
    """Return the place that a link leads to in one spelling, and its fragment.

    >>> place_of("HTTPS://Example.org:443/a%20b/?utm_source=x#top") == place_of("http://example.org/a b#top")
    True

    Links lead to one place if they differ only in ``http`` and ``https``, the case of the host, a usual port,
    percent-encoding, a slash at the end, and the parameters ``utm_…`` that services add to count readers.
    """
    link = link.strip()
    try:
        parts = urlsplit(link)
        port = parts.port
    except ValueError:
        return unquote(link), ""
    host = (parts.hostname or "").rstrip(".")
    if port is not None and (parts.scheme, port) not in _DEFAULT_PORTS:
        host = f"{host}:{port}"
    kept = [each for each in parts.query.split("&") if each and not each.startswith("utm_")]
    scheme = "http" if parts.scheme == "https" else parts.scheme
    path = unquote(parts.path).rstrip("/")
    return f"{scheme}://{host}{path}?{unquote('&'.join(kept))}", unquote(parts.fragment)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _trim(link: str) -> str:
    """Leave off marks that end the sentence, not the address, as GitHub does."""
    while link:
        last = link[-1]
        if last in ".,;:!?'*_~" or (last in _CLOSING and link.count(last) > link.count(_CLOSING[last])):
            link = link[:-1]
        else:
            break
    return link


_NUMBER = r"\^?\d{1,9}"
_WORD = r"(?:[Ss]ources?|[Pp]assages?|[Dd]oc(?:ument)?s?|[Rr]ef(?:erence)?s?\.?)\s{0,2}[:#]?\s{0,2}"
_MORE = rf"(?:\s{{0,2}}(?:[,;，、；]|[-–—]|and|und|&)\s{{0,2}}(?:{_WORD})?{_NUMBER}){{0,40}}"
# [1]  [1, 2]  [1-3]  [^1]  [Source 1]  【1】  【1†source】  ［1］  (Source 1)
_MARK = re.compile(
    rf"\[(?P<square>(?:{_WORD})?{_NUMBER}{_MORE})\]|[【［](?P<wide>{_NUMBER}{_MORE})(?:†[^】\n]{{0,100}})?[】］]"
    rf"|\((?P<round>{_WORD}{_NUMBER}{_MORE})\)"
)
# What a mark is attached to, and what of it is a name in code: rows_2, $x, rowCount, sys.argv, rows2, x, a call.
_ATTACHED = re.compile(r"[\w.$)\]\\'’=]+\Z")
_NAME = re.compile(r"[_$\\\]=]|[a-z][A-Z]|[a-z]{2}\.[a-z]{2}|^[a-z]+\d+$|^[A-Za-z]?\)?$")
_DEFINITION = re.compile(r"^[ \t]{0,3}\[\^?\d{1,9}\]:(?=\s)", re.MULTILINE)
_LINKED_MARK = re.compile(rf"\[\^?(\d{{1,9}})\](?=\]?\(<?({_ADDRESS})>?(?:[ \t]+[\"'(][^\n)]{{0,500}})?\))")
_ENTRY = re.compile(r"^[ \t]{0,8}(?:[-*+][ \t]{1,3})?\**\[\^?(\d{1,9})\]\**:?[ \t]{0,3}(\S[^\n]*)$", re.MULTILINE)
"""A line of a list of sources, such as models put at the end: [1] Its name, https://its.address/"""
_WIDEST = 20
"""How many sources a range such as [1-3] may name."""


@dataclass(frozen=True, slots=True)
class Citations:
    """How an answer cites its sources.

    ``cited`` are the sources that it cites, by number or by link, in the order of their first mark; a quote is the
    whole passage, since marks do not say which words they rely on. ``unbacked`` are the numbers and the links that
    it gives and no source has, in order. ``uncited`` are the sources that it never cites.
    """

    cited: tuple[Citation, ...] = ()
    unbacked: tuple[int | str, ...] = ()
    uncited: tuple[Source, ...] = ()

    @property
    def grounded(self) -> bool:
        """Whether the answer cites a source, and nothing that no source backs."""
        return bool(self.cited) and not self.unbacked

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is wrong with the citations, in sentences: those that no passage backs, or that there are none."""
        if self.unbacked or self.cited or not self.uncited:
            says = {str: "links to {}, which no passage has.", int: "cites [{}], which no passage backs."}
            return tuple(f"The answer {says[type(each)].format(each)}" for each in self.unbacked)
        passages = f"none of the {len(self.uncited)} passages" if len(self.uncited) > 1 else "nothing of the passage"
        return (f"The answer cites {passages} that {'were' if len(self.uncited) > 1 else 'was'} read.",)

    def renumber(self, text: str) -> tuple[str, tuple[Citation, ...]]:
        """Return the answer and what it cites, with numbers in the order in which the answer cites them.

        >>> answer, sources = "White [3], and high [1-3].", [Source(number, "A passage.") for number in (1, 2, 3)]
        >>> Citations.check(answer, sources).renumber(answer)[0]
        'White [1], and high [2, 3, 1].'

        The numbers stay as they are where one of them has no source, and in quotations and links to anything else.
        """
        order = {number: place for place, number in enumerate(dict.fromkeys(each.number for each in self.cited), 1)}
        if any(isinstance(mark, int) for mark in self.unbacked) or all(map(int.__eq__, order, order.values())):
            return text, self.cited
        for source in self.uncited:
            order.setdefault(source.number, len(order) + 1)
        prose = text
        for citation in (each for each in self.cited if len(each.quote) >= SHORTEST_QUOTE):
            prose = prose.replace(citation.quote, " " * len(citation.quote))
        prose = without_code(prose)
        linked = {(str(each.number), place_of(each.link)[0]) for each in self.cited if each.link}
        marks = [mark for mark in _LINKED_MARK.finditer(prose) if (mark[1], place_of(mark[2])[0]) in linked]
        prose = without_links(prose)
        pieces, end = [], 0
        marks += [*_mark_matches(_DEFINITION.sub(_blank, prose), order), *_DEFINITION.finditer(prose)]
        quoted = [match.span() for match in _QUOTED.finditer(text)]
        for match in sorted(marks, key=re.Match.start):
            inside = any(start < match.start() < end for start, end in quoted)
            if inside and any(match[0] in citation.quote for citation in self.cited):
                continue  # the mark is the source's
            pieces += [text[end : match.start()], _renumber_mark(match[0], order)]
            end = match.end()
        cited = (replace(each, number=order[each.number]) for each in self.cited)
        return "".join([*pieces, text[end:]]), tuple(sorted(cited, key=lambda each: each.number))

    @staticmethod
    def check(text: str, sources: Sequence[Source]) -> Citations:
        """Check an answer's citations against the sources that it was made from.

        >>> sources = Citations.number(
        ...     [
        ...         TextSearchResult("Ports are protocols.", link="https://docs.example/ports"),
        ...         TextSearchResult("Plans are data.", link="https://docs.example/plans"),
        ...     ]
        ... )
        >>> check = Citations.check("Plans [are data](https://docs.example/plans/#intro), says [7].", sources)
        >>> [citation.number for citation in check.cited], check.unbacked, [source.number for source in check.uncited]
        ([2], (7,), [1])

        Read as citations are the marks that models write (`cited_numbers`), links, and bare addresses; in code is none
        of them. `portico._chat.citations.place_of` says which links are one. A link to a place of several sources cites
        them all, unless the part of the place (``#L12``) tells them apart. An address that a source's own words have is
        backed. A line that lists a source, by its number and its name or link, cites nothing: a statement does.
        """
        prose = without_code(text)
        by_number = {source.number: source for source in sources}
        by_place = _group_by_place(sources)
        cited: dict[int, Source] = {}
        unbacked: dict[int | str, None] = {}
        marks: list[tuple[int, int | str]] = [*_find_marks(prose, by_number), *find_links(prose)]
        entries = _find_entries(prose, by_number)

        @cache
        def links_in_sources() -> set[tuple[str, str]]:
            return {place_of(link) for source in sources for _, link in find_links(source.text)}

        for start, mark in sorted(marks, key=lambda found: found[0]):
            line = bisect_right(entries, start, key=lambda entry: entry[0].start) - 1
            if line >= 0 and start in entries[line][0]:
                listed = entries[line][1]
                if mark == listed.number or _is_link_of(listed, mark):
                    continue
            found = _find_sources(mark, by_number, by_place)
            for source in found:
                cited.setdefault(source.number, source)
            if not found and (isinstance(mark, int) or place_of(mark) not in links_in_sources()):
                unbacked[mark] = None
        return Citations(
            tuple(Citation(source.number, source.name, source.link, source.text) for source in cited.values()),
            tuple(unbacked),
            tuple(source for source in sources if source.number not in cited),
        )

    @staticmethod
    def number(results: Iterable[TextSearchResult | Mapping[str, Any]], *, first: int = 1) -> tuple[Source, ...]:
        """Give passages numbers, so that an answer can cite them.

        >>> Citations.number([TextSearchResult("Ports are protocols.", name="Ports")])
        (Source(number=1, text='Ports are protocols.', name='Ports', link=None),)

        ``results`` are passages as a search gives them, or in the JSON form that functions return.
        """
        return tuple(
            Source(number, result.value, result.name, result.link)
            if isinstance(result, TextSearchResult)
            else Source(number, result["value"], result.get("name"), result.get("link"))
            for number, result in enumerate(results, first)
        )

    @staticmethod
    def unfound_quotations(text: str, sources: Sequence[Source], *, words: int = 4) -> tuple[str, ...]:
        """Return what an answer quotes and no source says, in order.

        >>> source = Source(1, "Ports are protocols, and asynchronous.")
        >>> Citations.unfound_quotations("“Ports are … asynchronous”, and “ports are always very fast” [1].", [source])
        ('ports are always very fast',)

        Compared are letters, numbers and their order; case, white space, punctuation, the shape of dashes, and what a
        reader of Markdown or reStructuredText does not see make no difference, and what a quotation leaves out (``…``)
        or adds (``[the port]``) may be anything. A quotation of fewer than ``words`` words is a name or a word that is
        meant otherwise, and passes; in a script without spaces, two characters count as a word.
        """
        said = [_normalize(f"{source.name or ''}\n{source.text}") for source in sources]
        found = dict.fromkeys(quotation for quotation in find_quotations(text) if _count_words(quotation) >= words)
        return tuple(
            quotation for quotation in found if not any(_is_quoted_from(quotation, passage) for passage in said)
        )


def cited_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers that an answer cites, in the order of their first mark.

    >>> cited_numbers("Ports are protocols [2]. They are async [1, 2]; `a[3]` is code.")
    (2, 1)

    Marks are ``[1]``, ``[1, 2]``, ``[1-3]``, ``[^1]``, ``[Source 1]``, ``(Source 1)``, and 【1】 with what services put
    into it; not ``[2024]``, for more than three digits need a source of that number. What is attached to a name
    (``rows_2[1]``) is code; attached to a plain word it is a mark, for many models write ``as protocols[1].`` A mark
    that is a link's label cites by that link.
    """
    return tuple(dict.fromkeys(number for _, number in _find_marks(without_code(text))))


def _find_marks(prose: str, known: Container[int] = ()) -> Iterator[tuple[int, int]]:
    """Yield the numbers of marks with their places, given a text without code."""
    for match in _mark_matches(_DEFINITION.sub(_blank, without_links(prose)), known):
        for number in _parse_numbers(match["square"] or match["wide"] or match["round"]):
            yield match.start(), number


def _mark_matches(prose: str, known: Container[int]) -> Iterator[re.Match[str]]:
    """Yield the marks in a text without code, links and definitions."""
    end_of_last = -1
    for match in _MARK.finditer(prose):
        if prose.startswith("(", match.end()) or prose.startswith("](", match.end()):
            continue
        written = match["square"] or match["wide"] or match["round"]
        if not all(int(number) in known for number in re.findall(r"\d{4,}", written)):
            continue
        if match.start() != end_of_last and _is_code(prose, match):
            continue
        end_of_last = match.end()
        yield match


def _renumber_mark(mark: str, order: Mapping[int, int]) -> str:
    """Return a mark with other numbers; a range becomes a list of its numbers."""
    written, dagger, rest = mark.partition("†")
    every = list(_parse_numbers(written))
    if not every:
        return mark
    if re.search(r"\d\s*[-–—]", written):
        digits = [found.span() for found in re.finditer(r"\d+", written)]
        numbers = ", ".join(str(order.get(number, number)) for number in every)
        return written[: digits[0][0]] + numbers + written[digits[-1][1] :] + dagger + rest
    return re.sub(r"\d+", lambda one: str(order.get(int(one[0]), one[0])), written) + dagger + rest


def _is_code(prose: str, match: re.Match[str]) -> bool:
    """Tell whether a mark is an index, by what it is attached to and by what follows."""
    attached = _ATTACHED.search(prose, max(0, match.start() - 80), match.start())
    if attached is None or match["square"] is None:
        return False
    goes_on = re.match(r"\.[a-z]|=", prose[match.end() : match.end() + 2])
    is_zero = "0" in re.findall(r"\d+", match[0])
    return bool(goes_on or is_zero or _NAME.search(attached[0]))


def _parse_numbers(written: str) -> Iterator[int]:
    """Yield the numbers of a mark, those of a range in between too; none for an interval such as [0, 1]."""
    found = [
        (int(number), separator) for separator, number in re.findall(r"([-–—]?)\s*\^?(\d+)", re.sub(_WORD, "", written))
    ]
    if len(found) > 1 and any(number == 0 for number, _ in found):
        return
    last = 0
    for number, separator in found:
        if separator and last < number <= last + _WIDEST:
            yield from range(last + 1, number)
        yield number
        last = number


def _find_entries(prose: str, by_number: Mapping[int, Source]) -> list[tuple[range, Source]]:
    """Return the lines that list a source, and which."""
    entries = []
    for line in _ENTRY.finditer(prose):
        source = by_number.get(int(line[1]))
        if source is None:
            continue
        # After a name a list continues with a mark or ends, and a statement continues with a word.
        named = source.name and re.match(
            rf"[*_[\"“]*{re.escape(source.name)}(?:\s*[^\w\s]|\s*$)", line[2], re.IGNORECASE
        )
        if named or any(_is_link_of(source, link) for _, link in find_links(line[2])):
            entries.append((range(line.start(), line.end()), source))
    return entries


def _is_link_of(source: Source, mark: int | str) -> bool:
    return isinstance(mark, str) and source.link is not None and place_of(source.link)[0] == place_of(mark)[0]


def _group_by_place(sources: Iterable[Source]) -> Mapping[str, list[tuple[str, Source]]]:
    by_place: dict[str, list[tuple[str, Source]]] = {}
    for source in sources:
        if source.link:
            place, part = place_of(source.link)
            by_place.setdefault(place, []).append((part, source))
    return by_place


def _find_sources(
    mark: int | str, by_number: Mapping[int, Source], by_place: Mapping[str, list[tuple[str, Source]]]
) -> list[Source]:
    """Return the source with a number, or those that a link leads to: of its very part, or of its whole place."""
    if isinstance(mark, int):
        return [by_number[mark]] if mark in by_number else []
    # Scripts that are written without spaces go on after an address.
    for spelling in dict.fromkeys((mark, re.split(r"[^\x00-\x7f]", mark, maxsplit=1)[0])):
        place, part = place_of(spelling)
        if found := by_place.get(place):
            return [source for known, source in found if known == part] or [source for _, source in found]
    return []


_LONGEST = 4_000
_MARKS = (("“", "”"), ("„", "“"), ("„", "”"), ("«", "»"), ("»", "«"), ("「", "」"), ("『", "』"), ('"', '"'))
_QUOTED = re.compile(
    "|".join(
        rf"{opening}(?P<q{n}>[^{opening}{closing}]{{1,{_LONGEST}}}){closing}"
        for n, (opening, closing) in enumerate(_MARKS)
    )
    + r"|(?:^|\n)[ ]{0,3}>[ ]?(?P<block>[^\n]*(?:\n[ ]{0,3}>[^\n]*)*)"
)
_PARAGRAPH = re.compile(r"\n\s*\n")
# What a quotation leaves out or puts in: "…", "[...]", "[the planner]"; and the marks that point to its source.
_GAP = re.compile(r"\[[^\[\]\n]{0,100}\]|【[^【】\n]{0,100}】|\(?(?:\.\.\.|…)\)?")
_EVERY_SCRIPT = str.maketrans({"‘": "'", "’": "'", "‚": "'", "–": "-", "—": "-", "−": "-", "\u00ad": None})
# What a reader of Markdown or reStructuredText does not see: a link's target, the marks of emphasis and code.
_NAMED_LINK = re.compile(r"!?\[(?!\^?\d{1,9}\])([^\[\]\n]{1,500})\](?:\([^()\n]{0,4000}\)|\[[^\[\]\n]{0,100}\])")
_UNSEEN = re.compile(r":[\w:]{1,40}:(?=`)|(?<=`)~|[ \n]?<[^<>\s]{1,4000}>(?=`_)|[`*_]")
_PUNCTUATION = re.compile(r"(?<!\d)[.,:]|[.,:](?!\d)|[;!?\"'()\[\]{}|#]")


def find_quotations(text: str) -> Iterator[str]:
    r"""Yield what an answer quotes: between quotation marks of any language, and as a block quote of Markdown.

    >>> list(find_quotations("It says “ports are protocols” and\n\n> Plans are\n> data.\n"))
    ['ports are protocols', 'Plans are data.']

    In code is no quotation, but in a quotation may be code.
    """
    prose = without_code(text)
    bounds = [0, *(place for blank in _PARAGRAPH.finditer(prose) for place in blank.span()), len(prose)]
    for start, end in zip(bounds[::2], bounds[1::2], strict=True):
        for match in _QUOTED.finditer(prose[start:end]):
            first, last = match.span(match.lastgroup or 0)
            quoted = text[start + first : start + last]
            yield " ".join(re.sub(r"\n[ ]{0,3}>", "\n", quoted).split())


def _count_words(quotation: str) -> int:
    wide = (sum(unicodedata.east_asian_width(letter) in "WF" for letter in word) for word in quotation.split())
    return sum(max(1, count // 2) for count in wide)


def _is_quoted_from(quotation: str, passage: str) -> bool:
    """Tell whether the pieces of a quotation stand in a passage one after another."""
    place = 0
    for piece in _GAP.split(_NAMED_LINK.sub(r"\1", quotation)):
        wanted = _normalize(piece).strip(" -")
        place = passage.find(wanted, place)
        if place < 0:
            return False
        place += len(wanted)
    return True


def _normalize(text: str) -> str:
    seen = _UNSEEN.sub("", _NAMED_LINK.sub(r"\1", text))
    words = unicodedata.normalize("NFKC", seen).translate(_EVERY_SCRIPT).casefold()
    return " ".join(_PUNCTUATION.sub(" ", words).split())
