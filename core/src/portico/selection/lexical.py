"""Lexical scores of functions for a request: BM25, over an index in memory that changes with the functions."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from portico.selection.words import words

__all__ = ["LexicalIndex", "LexicalScores"]

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
