"""Selects the quotes of an answer from judged candidates: few, different, in an order that reads well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from portico_basics.extractive._choice import Judged, Passage
from portico_basics.extractive._units import Unit

_ALIKE = 0.7
_FALL = 0.55
_WITH_LEAD = 900
_MOST_TRIED = 200


@dataclass(frozen=True, slots=True)
class Quote:
    """What is quoted: ``text[start:end]`` of a passage.

    ``lines`` tells code, lists and tables from sentences, ``bare_code`` code that brings no fence of its own.
    """

    passage: int
    start: int
    end: int
    score: float
    lines: bool = False
    bare_code: bool = False


def select(
    judged: Sequence[Judged],
    passages: Sequence[Passage],
    units: Sequence[Sequence[Unit]],
    *,
    minimum_relevance: float,
    maximum_quotes: int,
    maximum_characters: int,
) -> list[Quote]:
    """Return the quotes, those of the best passage first, those of one passage in its order.

    A candidate comes in when it is relevant, has more than half of the best one's score, and is not nearly what
    another one says. Sentences that follow each other become one quote. A sentence that ends in a colon takes
    what it announces with it.
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
        with_it = _joined(_announced(one, passages, units), quotes, passages)
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


def _announced(one: Judged, passages: Sequence[Passage], units: Sequence[Sequence[Unit]]) -> Quote:
    """Return the candidate as a quote, with the list or code that it announces, or the sentence announcing it."""
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
    bare = unit.kind == "code" and start == unit.start and not _fenced(text[start:end])
    return Quote(place, start, end, one.score, lines, bare)


def _fenced(text: str) -> bool:
    first, _, rest = text.strip().partition("\n")
    mark = first[:3]
    return mark in ("```", "~~~") and rest.rpartition("\n")[2].strip().startswith(mark)


def _leads(text: str, before: Unit, unit: Unit) -> bool:
    return (
        before.kind == "sentence" and before.heading == unit.heading and text[before.start : before.end].endswith(":")
    )


def _joined(new: Quote, quotes: Sequence[Quote], passages: Sequence[Passage]) -> list[Quote]:
    """Return the quotes with the new one, joined to those that it overlaps or follows without a gap."""
    rest = []
    for quote in quotes:
        if _touch(new, quote, passages):
            new = Quote(
                passage=new.passage,
                start=min(new.start, quote.start),
                end=max(new.end, quote.end),
                score=max(new.score, quote.score),
                lines=new.lines or quote.lines,
            )
        else:
            rest.append(quote)
    return [*rest, new]


def _touch(one: Quote, other: Quote, passages: Sequence[Passage]) -> bool:
    if one.passage != other.passage:
        return False
    first, second = sorted((one, other), key=lambda quote: quote.start)
    if second.start < first.end:
        return True
    between = passages[one.passage].text[first.end : second.start]
    return not (one.lines or other.lines) and not between.strip() and between.count("\n") <= 1
