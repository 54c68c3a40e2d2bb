"""Ranks functions by the words of a request."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from portico import FunctionSpec
from portico.plugins import spaced, words


def function_text(spec: FunctionSpec) -> str:
    """Return what of a function is searched: its name in words, its description, its parameters and theirs.

    >>> from portico import Function
    >>> def findFlights(toCity: str) -> str:
    ...     '''Look flights up.
    ...
    ...     Args:
    ...         toCity: Where it lands.
    ...     '''
    >>> function_text(Function.of(findFlights).spec)
    'find Flights. find Flights. Look flights up. to City: Where it lands.'

    The name is there twice: it says most, and counts for more so, with words and with vectors. That brought 0.013 of
    recall@5, in the mean of 16 collections, over the name once; three times brought no more.
    """
    name = spaced(spec.name)
    parts = [f"{name}. {name}. {spec.description}".strip()]
    properties = spec.parameters.get("properties")
    for each, schema in properties.items() if isinstance(properties, Mapping) else ():
        described = schema.get("description") if isinstance(schema, Mapping) else None
        parts.append(f"{spaced(str(each))}: {described}" if described else spaced(str(each)))
    return " ".join(parts)


_K1 = 1.5
_B = 0.75
_VISITS = 10_000
"""How many postings a request goes through, 10 ms at most: all of some hundred functions. Of 60,000 texts of words at
random, 5,000 lose 0.23 of a request's ten best and 20,000 lose 0.07, in twice the time."""
_DEPTH = 5
"""How many times as many as are wanted are kept for the words that come after."""

_Posting: TypeAlias = int
"""How often a word is in a function's text, and how many words that has, in 32 bits each: no objects to keep."""
_Wanted: TypeAlias = tuple[Mapping[str, _Posting], float]
"""Where a word of a request is, and the most that it can give."""
_NOWHERE: Mapping[str, _Posting] = {}


@dataclass(frozen=True, slots=True)
class LexicalScores:
    """BM25 of functions for one request, by name, each more than 0; ``greatest`` is what none could exceed.

    ``greatest`` is the score of a function that has every word of the request infinitely often: by it scores of
    different requests compare. Words that no function has count in it, as the rarest of all. ``whole`` tells whether
    every function that scores is there.
    """

    scores: Mapping[str, float] = field(default_factory=dict)
    greatest: float = 0.0
    whole: bool = field(default=True, compare=False)


class LexicalIndex:
    """Score the texts of functions for requests, by Okapi BM25 (Robertson and Zaragoza 2009).

    >>> index = LexicalIndex()
    >>> index.put("rain", "Tell whether it rains in a city.")
    >>> index.put("poem", "Write a poem.")
    >>> found = index.score("Poems on Ada")
    >>> list(found.scores), 0 < found.scores["poem"] < found.greatest
    (['poem'], True)

    A word of a request counts once: ``ln(1 + (N - n + 0.5) / (n + 0.5))`` when n of N functions have it, times the
    part of k1 + 1 that the function's text earns. k1 = 1.5 and b = 0.75: 1.2 does as well, while 0.9 and 0.4, as for
    passages, lose 0.03 of recall@5 in the mean of 16 collections, for texts of functions differ much in length.

    All that is kept are whole numbers, and sums are taken in an order that what is in the index alone decides: scores
    are the same to the last bit, whatever was put and removed before.
    """

    __slots__ = ("_lengths", "_postings", "_shares", "_total", "_words")

    def __init__(self) -> None:
        self._postings: dict[str, dict[str, _Posting]] = {}
        self._words: dict[str, tuple[str, ...]] = {}
        self._lengths: dict[str, int] = {}
        self._total = 0
        self._shares = _Shares()

    def __len__(self) -> int:
        return len(self._words)

    def __contains__(self, name: object) -> bool:
        return name in self._words

    def put(self, name: str, text: str) -> None:
        """Add a function's text, or put it in the place of the one that was there."""
        self.remove(name)
        counts = Counter(words(text))
        length = counts.total()
        self._words[name] = tuple(counts)
        self._lengths[name] = length
        self._total += length
        self._shares.clear()
        for word, count in counts.items():
            self._postings.setdefault(word, {})[name] = count << 32 | length

    def remove(self, name: str) -> None:
        """Take a function out; nothing happens where it is not in."""
        if name not in self._words:
            return
        self._total -= self._lengths.pop(name)
        self._shares.clear()
        for word in self._words.pop(name):
            postings = self._postings[word]
            del postings[name]
            if not postings:
                del self._postings[word]

    def score(self, request: str, *, top: int | None = None) -> LexicalScores:
        """Score the functions that have a word of the request; with ``top``, about so many of the best, or more.

        That bounds the cost where functions are many. The rarest words come first; when they have been found in
        enough functions, the words that very many have bring no further ones, and are only looked up for the best so
        far. The scores of those that are found are the same as without ``top``.
        """
        wanted = self._wanted(request)
        shares = self._shares
        scores: dict[str, float] = {}
        visits = 0
        for place, (postings, most) in enumerate(wanted):
            visits += len(postings)
            if top is not None and visits > _VISITS and len(scores) >= top:
                found = self._completed(_best(scores, _DEPTH * top), wanted[place:])
                return LexicalScores(found, _greatest(wanted), whole=False)
            for name, posting in postings.items():
                scores[name] = scores.get(name, 0.0) + most * shares[posting]
        return LexicalScores(scores, _greatest(wanted))

    def score_of(self, request: str, names: Iterable[str]) -> LexicalScores:
        """Score these functions alone, as `score` does; the cost does not grow with how many there are besides."""
        wanted = self._wanted(request)
        found = self._completed(dict.fromkeys(names, 0.0), wanted)
        return LexicalScores({name: score for name, score in found.items() if score}, _greatest(wanted), whole=False)

    def _wanted(self, request: str) -> list[_Wanted]:
        """Return where the request's words are, each with the most that it can give, the rarest first."""
        known = len(self._words)
        if not known:
            return []
        self._shares.average = self._total / known
        found = [(self._postings.get(word, _NOWHERE), word) for word in dict.fromkeys(words(request))]
        found.sort(key=lambda each: (len(each[0]), each[1]))
        return [
            (postings, (_K1 + 1) * math.log1p((known - len(postings) + 0.5) / (len(postings) + 0.5)))
            for postings, _ in found
        ]

    def _completed(self, scores: dict[str, float], wanted: Sequence[_Wanted]) -> dict[str, float]:
        """Add what the words give to these functions: each is looked up, the postings are not gone through."""
        shares = self._shares
        for postings, most in wanted:
            for name in scores:
                posting = postings.get(name)
                if posting is not None:
                    scores[name] += most * shares[posting]
        return scores


class _Shares(dict[_Posting, float]):
    """Which part of a word's most a text earns: more for each time, less the longer it is. Worked out once each."""

    __slots__ = ("average",)

    average: float

    def __missing__(self, posting: _Posting) -> float:
        count, length = posting >> 32, posting & 0xFFFFFFFF
        self[posting] = share = count / (count + _K1 * (1 - _B + _B * length / self.average))
        return share


def _greatest(wanted: Sequence[_Wanted]) -> float:
    return sum(most for _, most in wanted)


def _best(scores: Mapping[str, float], count: int) -> dict[str, float]:
    """Return the ``count`` best, and those that score as much as the last of them: no order of insertion decides."""
    if len(scores) <= count:
        return dict(scores)
    least = heapq.nlargest(count, scores.values())[-1]
    return {name: score for name, score in scores.items() if score >= least}


Ranking: TypeAlias = Literal["fused", "lexical", "vector"]

_WORTH = 8.0
"""The BM25 that is worth a cosine of 1, where a function has all of the request."""
_OF_THE_BEST = 0.5
_OF_THE_FIELD = 0.2
_FIELD = 10
"""How many functions stand before the one that the field is measured by."""


@dataclass(frozen=True, slots=True)
class RequestScores:
    """What one request scored: ``lexical`` as the index gives it, ``cosines`` by name, -1 to 1."""

    lexical: LexicalScores = field(default_factory=LexicalScores)
    cosines: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fused:
    """A function in the ranking: ``score`` orders, ``lexical`` and ``vector`` are its best with any request.

    ``lexical`` is the BM25 as a share of the greatest, 0 to 1; ``vector`` is a cosine, 0 where none was measured.
    """

    name: str
    score: float
    lexical: float = 0.0
    vector: float = 0.0


def fuse(requests: Sequence[RequestScores], ranking: Ranking = "fused") -> list[Fused]:
    """Rank the functions that anything speaks for, best first; those of equal scores stand by their names.

    >>> rain = RequestScores(LexicalScores({"forecast": 6.0}, greatest=20.0), {"forecast": 0.5, "poem": 0.1})
    >>> [(each.name, round(each.score, 3)) for each in fuse([rain])]
    [('forecast', 0.725), ('poem', 0.1)]

    A function fits a request by ``BM25 * (BM25 / greatest) / 8 + max(cosine, 0)``: absolute scales, for a rank or a
    standardised score says nothing of whether anything was found. Words count by how much of the request they cover,
    so that one rare word which happens to be in a function does not stand against what the request means. With 5 to 14
    for 8 the mean recall@5 of 33 collections is the same within 0.004; words weigh too much below where vectors are
    better, too little above where words are.

    Each request then brings its own best to the front, weak requests less far: the fit less half of the best fit
    and a fifth of the fit that ten others exceed, which says how much stands out; a function has the best that any of
    the requests gives it. Taking 0.5 to 0.7 of the best away, or some of it of the field, gives 0.952 to 0.957 of
    recall@5 on Seal-Tools: less hides what is asked for beside something easier, more lets small talk in. What is
    taken from the strongest request is added to all, so that scores compare with fits; of one request they are that.

    Whatever raises the fit of one function with one request does not make it stand further behind. "lexical"
    and "vector" go by one of the two only.
    """
    fits = [found for each in requests if (found := _fits(each, ranking))]
    taken = [_taken(each) for each in fits]
    most = max(taken, default=0.0)
    scores: dict[str, float] = {}
    for each, less in zip(fits, taken, strict=True):
        for name, fit in each.items():
            score = fit + (most - less)
            if score > scores.get(name, -math.inf):
                scores[name] = score
    ranked = sorted(scores.items(), key=lambda each: (-each[1], each[0]))
    return [
        Fused(
            name,
            score,
            max(each.lexical.scores.get(name, 0.0) / (each.lexical.greatest or 1.0) for each in requests),
            max((each.cosines[name] for each in requests if name in each.cosines), default=0.0),
        )
        for name, score in ranked
    ]


def _fits(request: RequestScores, ranking: Ranking) -> dict[str, float]:
    """Return how well the functions fit a request, those that do at all."""
    fits: dict[str, float] = {}
    if ranking != "vector" and request.lexical.greatest > 0:
        worth = request.lexical.greatest * _WORTH
        fits = {name: score * score / worth for name, score in request.lexical.scores.items() if score > 0}
    if ranking != "lexical":
        for name, cosine in request.cosines.items():
            if cosine > 0:
                fits[name] = fits.get(name, 0.0) + cosine
    return fits


def _taken(fits: Mapping[str, float]) -> float:
    """Return what to take from the fits of a request so that those of several compare."""
    best = heapq.nlargest(_FIELD + 1, fits.values())
    return _OF_THE_BEST * best[0] + _OF_THE_FIELD * (best[_FIELD] if len(best) > _FIELD else 0.0)
