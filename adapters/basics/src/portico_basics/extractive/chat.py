"""The ChatService that answers with quotes."""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace

from portico import ChatCapabilities, ChatDelta, ChatReply, ChatRequest, Citation, Message, Source
from portico.errors import ConfigurationError, PluginError, ServiceError
from portico.plugins import Services
from portico.ports import EmbeddingGenerator
from portico_basics.config import ExtractiveSettings
from portico_basics.extractive._text import Unit, Words, language_of, split

MOST_OF_ONE = 20_000
"""Characters read of one source."""
MOST_OF_ALL = 500_000
"""Characters read of all sources together."""
_MOST_CANDIDATES = 10_000
"""Sentences, list items, rows and blocks of code that are compared with the question."""
_MOST_EMBEDDED = 200
"""Candidates that the embedding generator compares."""
_MOST_TRIED = 200
"""Candidates that may become a quote."""
_MOST_TERMS = 64
"""Terms of a question."""
_BEGINNING = 5
"""Letters that two terms must share to be alike."""
_ALONE = 0.85
"""The weight of a candidate that has one word of several."""
_ALIKE = 0.7
"""The share of common terms with which two candidates say the same."""
_FALL = 0.55
"""The share of the best score that a quote must have."""
_WITH_LEAD = 900
"""Characters of a quote with the list or code after its colon."""

_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b(?:[A-Z][\w-]*|\w*\d\w*|\w+_\w+)|`[^`]+`")
_HOW = re.compile(r"\b(?:how (?:do|can|to|should|would)|example|command|code|snippet)\b", re.IGNORECASE)
_FILE_LINE = re.compile(r"(file:[^#]*#L)(\d{1,9})(?:-L?\d+)?")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit with its words; ``passage`` is the index of its source, ``position`` its index among the units there."""

    passage: int
    position: int
    unit: Unit
    text: str
    terms: frozenset[str]
    context: frozenset[str]
    nearby: frozenset[str]
    leading: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate with ``relevance`` (0 to 1) and ``score``, by which candidates are ranked."""

    candidate: Candidate
    relevance: float
    score: float


def candidates(passages: Sequence[Source], units: Sequence[Sequence[Unit]], words: Words) -> list[Candidate]:
    """Return the units that can be quoted, 10,000 at most, with their words and those around them."""
    found: list[Candidate] = []
    for place, (passage, every) in enumerate(zip(passages, units, strict=True)):
        parts = every[: _MOST_CANDIDATES - len(found)]
        name = words.terms(passage.name or "")
        own = [frozenset(words.terms(passage.text[unit.start : unit.end])) for unit in parts]
        for number, unit in enumerate(parts):
            nearby: frozenset[str] = frozenset()
            for other in (number - 1, number + 1):
                if 0 <= other < len(parts) and (parts[other].block == unit.block or other < number):
                    nearby |= own[other]
            found.append(
                Candidate(
                    passage=place,
                    position=number,
                    unit=unit,
                    text=passage.text[unit.start : unit.end],
                    terms=own[number],
                    context=frozenset([*name, *words.terms(unit.heading)]),
                    nearby=nearby,
                    leading=number == 0 or parts[number - 1].heading != unit.heading,
                )
            )
    return found


def judge(
    question: str, found: Sequence[Candidate], words: Words, cosines: Mapping[int, float] | None = None
) -> list[Judged]:
    """Return the candidates with relevance and score, in the same order; ``cosines`` are by index, where known."""
    terms = list(dict.fromkeys(words.terms(question)))[:_MOST_TERMS]
    if not terms or not found:
        return []
    names = {term for match in _NAME.finditer(question) for term in words.terms(match.group())}
    holding = {term: sum(term in candidate.terms for candidate in found) for term in terms}
    anywhere = frozenset[str]().union(*(candidate.terms | candidate.context for candidate in found))
    known = _likenesses(terms, anywhere)
    weights = {term: (2.0 if term in names else 1.0) * (1.0 if known[term] else 1.5) for term in terms}
    rarity = {
        term: max(0.2, math.log(1 + (len(found) - count + 0.5) / (count + 0.5))) for term, count in holding.items()
    }
    practical = bool(_HOW.search(question))
    judged = []
    for position, candidate in enumerate(found):
        matches = {term: _match(term, known[term], candidate) for term in terms}
        covered = sum(weights[term] * match for term, match in matches.items()) / sum(weights.values())
        ranked = sum(rarity[term] * match for term, match in matches.items()) / sum(rarity.values())
        cosine = (cosines or {}).get(position, 0.0)
        if len(terms) > 1 and sum(match > 0 for match in matches.values()) == 1:
            # One common word of several is often chance.
            covered *= _ALONE
        direct = any(term in candidate.terms for term in terms)
        relevance = min(1.0, covered + 0.3 * max(0.0, cosine - 0.2)) if direct or candidate.leading else 0.0
        score = ranked + 0.5 * covered + 0.8 * max(0.0, cosine)
        score += 0.2 / (1 + candidate.passage)
        if candidate.leading:
            # The beginning of a section whose heading has most words of the question is probably the answer.
            titled = sum(rarity[term] for term in terms if _match(term, known[term], candidate, context_only=True))
            score += 0.35 if titled > 0.75 * sum(rarity.values()) else 0.05
        if len(candidate.terms) < 3:
            score -= 0.15
        if candidate.unit.kind == "row" and len(candidate.terms) <= 4:
            score -= 0.3
        if not candidate.terms.difference(*known.values()):
            # It has no word that the question has not, such as a heading.
            score -= 0.3
        if candidate.unit.kind == "code" and not practical:
            score -= 0.2
        if candidate.text.endswith("?"):
            score -= 0.3
        judged.append(Judged(candidate, relevance, score))
    return judged


def _likenesses(terms: Sequence[str], anywhere: frozenset[str]) -> dict[str, dict[str, float]]:
    """Return, for each term of the question, the terms of the sources that match it, and how well.

    Equal stems match with 1; "connect" and "connector", up to three more letters, with 0.7.
    """
    beginnings: dict[str, list[str]] = {}
    for term in anywhere:
        if len(term) >= _BEGINNING:
            beginnings.setdefault(term[:_BEGINNING], []).append(term)
    known: dict[str, dict[str, float]] = {}
    for term in terms:
        alike = [other for other in beginnings.get(term[:_BEGINNING], ()) if abs(len(term) - len(other)) <= 3]
        known[term] = {other: 0.7 for other in alike if other.startswith(term) or term.startswith(other)}
        if term in anywhere:
            known[term][term] = 1.0
    return known


def _match(term: str, known: Mapping[str, float], candidate: Candidate, *, context_only: bool = False) -> float:
    best = 0.0
    for other, likeness in known.items():
        if other in candidate.terms and not context_only:
            best = max(best, likeness)
        elif other in candidate.context:
            best = max(best, 0.7 * likeness)
        elif other in candidate.nearby and not context_only:
            best = max(best, 0.4 * likeness)
    return best


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote: ``text[start:end]`` of a passage.

    ``lines`` is true for code, lists and tables, ``bare_code`` for code without a fence.
    """

    passage: int
    start: int
    end: int
    score: float
    lines: bool = False
    bare_code: bool = False


def select(
    judged: Sequence[Judged],
    passages: Sequence[Source],
    units: Sequence[Sequence[Unit]],
    *,
    minimum_relevance: float,
    maximum_quotes: int,
    maximum_characters: int,
) -> list[Quote]:
    """Return the quotes of the best passage first, those of one passage in their order.

    A candidate is quoted if it is relevant, has more than half of the best score, and is not nearly the same as another
    one. Adjacent sentences become one quote. A sentence that ends in a colon is quoted with what follows.
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
    best: dict[int, float] = {}
    for quote in quotes:
        best[quote.passage] = max(quote.score, best.get(quote.passage, quote.score))
    return sorted(quotes, key=lambda quote: (-best[quote.passage], quote.passage, quote.start))


def _alike(one: Judged, other: Judged) -> bool:
    first, second = one.candidate, other.candidate
    if first.text == second.text:
        return True
    both = first.terms | second.terms
    return bool(both) and len(first.terms & second.terms) >= _ALIKE * len(both)


def _make_quote(one: Judged, passages: Sequence[Source], units: Sequence[Sequence[Unit]]) -> Quote:
    """Return the candidate as a quote, with the list or code after its colon, or the sentence before it."""
    place, unit = one.candidate.passage, one.candidate.unit
    text, siblings = passages[place].text, units[place]
    start, end = unit.start, unit.end
    lines = unit.kind in ("code", "row")
    position = one.candidate.position
    if unit.kind == "code" and position and _leads(text, siblings[position - 1], unit):
        start = siblings[position - 1].start
    if text[start:end].endswith(":"):
        block = 0
        for follower in siblings[position + 1 :]:
            announced = follower.kind != "sentence" and follower.heading == unit.heading
            if not announced or follower.end - start > _WITH_LEAD or (block and follower.block != block):
                break
            end, lines, block = follower.end, True, follower.block
    bare = unit.kind == "code" and start == unit.start and not _is_fenced(text[start:end])
    return Quote(place, start, end, one.score, lines, bare)


def _is_fenced(text: str) -> bool:
    first, _, rest = text.strip().partition("\n")
    mark = first[:3]
    return mark in ("```", "~~~") and rest.rpartition("\n")[2].strip().startswith(mark)


def _leads(text: str, before: Unit, unit: Unit) -> bool:
    return (
        before.kind == "sentence" and before.heading == unit.heading and text[before.start : before.end].endswith(":")
    )


def _join(new: Quote, quotes: Sequence[Quote], passages: Sequence[Source]) -> list[Quote]:
    """Return the quotes with the new one, joined to those that it overlaps or touches."""
    rest = []
    for quote in quotes:
        if _touch(new, quote, passages):
            start, end = min(new.start, quote.start), max(new.end, quote.end)
            new = Quote(new.passage, start, end, max(new.score, quote.score), new.lines or quote.lines)
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


def paragraph(quote: Quote, citation: Citation) -> str:
    """Return the quote as a paragraph of the answer: in quotation marks, or as lines with the mark below."""
    if not quote.lines:
        return f"“{citation.quote}” [{citation.number}]"
    if quote.bare_code:
        runs = [len(run) for run in re.findall(r"`+", citation.quote)]
        fence = "`" * max(3, 1 + max(runs, default=0))
        return f"{fence}\n{citation.quote}\n{fence}\n[{citation.number}]"
    return f"{citation.quote}\n[{citation.number}]"


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
    and 500,000 characters and 10,000 sentences of all. The configured embedding generator compares the 200 best
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
        question = question_of(request)
        passages = passages_of(request)
        if not question.strip():
            return ["There is no question to answer."], ()
        if not passages:
            return ["There are no sources to answer from."], ()

        def read() -> tuple[Words, list[list[Unit]], list[Candidate]]:
            words = Words(language_of(question) if self._settings.language == "auto" else self._settings.language)
            units = [split(passage.text) for passage in passages]
            return words, units, candidates(passages, units, words)

        words, units, found = await asyncio.to_thread(read)
        judged = await asyncio.to_thread(judge, question, found, words)
        if judged and (cosines := await self._cosines(question, found, [one.score for one in judged])):
            judged = await asyncio.to_thread(judge, question, found, words, cosines)
        quotes = select(
            judged,
            passages,
            units,
            minimum_relevance=self._settings.minimum_relevance,
            maximum_quotes=self._settings.maximum_quotes,
            maximum_characters=self._settings.maximum_characters,
        )
        if not quotes:
            searched = "1 passage" if len(passages) == 1 else f"{len(passages)} passages"
            return [f"Nothing relevant was found in the {searched} searched."], ()
        citations = tuple(citation_of(quote, passages) for quote in quotes)
        return [paragraph(quote, citation) for quote, citation in zip(quotes, citations, strict=True)], citations

    async def _cosines(self, question: str, found: Sequence[Candidate], scores: Sequence[float]) -> Mapping[int, float]:
        """Return the cosines of the best candidates with the question, by index; none without a generator."""
        generator = self._generator()
        if generator is None:
            return {}
        best = sorted(range(len(found)), key=lambda position: -scores[position])[:_MOST_EMBEDDED]
        try:
            query = await generator.embed([question], purpose="query")
            texts = await generator.embed([found[position].text for position in best])
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
