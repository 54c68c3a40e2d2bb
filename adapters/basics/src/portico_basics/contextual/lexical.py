"""Ranks functions by the words of a request."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, TypeAlias

import snowballstemmer

from portico import Considered, FunctionSpec
from portico.plugins import spaced, words
from portico_basics.extractive._words import language_of


def function_text(spec: FunctionSpec) -> str:
    """Return the text of a function to search: its name in words, its description, and its parameters.

    >>> from portico import Function
    >>> def findFlights(toCity: str) -> str:
    ...     '''Look flights up.
    ...
    ...     Args:
    ...         toCity: Where it lands.
    ...     '''
    >>> function_text(Function.of(findFlights).spec)
    'find Flights. find Flights. Look flights up. to City: Where it lands.'

    The name is there twice, so that it counts more. That raised recall@5 by 0.013 in the mean of 16 collections; three
    times raised it no further.
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
"""How many postings a request reads, in 10 ms at most. Of 60,000 random texts, 5,000 postings lose 0.23 of the ten
best, and 20,000 lose 0.07 in twice the time."""
_DEPTH = 5
"""How many times ``top`` functions are kept for the remaining words."""

_Wanted: TypeAlias = tuple[Mapping[str, float], float]
"""A word of a request: the share of its highest score that each function gets, by name, and this score."""


@dataclass(frozen=True, slots=True)
class RequestScores:
    """The scores of functions for one request, by name: ``lexical`` is BM25, above 0, ``cosines`` are -1 to 1.

    ``greatest`` is the limit of BM25: the score of a function that has every word of the request infinitely often. It
    makes scores of different requests comparable.
    """

    lexical: Mapping[str, float] = field(default_factory=dict)
    greatest: float = 0.0
    cosines: Mapping[str, float] = field(default_factory=dict)


class LexicalIndex:
    """Score the texts of functions for requests, by Okapi BM25 (Robertson and Zaragoza 2009).

    >>> index = LexicalIndex({"rain": "Tell whether it rains in a city.", "poem": "Write a poem."})
    >>> found = index.score("Poems on Ada")
    >>> list(found.lexical), 0 < found.lexical["poem"] < found.greatest
    (['poem'], True)

    Words are compared by their Snowball stems in the language of the texts (see `language_of`). Each word of a request
    counts once, with ``ln(1 + (N - n + 0.5) / (n + 0.5))`` when n of N functions have it.
    k1 = 1.5 and b = 0.75. k1 = 1.2 is as good; 0.9 and 0.4, as for passages, lose 0.03 of recall@5 in the mean of 16
    collections.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._functions = len(texts)
        self._shares: dict[str, dict[str, float]] = {}
        self._language = language_of(" ".join(text for _, text in sorted(texts.items())))
        counted = {name: Counter(self._terms(text)) for name, text in texts.items()}
        average = sum(counts.total() for counts in counted.values()) / (len(counted) or 1)
        for name, counts in counted.items():
            # A longer text gets less for each word.
            divisor = _K1 * (1 - _B + _B * counts.total() / (average or 1))
            for word, count in counts.items():
                self._shares.setdefault(word, {})[name] = count / (count + divisor)

    def score(self, request: str, *, top: int | None = None) -> RequestScores:
        """Score the functions that have a word of the request; with ``top``, about that number of the best, or more.

        That limits the cost for many functions. The rarest words come first. When enough functions are found, common
        words add no further functions, and only change the scores of the best so far. These are the same as without
        ``top``.
        """
        wanted = self._weigh_words(request)
        scores: dict[str, float] = {}
        visits = 0
        for place, (shares, most) in enumerate(wanted):
            visits += len(shares)
            if top is not None and visits > _VISITS and len(scores) >= top:
                scores = _add({name: scores[name] for name in best(scores, _DEPTH * top)}, wanted[place:])
                break
            for name, share in shares.items():
                scores[name] = scores.get(name, 0.0) + most * share
        return RequestScores(scores, _greatest(wanted))

    def score_of(self, request: str, names: Iterable[str]) -> RequestScores:
        """Score only these functions, as `score` does."""
        wanted = self._weigh_words(request)
        found = _add(dict.fromkeys(names, 0.0), wanted)
        return RequestScores({name: score for name, score in found.items() if score}, _greatest(wanted))

    def _weigh_words(self, request: str) -> list[_Wanted]:
        """Return the words of a request, the rarest first."""
        found = [(self._shares.get(word, {}), word) for word in dict.fromkeys(self._terms(request))]
        found.sort(key=lambda each: (len(each[0]), each[1]))
        return [
            (shares, (_K1 + 1) * math.log1p((self._functions - len(shares) + 0.5) / (len(shares) + 0.5)))
            for shares, _ in found
        ]

    def _terms(self, text: str) -> list[str]:
        return [_stem(self._language, word) for word in words(text)]


@lru_cache(maxsize=65_536)
def _stem(language: str, word: str) -> str:
    # A stemmer has state, and threads may share an index.
    stem: str = snowballstemmer.stemmer(language).stemWord(word)
    return stem


def _add(scores: dict[str, float], wanted: Sequence[_Wanted]) -> dict[str, float]:
    """Add the scores of these words to the functions."""
    for shares, most in wanted:
        for name in scores:
            if name in shares:
                scores[name] += most * shares[name]
    return scores


def _greatest(wanted: Sequence[_Wanted]) -> float:
    return sum(most for _, most in wanted)


def best(scores: Mapping[str, float], count: int) -> list[str]:
    """Return the names of the ``count`` best; equal scores are sorted by name."""
    least = heapq.nlargest(count, scores.values())[-1] if len(scores) > count else -math.inf
    return sorted((name for name in scores if scores[name] >= least), key=lambda name: (-scores[name], name))[:count]


Ranking: TypeAlias = Literal["fused", "lexical", "vector"]

_WORTH = 12.0
"""The BM25 that counts as a cosine of 1, for a function that has all words of the request."""
_OF_THE_BEST = 0.5
_OF_THE_FIELD = 0.2
_FIELD = 10
"""The rank of the function whose fit is subtracted from all, besides the best one."""


def fuse(requests: Sequence[RequestScores], ranking: Ranking = "fused") -> list[Considered]:
    """Rank the functions that fit any request, the best first; equal scores are sorted by name.

    >>> rain = RequestScores({"forecast": 6.0}, 20.0, {"forecast": 0.5, "poem": 0.1})
    >>> [(each.name, round(each.score, 3)) for each in fuse([rain])]
    [('forecast', 0.65), ('poem', 0.1)]

    The fit of a function with a request is ``BM25 * (BM25 / greatest) / 12 + max(cosine, 0)``: words count by how much
    of the request they cover, so that one rare word alone counts little. With 8 to 15 for 12 the recall@5 of five
    collections is the same within 0.02, and above that of words and of vectors alone.

    So that each request brings its own best functions to the front, half of its best fit and a fifth of its eleventh
    fit are subtracted. Subtracting 0.5 to 0.7 of the best gives a recall@5 of 0.952 to 0.957 on Seal-Tools. What is
    subtracted from the strongest request is added to all, so that scores compare with fits. A function has its best
    score for any request. "lexical" and "vector" use one of the two summands only.
    """
    fits = [found for each in requests if (found := _fits(each, ranking))]
    taken = [_find_offset(each) for each in fits]
    most = max(taken, default=0.0)
    scores: dict[str, float] = {}
    for each, less in zip(fits, taken, strict=True):
        for name, fit in each.items():
            score = fit + (most - less)
            if score > scores.get(name, -math.inf):
                scores[name] = score
    ranked = sorted(scores.items(), key=lambda each: (-each[1], each[0]))
    return [
        Considered(
            name,
            "chosen",
            score,
            max(each.lexical.get(name, 0.0) / (each.greatest or 1.0) for each in requests),
            max((each.cosines[name] for each in requests if name in each.cosines), default=0.0),
        )
        for name, score in ranked
    ]


def _fits(request: RequestScores, ranking: Ranking) -> dict[str, float]:
    """Return how well the functions fit a request, those that do at all."""
    fits: dict[str, float] = {}
    if ranking != "vector" and request.greatest > 0:
        worth = request.greatest * _WORTH
        fits = {name: score * score / worth for name, score in request.lexical.items()}
    if ranking != "lexical":
        for name, cosine in request.cosines.items():
            if cosine > 0:
                fits[name] = fits.get(name, 0.0) + cosine
    return fits


def _find_offset(fits: Mapping[str, float]) -> float:
    """Return what to take from the fits of a request so that those of several compare."""
    highest = heapq.nlargest(_FIELD + 1, fits.values())
    return _OF_THE_BEST * highest[0] + _OF_THE_FIELD * (highest[_FIELD] if len(highest) > _FIELD else 0.0)
