"""The functions whose records are nearest to requests, in a store that has records of others too."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import TYPE_CHECKING, TypeAlias

from portico.ports.vector_store import VectorMatch
from portico.vectors import Vectors

if TYPE_CHECKING:
    from portico.ports.vector_store import VectorStore
    from portico.selection.known_functions import KnownFunctions

__all__ = ["Found", "Near", "nearest"]

Near: TypeAlias = dict[str, float]
"""Cosines of functions with one request, by name."""

_DECIMALS = 6
_TIE = 2e-6
"""Cosines nearer to each other than this are equal: stores sum in different orders."""
_MANY_OTHERS = 4


@dataclass(frozen=True, slots=True)
class Found:
    """What was found for each request; ``complete`` tells whether there was as much as there must be."""

    cosines: list[Near]
    complete: bool


async def nearest(
    store: VectorStore,
    namespace: str,
    known: KnownFunctions,
    queries: Vectors,
    *,
    ids: Mapping[str, str],
    top: int,
    also: Sequence[Collection[str]],
    foreign: int = 0,
) -> Found:
    """Search once for all queries; then read the vectors of those in ``also`` that this did not find, all at once.

    ``ids`` are those of the records, by key. ``foreign`` is how many records of others are about: so many more are
    asked for, within reason. Where others crowd the functions out all the same, the search is made again, for more.
    """
    top = min(top, len(known.names))
    found, complete = await _searched(store, namespace, known.names, queries, top=top, foreign=foreign)
    names: dict[str, None] = {}
    if any(also):
        names = dict.fromkeys(name for some, near in zip(also, found, strict=True) for name in some if name not in near)
    if names:
        wanted = {ids.get(known.keys[name], known.keys[name]): name for name in names}
        records, vectors = await store.get(namespace, list(wanted))
        complete = complete and len(records) == len(wanted)
        if vectors is not None:
            rows = {wanted[record.id]: row.buffer.tolist() for record, row in zip(records, vectors, strict=True)}
            for query, some, near in zip(queries, also, found, strict=True):
                numbers = query.buffer.tolist()
                for name in some:
                    if name not in near and name in rows:
                        near[name] = round(sum(map(mul, rows[name], numbers)), _DECIMALS)
    return Found([{name: cosine for name, cosine in near.items() if cosine > 0} for near in found], complete)


async def _searched(
    store: VectorStore, namespace: str, names: Mapping[str, str], queries: Vectors, *, top: int, foreign: int
) -> tuple[list[Near], bool]:
    if not queries.rows or not top:
        return [{} for _ in range(queries.rows)], True
    asked = top + 1 + min(foreign, _MANY_OTHERS * top)
    while True:
        matches = await store.search(namespace, queries, top=asked)
        found = [_own(some, names) for some in matches]
        if all(
            len(some) < asked or _is_enough(near, top, some[-1].score)
            for some, near in zip(matches, found, strict=True)
        ):
            return [_cut(near, top) for near in found], all(len(near) >= top for near in found)
        asked *= 4


def _own(matches: Sequence[VectorMatch], names: Mapping[str, str]) -> Near:
    """Return the cosines of functions among the matches; a record of the same text is as good under any id."""
    near: Near = {}
    for match in matches:
        name = names.get(match.id) or names.get(match.id.rpartition("~")[0])
        if name is not None and name not in near:
            near[name] = round(match.score, _DECIMALS)
    return near


def _cut(near: Near, top: int) -> Near:
    """Return the ``top`` first, and those as near as the last of them: what else came depends on what was asked."""
    if len(near) <= top:
        return near
    least = list(near.values())[top - 1] - _TIE
    return {name: score for name, score in near.items() if score >= least}


def _is_enough(near: Near, top: int, last: float) -> bool:
    if len(near) < top:
        return False
    score = list(near.values())[top - 1]
    return score <= 0 or last < score - _TIE
