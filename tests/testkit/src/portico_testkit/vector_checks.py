"""How the VectorStore kit calls stores and compares what they answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from portico.errors import StoreError, UnsupportedOption
from portico.ports import VectorStore
from portico.search import Filter, FilterSupport, VectorMatch, VectorRecord, Vectors
from portico_testkit._failing import fails_as
from portico_testkit.fakes.vector_store import DictVectorStore
from portico_testkit.vector_strategies import Call, Delete, Drop, Get, Search, Upsert

__all__ = [
    "AWKWARD_IDS",
    "check_failing",
    "check_filtered",
    "close",
    "compare",
    "find",
    "put",
    "same_scores",
    "skip_without",
    "tried",
    "typed",
]

AWKWARD_IDS = (
    *("", " ", "a", "A", "é", "e\u0301", "../up", "a/b", "C:\\x", "con", ".", "nul\x00", "%41", "中文", "\ud800"),
    *("x" * 300, "X" * 300, "'; DROP TABLE records; --"),
)
"""Ids that stores stumble over: separators, case, control characters, half surrogates, SQL."""


async def compare(call: Call, prefix: str, store: VectorStore, plain: DictVectorStore, tolerance: float) -> None:
    """Make one call on both stores, in separate namespaces, and compare their answers."""
    namespace = prefix + call.namespace
    match call:
        case Upsert(_, records, rows):
            written = Vectors.from_rows(rows, dimensions=3)
            await plain.upsert(namespace, records, written)
            await store.upsert(namespace, records, written)
        case Delete(_, ids):
            assert await store.delete(namespace, ids) == await plain.delete(namespace, ids)
        case Drop():
            await plain.drop(namespace)
            await store.drop(namespace)
        case Get(_, ids):
            records_came, came = await store.get(namespace, ids)
            records_expected, expected = await plain.get(namespace, ids)
            assert [(record.id, typed(record.metadata)) for record in records_came] == [
                (record.id, typed(record.metadata)) for record in records_expected
            ]
            assert (came is None) == (expected is None)
            if came is not None and expected is not None:
                same_scores(_units(came), _units(expected), tolerance)
        case Search(_, query, top, filter):
            try:
                store.filter_support.check(filter, store.name)
            except UnsupportedOption:
                return
            queries = Vectors.from_rows([query])
            [found] = await store.search(namespace, queries, top=top, filter=filter)
            [everything] = await plain.search(namespace, queries, top=1_000, filter=filter)
            _same_matches(found, everything, top, tolerance)
    assert await store.count(namespace) == await plain.count(namespace)
    assert sorted([id async for id in store.ids(namespace)]) == sorted([id async for id in plain.ids(namespace)])


def _same_matches(found: Sequence[VectorMatch], everything: Sequence[VectorMatch], top: int, tolerance: float) -> None:
    by_id = {match.id: match for match in everything}
    assert len({match.id for match in found}) == len(found), "an id was found twice"
    same_scores([match.score for match in found], [match.score for match in everything[:top]], tolerance)
    for match in found:
        assert match.id in by_id, f"{match.id} should not be found"
        assert typed(match.metadata) == typed(by_id[match.id].metadata)
        same_scores([match.score], [by_id[match.id].score], tolerance)


def same_scores(came: Sequence[float], expected: Sequence[float], tolerance: float) -> None:
    """Fail unless the numbers are equal but for ``tolerance``."""
    assert len(came) == len(expected), f"{len(came)} instead of {len(expected)}"
    assert all(abs(a - b) <= tolerance for a, b in zip(came, expected, strict=True)), (
        f"{list(came)} instead of {list(expected)}"
    )


def skip_without(store: VectorStore, needed: Filter) -> None:
    """Skip the test unless the store can filter so."""
    try:
        store.filter_support.check(needed, store.name)
    except UnsupportedOption as error:
        pytest.skip(str(error))


async def tried(
    effort: settings, check: Callable[..., Coroutine[Any, Any, None]], *drawn: st.SearchStrategy[Any]
) -> None:
    """Run a property on the running loop: hypothesis is synchronous, so it drives from a thread."""
    loop = asyncio.get_running_loop()

    @settings(effort, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.tuples(*drawn))
    def example(values: tuple[Any, ...]) -> None:
        asyncio.run_coroutine_threadsafe(check(*values), loop).result()

    await asyncio.to_thread(example)


async def check_filtered(store: VectorStore, namespace: str, records: Sequence[VectorRecord], filter: Filter) -> None:
    """Hold a filtered search of all ``records`` of a namespace, of two dimensions, against `FilterSupport.matches`."""
    query = Vectors.from_rows([(1, 0)])
    try:
        store.filter_support.check(filter, store.name)
    except UnsupportedOption:
        with pytest.raises(UnsupportedOption):
            await store.search(namespace, query, filter=filter)
        return
    [found] = await store.search(namespace, query, top=len(records), filter=filter)
    came = sorted(match.id for match in found)
    expected = sorted(record.id for record in records if FilterSupport.matches(filter, record.metadata))
    assert came == expected, f"{filter} kept {came} instead of {expected}"


async def check_failing(store: VectorStore | None) -> None:
    """Call each method of a store that cannot read what it keeps: a search fails, others may."""
    if store is None:
        pytest.skip("there is no fixture `failing_store`: a store that cannot fail")

    async def ids() -> list[str]:
        return [id async for id in store.ids("n")]

    row = Vectors.from_rows([(1, 0)])
    await fails_as(StoreError, store.search("n", row), "search")
    others: dict[str, Callable[[], Awaitable[object]]] = {
        "get": lambda: store.get("n", ["a"]),
        "count": lambda: store.count("n"),
        "ids": ids,
        "delete": lambda: store.delete("n", ["a"]),
        "upsert": lambda: store.upsert("n", [VectorRecord("a")], row),
        "drop": lambda: store.drop("n"),  # the last: it may mend the store
    }
    for what, call in others.items():
        await fails_as(StoreError, call(), what, must=False)


async def put(store: VectorStore, rows: Mapping[str, Sequence[float]]) -> None:
    """Write rows without metadata to the namespace ``n``."""
    await store.upsert("n", [VectorRecord(id) for id in rows], Vectors.from_rows(rows.values()))


async def find(
    store: VectorStore, query: Sequence[float], *, top: int = 10, filter: Filter | None = None
) -> list[VectorMatch]:
    """Search the namespace ``n`` with one query."""
    [found] = await store.search("n", Vectors.from_rows([query]), top=top, filter=filter)
    return found


async def close(store: VectorStore) -> None:
    """Close a store that can be closed."""
    aclose: Callable[[], Awaitable[None]] | None = getattr(store, "aclose", None)
    if aclose is not None:
        await aclose()


def typed(metadata: Any) -> dict[str, Any]:
    """Return metadata in a form in which True, 1 and 1.0 differ, and lists and tuples do not."""
    return {
        field: [(type(element).__name__, element) for element in value]
        if isinstance(value, list | tuple)
        else (type(value).__name__, value)
        for field, value in metadata.items()
    }


def _units(vectors: Vectors) -> list[float]:
    rows = np.frombuffer(vectors.buffer.cast("B"), np.float32).astype(np.float64).reshape(vectors.rows, -1)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return list(np.divide(rows, lengths, out=rows, where=lengths > 0).ravel().tolist())
