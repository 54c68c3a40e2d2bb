"""Steps that wait for each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

__all__ = ["cycles"]


def cycles(waits: Mapping[str, Collection[str]]) -> Iterator[list[str]]:
    """Yield one walk for each circle met, without recursion: a plan may have 1,000 steps.

    >>> list(cycles({"a": ["b"], "b": ["a"], "c": []}))
    [['a', 'b', 'a']]
    """
    done: set[str] = set()
    for start in waits:
        if start in done:
            continue
        trail = [start]
        on_trail = {start}
        stack = [iter(sorted(waits[start]))]
        while stack:
            following = next(stack[-1], None)
            if following is None:
                stack.pop()
                left = trail.pop()
                on_trail.discard(left)
                done.add(left)
            elif following in on_trail:
                yield [*trail[trail.index(following) :], following]
            elif following not in done and following in waits:
                trail.append(following)
                on_trail.add(following)
                stack.append(iter(sorted(waits[following])))
