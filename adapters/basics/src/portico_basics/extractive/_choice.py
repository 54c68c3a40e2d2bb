"""Decides which parts of the sources bear on a question, and how much.

How much of the question a unit holds is its *coverage*: each word of the question counts by its weight, fully when
the unit has it, less when only the heading, the source's name or the neighbouring sentence has it. Two weightings
serve two ends. For *relevance* (is this an answer at all?) words count alike, names more and words that no source
has most: "How do I connect it to Oracle?" is not answered by a sentence on connecting. For *rank* (which answer is
the better one?) rare words count more, by the inverse document frequency of BM25 (Robertson and Zaragoza 2009).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from portico_basics.extractive._units import Unit
from portico_basics.extractive._words import Words

_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b(?:[A-Z][\w-]*|\w*\d\w*|\w+_\w+)|`[^`]+`")
_HOW = re.compile(r"\b(?:how (?:do|can|to|should|would)|example|command|code|snippet)\b", re.IGNORECASE)
_MOST_TERMS = 64
_MOST_CANDIDATES = 10_000
_BEGINNING = 5
_ALONE = 0.85


@dataclass(frozen=True, slots=True)
class Passage:
    """A source as far as it is read."""

    number: int
    text: str
    name: str | None
    link: str | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit with its words; ``passage`` is the place of its source, ``position`` its own among that one's units."""

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


def candidates(passages: Sequence[Passage], units: Sequence[Sequence[Unit]], words: Words) -> list[Candidate]:
    """Return what can be quoted, the first 10,000 units at most, with the words of each and of its surroundings."""
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
    """Return the candidates in their order with relevance and score; ``cosines`` are those known, by position."""
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
            # One word of several in common is chance as often as not, however much that word weighs.
            covered *= _ALONE
        direct = any(term in candidate.terms for term in terms)
        relevance = min(1.0, covered + 0.3 * max(0.0, cosine - 0.2)) if direct or candidate.leading else 0.0
        score = ranked + 0.5 * covered + 0.8 * max(0.0, cosine)
        score += 0.2 / (1 + candidate.passage)
        if candidate.leading:
            # What opens a section on most of the question's own words is most likely its answer.
            titled = sum(rarity[term] for term in terms if _match(term, known[term], candidate, context_only=True))
            score += 0.35 if titled > 0.75 * sum(rarity.values()) else 0.05
        if len(candidate.terms) < 3:
            score -= 0.15
        if candidate.unit.kind == "row" and len(candidate.terms) <= 4:
            score -= 0.3
        if not candidate.terms.difference(*known.values()):
            # It says nothing that the question does not say: an echo, such as a heading in other words.
            score -= 0.3
        if candidate.unit.kind == "code" and not practical:
            score -= 0.2
        if candidate.text.endswith("?"):
            score -= 0.3
        judged.append(Judged(candidate, relevance, score))
    return judged


def _likenesses(terms: Sequence[str], anywhere: frozenset[str]) -> dict[str, dict[str, float]]:
    """Return, for each term of the question, the sources' terms that can stand for it and how well.

    1 for equal stems, 0.7 when one only has an ending of up to three letters more: "connect" and "connector".
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
