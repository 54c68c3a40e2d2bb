"""The ChatService that answers with quotes."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace

from portico import ChatCapabilities, ChatDelta, ChatReply, ChatRequest, Citation, Message, Source
from portico.errors import ConfigurationError, PluginError, ServiceError
from portico.plugins import Services
from portico.ports import EmbeddingGenerator
from portico_basics.config import ExtractiveSettings
from portico_basics.extractive._judging import Candidate, Judged, candidates, judge, with_meaning
from portico_basics.extractive._text import Unit, as_read, split
from portico_basics.extractive._words import Words, language_of, likely_language

MOST_OF_ONE = 20_000
"""Characters read of one source."""
MOST_OF_ALL = 500_000
"""Characters read of all sources together."""
MOST_OF_QUESTION = 2_000
"""Characters read of the question."""
_MOST_EMBEDDED = 120
"""Candidates that the embedding generator compares."""
_MOST_TRIED = 200
"""Candidates that may become a quote."""
_ALIKE = 0.7
"""The share of common terms with which two candidates say the same."""
_FALL = 0.8
"""The share of the best score that a quote must have."""
_NEARLY = 0.9
"""The share of the best score of its passage from which the order of the text counts."""
_WITH_LEAD = 900
"""Characters of a quote with the list or code after its colon, or with the term that it explains."""

_ABROAD = 0.6
"""The relevance that a quote must have when the question is in another language than the sources."""
_SAMPLE, _SAMPLED = 400, 20
"""Characters of a source from which its language is told, and how many sources."""

_ANAPHOR = re.compile(
    r"(?:it|its|they|their|these|those|this|that|such|otherwise|however|therefore|also|in (?:this|that|such) case|then"
    r"|so|but|and|here|the (?:latter|former))\b",
    re.IGNORECASE,
)
_CONTRAST = re.compile(r"(?:however|instead|but|otherwise)\b", re.IGNORECASE)
_FENCED = re.compile(r"((?:^|\n) {0,3}(?:`{3}|~{3}).*)", re.DOTALL)
_FILE_LINE = re.compile(r"(file:[^#]*#L)(\d{1,9})(?:-L?\d+)?")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote: ``text[start:end]`` of a passage.

    ``lines`` is true for code, lists and tables, ``bare_code`` for code without a fence. ``term`` is where the term
    that the quote explains ends, or the header of its row.
    """

    passage: int
    start: int
    end: int
    score: float
    lines: bool = False
    bare_code: bool = False
    term: tuple[int, int] | None = None


def select(
    judged: Sequence[Judged],
    passages: Sequence[Source],
    units: Sequence[Sequence[Unit]],
    *,
    minimum_relevance: float,
    maximum_quotes: int,
    maximum_characters: int,
) -> list[Quote]:
    """Return the quotes, the best first.

    A candidate is quoted if it is relevant, has four fifths of the best score, and is not nearly the same as another
    one. Adjacent sentences become one quote. A quote has what it needs to be understood: the term that it explains, the
    sentence that an "it" refers to, the list that a colon announces.
    """
    relevant = [one for one in judged if one.relevance >= minimum_relevance]
    relevant.sort(key=lambda one: (-one.score, one.candidate.passage, one.candidate.unit.start))
    quotes: list[Quote] = []
    taken: list[Judged] = []
    for one in relevant[:_MOST_TRIED]:
        if one.score < _FALL * relevant[0].score:
            break
        if any(_alike(one, other) for other in taken):
            continue
        with_it = _join(_make_quote(one, passages, units), quotes, passages)
        length = sum(quote.end - quote.start for quote in with_it)
        if quotes and (len(with_it) > maximum_quotes or length > maximum_characters):
            continue
        quotes = with_it
        taken.append(one)
    return _in_order(quotes)


def _in_order(quotes: Sequence[Quote]) -> list[Quote]:
    """Return quotes, the best first; of one passage the first in the text where several are about as good."""
    rest = sorted(quotes, key=lambda quote: (-quote.score, quote.passage, quote.start))
    ordered: list[Quote] = []
    while rest:
        near = [one for one in rest if one.passage == rest[0].passage and one.score >= _NEARLY * rest[0].score]
        ordered.append(min(near, key=lambda quote: quote.start))
        rest.remove(ordered[-1])
    return ordered


def _alike(one: Judged, other: Judged) -> bool:
    first, second = one.candidate, other.candidate
    if first.text == second.text:
        return True
    both = first.terms | second.terms
    return bool(both) and len(first.terms & second.terms) >= _ALIKE * len(both)


def _make_quote(one: Judged, passages: Sequence[Source], units: Sequence[Sequence[Unit]]) -> Quote:
    """Return the candidate as a quote with what it needs to be understood."""
    place, unit = one.candidate.passage, one.candidate.unit
    text, siblings = passages[place].text, units[place]
    start, end = unit.start, unit.end
    lines = unit.kind in ("code", "row")
    first = position = one.candidate.position
    before = siblings[position - 1] if position else None
    leads = before and (before.kind, before.heading) == ("sentence", unit.heading) and text[before.end - 1] == ":"
    if before and leads and unit.kind == "code":
        first, start = position - 1, before.start
    term = unit.term
    if unit.kind == "row":
        return Quote(place, start, end, one.score, lines=True, term=term)
    if term is not None and end - term[0] <= _WITH_LEAD:
        start = term[0]
    else:
        term = None
        for _ in range(2):
            before = siblings[first - 1] if first else None
            if before is None or not _ANAPHOR.match(text, start) or not _continues(text, before, siblings[first]):
                break
            first, start = first - 1, before.start
    while position + 1 < len(siblings) and _CONTRAST.match(text, siblings[position + 1].start):
        after = siblings[position + 1]
        if after.block != siblings[position].block or after.end - start > _WITH_LEAD:
            break
        position, end = position + 1, after.end
    if text[start:end].endswith(":"):
        block = 0
        for follower in siblings[position + 1 :]:
            announced = follower.kind != "sentence" and follower.heading == unit.heading
            if not announced or follower.end - start > _WITH_LEAD or (block and follower.block != block):
                break
            end, lines, block = follower.end, True, follower.block
    bare = unit.kind == "code" and start == unit.start and not _is_fenced(text[start:end])
    return Quote(place, start, end, one.score, lines, bare, term)


def _continues(text: str, before: Unit, unit: Unit) -> bool:
    """Tell whether a unit is said of what stands before it."""
    near = unit.block - before.block <= 1 and before.heading == unit.heading
    return near and before.kind == "sentence" and unit.end - before.start <= _WITH_LEAD


def _is_fenced(text: str) -> bool:
    first, _, rest = text.strip().partition("\n")
    mark = first[:3]
    return mark in ("```", "~~~") and rest.rpartition("\n")[2].strip().startswith(mark)


def _join(new: Quote, quotes: Sequence[Quote], passages: Sequence[Source]) -> list[Quote]:
    """Return the quotes with the new one, joined to those that it overlaps or touches."""
    rest = []
    for quote in quotes:
        if _touch(new, quote, passages):
            start, end = min(new.start, quote.start), max(new.end, quote.end)
            term = next((each.term for each in (new, quote) if each.term and each.start == start), None)
            lines = new.lines or quote.lines
            new = Quote(new.passage, start, end, max(new.score, quote.score), lines, term=term)
        else:
            rest.append(quote)
    return [*rest, new]


def _touch(one: Quote, other: Quote, passages: Sequence[Source]) -> bool:
    if one.passage != other.passage:
        return False
    first, second = sorted((one, other), key=lambda quote: quote.start)
    if second.start < first.end:
        return True
    between = passages[one.passage].text[first.end : second.start]
    return not (one.lines or other.lines) and not between.strip() and between.count("\n") <= 1


def question_of(request: ChatRequest) -> str:
    """Return the text of the last user message."""
    return next((message.text for message in reversed(request.messages) if message.role == "user"), "")


def passages_of(request: ChatRequest) -> list[Source]:
    """Return the parts of the sources that are read, in order."""
    passages = []
    left = MOST_OF_ALL
    for message in request.messages:
        for part in message.content:
            if isinstance(part, Source) and left > 0:
                text = part.text[: min(MOST_OF_ONE, left)]
                left -= len(text)
                passages.append(replace(part, text=text))
    return passages


def citation_of(quote: Quote, passages: Sequence[Source]) -> Citation:
    """Return the citation of a quote; a link to a line of a file leads to the line where the quote begins."""
    passage = passages[quote.passage]
    link = passage.link
    if link is not None and (match := _FILE_LINE.fullmatch(link)):
        link = f"{match.group(1)}{int(match.group(2)) + passage.text.count(chr(10), 0, quote.start)}"
    return Citation(passage.number, passage.name, link, passage.text[quote.start : quote.end])


def paragraph(quote: Quote, citation: Citation, passages: Sequence[Source]) -> str:
    """Return the quote as a paragraph of the answer, as it is read: in quotation marks, or as lines, the mark below."""
    text = passages[quote.passage].text
    if quote.bare_code:
        code = citation.quote
        runs = [len(run) for run in re.findall(r"`+", code)]
        fence = "`" * max(3, 1 + max(runs, default=0))
        return f"{fence}\n{code}\n{fence}\n[{citation.number}]"
    if quote.lines and quote.term and quote.term[1] <= quote.start:
        header = text[slice(*quote.term)]
        return f"{as_read(header)}\n{as_read(citation.quote)}\n[{citation.number}]"
    if quote.lines:
        parts = _FENCED.split(citation.quote)  # Code stays as it is.
        shown = "".join(part if number % 2 else as_read(part) for number, part in enumerate(parts))
        lead, gap, rest = shown.partition("\n\n")
        if gap and lead.endswith(":") and "|" not in lead:
            shown = f"{' '.join(lead.split())}\n\n{rest}"
        return f"{shown}\n[{citation.number}]"
    if quote.term:
        term, said = (
            re.sub(r"\s[-–—]+$", "", text[slice(*quote.term)].strip("*`: ")),
            text[quote.term[1] : quote.end].lstrip("*`:.—– \n"),
        )
        return f"“{_flow(term)}: {_flow(said)}” [{citation.number}]"
    if _ANAPHOR.match(citation.quote) and " › " in (citation.name or ""):
        return f"{(citation.name or '').rpartition(' › ')[2]}: “{_flow(citation.quote)}” [{citation.number}]"
    return f"“{_flow(citation.quote)}” [{citation.number}]"


def _flow(text: str) -> str:
    """Return prose as it is read, without the ends of its lines."""
    return " ".join(as_read(text).split())


def _foreign(question: str, passages: Sequence[Source]) -> str | None:
    """Return a sentence about the languages if those of question and sources differ."""
    asked = likely_language(question)
    found = [likely_language(passage.text[:_SAMPLE]) for passage in passages[:_SAMPLED]] if asked else []
    written = max(filter(None, found), key=found.count, default=None)
    if written is None or asked in found:
        return None
    return (
        f"The question seems to be in {asked} and the sources in {written}. Ask in {written}, or set a multilingual "
        "model as `use` of [embeddings]."
    )


class ExtractiveChat:
    """Answer by quoting the sources of a request, with citations and without a model.

    >>> import asyncio
    >>> from portico import ChatRequest, Message, Source
    >>> source = Source(1, "A port is a protocol. Write three methods and a settings class.", name="ports.md")
    >>> request = ChatRequest([Message.of("user", "Which methods do I write?", source)])
    >>> asyncio.run(ExtractiveChat().complete(request)).text
    '“Write three methods and a settings class.” [1]'

    The question is the text of the last user message, the sources are those of all messages. When no source answers the
    question, the reply says so. Equal requests have equal replies. It reads the first 20,000 characters of a source,
    and 500,000 characters and 10,000 sentences of all. The configured embedding generator compares the 120 best
    sentences by meaning; when it fails, words alone decide.
    """

    def __init__(self, settings: ExtractiveSettings | None = None, services: Services | None = None) -> None:
        self._settings = settings or ExtractiveSettings()
        self._services = services
        self.name = "extractive"
        self.capabilities = ChatCapabilities(sources=True, language_model=False)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the quotes, or a sentence about why there are none."""
        request.check(self.capabilities, self.name)
        paragraphs, citations = await self._answer(request)
        return self._reply(paragraphs, citations)

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        """Yield quote by quote, then the reply."""
        request.check(self.capabilities, self.name)
        paragraphs, citations = await self._answer(request)
        for number, text in enumerate(paragraphs):
            yield ChatDelta(f"\n\n{text}" if number else text)
        yield ChatDelta(reply=self._reply(paragraphs, citations))

    def _reply(self, paragraphs: Sequence[str], citations: tuple[Citation, ...]) -> ChatReply:
        message = Message.of("assistant", "\n\n".join(paragraphs))
        return ChatReply(message, model=self.name, service=self.name, citations=citations)

    async def _answer(self, request: ChatRequest) -> tuple[list[str], tuple[Citation, ...]]:
        question = question_of(request)[:MOST_OF_QUESTION]
        question = question.lower() if question.isupper() and " " in question else question
        passages = passages_of(request)
        if not question.strip():
            return ["There is no question to answer."], ()
        if not passages:
            return ["There are no sources to answer from."], ()

        def read() -> tuple[Words, list[list[Unit]], list[Candidate]]:
            words = Words(language_of(question) if self._settings.language == "auto" else self._settings.language)
            words.compare_with(question)
            units = [split(passage.text) for passage in passages]
            return words, units, candidates(passages, units, words)

        words, units, found = await asyncio.to_thread(read)
        foreign = _foreign(question, passages)
        judged = await asyncio.to_thread(judge, question, found, words)
        if judged and (cosines := await self._cosines(question, found, [one.score for one in judged])):
            judged = with_meaning(judged, cosines)
        quotes = select(
            judged,
            passages,
            units,
            minimum_relevance=max(self._settings.minimum_relevance, _ABROAD if foreign else 0.0),
            maximum_quotes=self._settings.maximum_quotes,
            maximum_characters=self._settings.maximum_characters,
        )
        if not quotes:
            if foreign:
                return [foreign], ()
            searched = "1 passage" if len(passages) == 1 else f"{len(passages)} passages"
            return [f"Nothing relevant was found in the {searched} searched."], ()
        citations = tuple(citation_of(quote, passages) for quote in quotes)
        return [
            paragraph(quote, citation, passages) for quote, citation in zip(quotes, citations, strict=True)
        ], citations

    async def _cosines(self, question: str, found: Sequence[Candidate], scores: Sequence[float]) -> Mapping[int, float]:
        """Return the cosines of the best candidates with the question, by index; none without a generator."""
        generator = self._generator()
        if generator is None:
            return {}
        best = sorted(range(len(found)), key=lambda position: -scores[position])[:_MOST_EMBEDDED]
        try:
            query = await generator.embed([question], purpose="query")
            texts = await generator.embed(
                [f"{found[position].label} {found[position].text}".strip() for position in best]
            )
        except ServiceError as error:
            _log.warning("The extractive chat service compares words alone: %s", error)
            return {}
        import numpy as np

        rows = np.asarray(texts.buffer, dtype=np.float32).reshape(texts.rows, texts.dimensions)
        return dict(zip(best, (rows @ np.asarray(query.buffer, dtype=np.float32)).tolist(), strict=True))

    def _generator(self) -> EmbeddingGenerator | None:
        if self._services is None or not self._settings.embeddings:
            return None
        try:
            return self._services.get(EmbeddingGenerator)
        except (PluginError, ConfigurationError):
            return None
