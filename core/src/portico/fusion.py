"""Fusing rankings whose scores do not compare."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

__all__ = ["fuse_by_rank"]

T = TypeVar("T")


def fuse_by_rank(
    rankings: Iterable[Sequence[T]], *, key: Callable[[T], Hashable] | None = None, constant: int = 60
) -> list[T]:
    """Merge rankings, best first, by reciprocal ranks; things of one ``key`` count as one.

    The score of a thing is the sum of ``1 / (constant + rank)`` over the rankings that have it (Cormack,
    Clarke and Büttcher, SIGIR 2009, whose constant is 60). Equal scores keep the order in which they came.

    >>> fuse_by_rank([["a", "b"], ["b", "c"]])
    ['b', 'a', 'c']
    """
    scores: dict[Hashable, float] = {}
    first: dict[Hashable, T] = {}
    for ranking in rankings:
        seen: set[Hashable] = set()
        for rank, thing in enumerate(ranking, 1):
            name = thing if key is None else key(thing)
            if name in seen:
                continue
            seen.add(name)
            first.setdefault(name, thing)
            scores[name] = scores.get(name, 0.0) + 1.0 / (constant + rank)
    return [first[name] for name in sorted(scores, key=scores.__getitem__, reverse=True)]
