"""Fusing rankings whose scores do not compare."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from portico.links import place_of

__all__ = ["fuse_by_rank", "fuse_passages"]

T = TypeVar("T")
_Key = tuple[Hashable, str | None]


def fuse_by_rank(
    rankings: Iterable[Sequence[T]], *, key: Callable[[T], Hashable] | None = None, constant: int = 60
) -> list[T]:
    """Merge rankings, best first, by reciprocal ranks; things with equal ``key`` are one.

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


def fuse_passages(
    rankings: Iterable[Sequence[T]], *, link: Callable[[T], str | None], text: Callable[[T], str]
) -> list[tuple[T, tuple[int, ...]]]:
    """Merge rankings of passages by `fuse_by_rank`; each comes with the numbers of its rankings, from 0.

    Passages with one link are one, and the longest text stays, because each service cuts its own snippet. Links are
    equal if they lead to one place (`portico.links.place_of`, with the fragment). Where a ranking has several texts of
    one link, as passages of a document, and where there is no link, passages with different texts are different.

    >>> brave = [("https://a.example/door", "A door is"), ("https://a.example/hinge", "A hinge")]
    >>> google = [("http://a.example/door/", "A door is a lid.")]
    >>> fuse_passages([brave, google], link=lambda found: found[0], text=lambda found: found[1])
    [(('http://a.example/door/', 'A door is a lid.'), (0, 1)), (('https://a.example/hinge', 'A hinge'), (0,))]
    """
    keyed = _keyed([[(link(thing), text(thing), thing) for thing in ranking] for ranking in rankings])
    best: dict[_Key, T] = {}
    finders: dict[_Key, dict[int, None]] = {}
    for number, ranking in enumerate(keyed):
        for key, thing in ranking:
            if key not in best or len(text(thing)) > len(text(best[key])):
                best[key] = thing
            finders.setdefault(key, {})[number] = None
    return [
        (best[key], tuple(finders[key])) for key in fuse_by_rank([[key for key, _ in ranking] for ranking in keyed])
    ]


def _keyed(rankings: list[list[tuple[str | None, str, T]]]) -> list[list[tuple[_Key, T]]]:
    """Return the passages with their keys: the place of the link, the text, or both."""
    placed = [
        [(place_of(link) if link else None, text, thing) for link, text, thing in ranking] for ranking in rankings
    ]
    several: set[Hashable] = {None}
    for ranking in placed:
        texts: dict[Hashable, str] = {}
        several.update(place for place, text, _ in ranking if texts.setdefault(place, text) != text)
    return [
        [((place, text if place in several else None), thing) for place, text, thing in ranking] for ranking in placed
    ]
