"""The functions whose records are nearest to requests, in a store that has records of others too."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import mul
from typing import TYPE_CHECKING, TypeAlias

from portico.ports.vector_store import VectorMatch
from portico.vectors import Vectors

if TYPE_CHECKING:
    from portico.ports.vector_store import VectorStore
    from portico.selection.known_functions import KnownFunctions

__all__ = ["Near", "nearest"]

Near: TypeAlias = dict[str, float]
"""Cosines of functions with one request, by name."""

_GRID = 2.0**32
"""What has this added and taken away again is a multiple of 2**-20: rounding to decimals takes ten times as long."""
_TIE = 2e-6
"""Cosines nearer to each other than this are equal: stores sum in different orders."""
_MANY_OTHERS = 4


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
) -> tuple[list[Near], bool]:
    """Search once for all queries; then read the vectors of those in ``also`` that this did not find, all at once.

    Return what was found for each query, and whether it was as much as there must be. ``ids`` are those of the
    records, by key. ``foreign`` is how many records of others are about: so many more are asked for, within reason.
    Where others crowd the functions out all the same, the search is made again, for more.
    """
    top = min(top, len(known.names))
    if not queries.rows or not top:
        return [{} for _ in range(queries.rows)], True
    # One more than wanted shows whether the last is as near as further ones.
    asked = top + 1 + min(foreign, _MANY_OTHERS * top)
    found: list[Near] = []
    while not found:
        for matches in await store.search(namespace, queries, top=asked):
            near = _own(matches, known.names, top, asked)
            if near is None:
                found.clear()
                break
            found.append(near)
        asked *= 4
    complete = all(len(near) >= top for near in found)
    if any(also):
        complete &= await _added(store, namespace, known, queries, found, ids=ids, also=also)
    return [_above_zero(near) for near in found], complete


def _own(matches: Sequence[VectorMatch], names: Mapping[str, str], top: int, asked: int) -> Near | None:
    """Return the cosines of the ``top`` first functions, and of those as near as the last of them.

    What else comes depends on what was asked. A record of the same text is as good under any id. None where more has
    to be asked for.
    """
    near: Near = {}
    least = -2.0
    for match in matches:
        score = match.score
        if score < least:
            return near
        name = names.get(match.id) or names.get(match.id.rpartition("~")[0])
        if name is not None and name not in near:
            near[name] = cosine = score + _GRID - _GRID
            if len(near) == top:
                least = cosine - _TIE
    return near if len(matches) < asked or -2.0 < least <= -_TIE else None


async def _added(
    store: VectorStore,
    namespace: str,
    known: KnownFunctions,
    queries: Vectors,
    found: Sequence[Near],
    *,
    ids: Mapping[str, str],
    also: Sequence[Collection[str]],
) -> bool:
    """Add the cosines of those in ``also`` that are missing; return whether all their records were there."""
    names = dict.fromkeys(name for some, near in zip(also, found, strict=True) for name in some if name not in near)
    if not names:
        return True
    wanted = {ids.get(known.keys[name], known.keys[name]): name for name in names}
    records, vectors = await store.get(namespace, list(wanted))
    if vectors is not None:
        rows = {wanted[record.id]: row.buffer.tolist() for record, row in zip(records, vectors, strict=True)}
        for query, some, near in zip(queries, also, found, strict=True):
            numbers = query.buffer.tolist()
            for name in some:
                if name not in near and name in rows:
                    near[name] = sum(map(mul, rows[name], numbers)) + _GRID - _GRID
    return len(records) == len(wanted)


def _above_zero(near: Near) -> Near:
    if min(near.values(), default=1.0) > 0:
        return near
    return {name: cosine for name, cosine in near.items() if cosine > 0}
