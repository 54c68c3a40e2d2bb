"""What the Milvus store promises beyond the contract."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from enum import StrEnum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings, strategies as st

from portico import VectorRecord, Vectors
from portico.search import And, AnyOf, Equal, FilterSupport, Not, Or, Range
from portico_milvus import _plugin, store as store_module
from portico_milvus.config import MilvusSettings
from portico_milvus.store import MilvusVectorStore
from portico_testkit.vector_checks import tried, typed


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[MilvusVectorStore]:
    store = MilvusVectorStore(MilvusSettings(uri=str(tmp_path / "vectors.db")))
    yield store
    await store.aclose()


def random_rows(rows: int, dimensions: int = 16, seed: int = 0) -> np.ndarray:
    drawn = np.random.default_rng(seed).standard_normal((rows, dimensions))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


async def put(store: MilvusVectorStore, rows: np.ndarray, namespace: str = "n") -> None:
    records = [VectorRecord(str(number), {"number": number}) for number in range(len(rows))]
    await store.upsert(namespace, records, Vectors(rows, *rows.shape))


def test_what_is_registered_is_there() -> None:
    [registration] = _plugin.portico_vector_stores()
    assert registration.name == MilvusVectorStore.name
    assert registration.factory == f"{MilvusVectorStore.__module__}:{MilvusVectorStore.__name__}"
    assert registration.settings == f"{MilvusSettings.__module__}:{MilvusSettings.__name__}"


async def test_making_a_store_and_closing_it_opens_nothing(tmp_path: Path) -> None:
    store = MilvusVectorStore(MilvusSettings(uri=str(tmp_path / "not there")))
    assert await store.search("n", Vectors.from_rows([], dimensions=2)) == []
    await store.aclose()
    assert list(tmp_path.iterdir()) == []


TEXTS = st.text(st.characters(), max_size=12) | st.sampled_from(
    ['"]) or pk != "', "') or 1 == 1 --", "{v}", "\\", '\\"', "\0", "\n", "\ud83d\ude00", "x" * 300, "$meta", "100%_"]
)
VALUES = TEXTS | st.integers() | st.floats() | st.booleans()


async def test_strange_names_ids_fields_and_values_come_back_and_inject_nothing(store) -> None:
    numbers = itertools.count()

    async def check(namespace, ids, field, values, asked) -> None:
        namespace = f"{next(numbers)}{namespace}"
        records = [
            VectorRecord(id, {field: value, "all": tuple(values)}) for id, value in zip(ids, values, strict=False)
        ]
        vectors = Vectors.from_rows([(1, number) for number in range(len(records))])
        await store.upsert(namespace, records, vectors)
        try:
            found, _ = await store.get(namespace, ids)
            assert [(record.id, repr(typed(record.metadata))) for record in found] == [
                (record.id, repr(typed(record.metadata))) for record in records
            ]
            assert sorted([id async for id in store.ids(namespace)]) == sorted(record.id for record in records)
            equal = Equal(field, asked)
            for filter in (equal, Not(equal), Or((AnyOf("all", (asked,)), And((equal, Not(equal))))), Not(Not(equal))):
                [kept] = await store.search(namespace, Vectors.from_rows([(1, 0)]), top=50, filter=filter)
                expected = [record.id for record in records if FilterSupport.matches(filter, record.metadata)]
                assert sorted(match.id for match in kept) == sorted(expected), filter
            assert await store.delete(namespace, [*ids, asked if isinstance(asked, str) else "other"]) >= len(records)
            assert await store.count(namespace) == 0
        finally:
            await store.drop(namespace)

    drawn = TEXTS, st.lists(TEXTS, min_size=3, max_size=6, unique=True), TEXTS, st.lists(VALUES, min_size=3), VALUES
    await tried(settings(max_examples=40), check, *drawn)


async def test_a_range_over_lists_is_compared_here_when_milvus_finds_others(store, monkeypatch) -> None:
    """A list may go round a range, which the server cannot tell; near records that do are not in the way."""
    asked = []
    search = store_module._Search._ask
    monkeypatch.setattr(
        store_module._Search, "_ask", lambda self, *given: asked.append(given[-1]) or search(self, *given)
    )
    records = [VectorRecord(str(number), {"n": [0, 10] if number < 200 else [5, 10]}) for number in range(210)]
    await store.upsert("n", records, Vectors.from_rows([(1, number / 100) for number in range(210)]))
    [found] = await store.search("n", Vectors.from_rows([(1, 0)]), top=3, filter=Range("n", at_least=4, at_most=6))
    assert [match.id for match in found] == ["200", "201", "202"]
    assert asked == [3]
    asked.clear()
    await store.search("n", Vectors.from_rows([(1, 0)]), top=3, filter=Range("n", at_least=4))
    assert asked == [3]


async def test_what_the_server_cannot_find_at_once_is_compared_here(store, monkeypatch) -> None:
    monkeypatch.setattr(store_module, "MOST", 8)
    rows = random_rows(40)
    await put(store, rows)
    filter = Not(And((Range("number", at_least=10), Equal("number", 12))))
    for given in (None, filter):
        found = await store.search("n", Vectors(rows[:2], 2, 16), top=30, filter=given)
        for query, matched in zip(rows[:2], found, strict=True):
            order = np.argsort(-(rows @ query)).tolist()
            kept = [number for number in order if given is None or number != 12]
            assert [match.metadata["number"] for match in matched] == kept[:30]


async def test_unit_vectors_come_back_bit_for_bit(store) -> None:
    rows = random_rows(50)
    await put(store, rows)
    _, vectors = await store.get("n", [str(number) for number in range(50)])
    assert vectors == Vectors(rows, *rows.shape)


@pytest.mark.parametrize("index", ["exact", "hnsw", "auto"])
@pytest.mark.parametrize("consistency", ["strong", "session", "bounded", "eventually"])
async def test_every_index_and_consistency_is_taken(tmp_path: Path, index, consistency) -> None:
    store = MilvusVectorStore(MilvusSettings(uri=str(tmp_path / "vectors.db"), index=index, consistency=consistency))
    rows = random_rows(600)
    await put(store, rows)
    [found] = await store.search("n", Vectors(rows[5], 1, 16), top=3, filter=Range("number", below=10))
    assert found[0].id == "5"
    assert len(found) == 3
    await store.aclose()


async def test_vectors_of_one_dimension_are_refused(store) -> None:
    with pytest.raises(ValueError, match="two dimensions"):
        await store.upsert("n", [VectorRecord("a")], Vectors.from_rows([(3,)]))
    assert await store.count("n") == 0


async def test_a_write_larger_than_a_request_is_several(tmp_path: Path, monkeypatch) -> None:
    from pymilvus.client.prepare import Prepare

    sizes = []
    prepare = Prepare.row_upsert_param

    def noted(*given, **more):
        request = prepare(*given, **more)
        sizes.append((request.num_rows, request.ByteSize()))
        return request

    monkeypatch.setattr(Prepare, "row_upsert_param", noted)
    monkeypatch.setattr("portico_milvus._records._REQUEST_BYTES", 1024 * 1024)
    store = MilvusVectorStore(MilvusSettings(uri=str(tmp_path / "vectors.db")))
    rows = random_rows(1_500, 256)
    await put(store, rows, "large")
    assert sum(rows for rows, _ in sizes) == 1_500
    assert 0.8 * 1024 * 1024 < sizes[0][1] <= 1024 * 1024
    assert await store.count("large") == 1_500
    [[best]] = await store.search("large", Vectors(rows[999], 1, 256), top=1)
    assert best.id == "999"
    await store.aclose()


@pytest.mark.parametrize(
    ("id", "metadata", "words"),
    [
        ("x" * 65_536, {}, "its id take 65,536 bytes; Milvus keeps 65,535"),
        ("é" * 32_768, {}, "its id take 65,536 bytes"),
        ("a", {"text": "x" * 65_536}, "its metadata take 65,547 bytes"),
        ("a", {"n": list(range(4_100))}, "4,101 different values"),
        ("a", {f"{number}": "x" * 40 for number in range(450)}, "its bounds take"),
    ],
    ids=["long id", "long id in bytes", "long metadata", "many values", "many fields"],
)
async def test_what_a_field_cannot_hold_is_refused_and_nothing_written(store, id, metadata, words) -> None:
    records = [VectorRecord("before"), VectorRecord(id, metadata)]
    with pytest.raises(ValueError, match=words):
        await store.upsert("n", records, Vectors.from_rows([(1, 0), (0, 1)]))
    assert await store.count("n") == 0


async def test_the_longest_ids_and_metadata_are_kept(store) -> None:
    record = VectorRecord("x" * 65_535, {"text": "x" * (65_535 - len('{"text":""}'))})
    await store.upsert("n", [record], Vectors.from_rows([(1, 0)]))
    assert (await store.get("n", [record.id]))[0] == [record]


@pytest.mark.parametrize("value", [None, {"a": 1}, b"x", [None], [["a"]], np.float32(1), np.int64(1)], ids=repr)
async def test_metadata_of_other_kinds_are_refused(store, value) -> None:
    records = [VectorRecord("a"), VectorRecord("b", {"field": value})]
    with pytest.raises(TypeError, match="field"):
        await store.upsert("n", records, Vectors.from_rows([(1, 0), (0, 1)]))
    assert await store.count("n") == 0


async def test_enumerations_are_kept_as_what_they_are_worth(store) -> None:
    class Kind(StrEnum):
        NOTE = "note"

    await store.upsert("n", [VectorRecord("a", {"kind": Kind.NOTE})], Vectors.from_rows([(1, 0)]))
    [[match]] = await store.search("n", Vectors.from_rows([(1, 0)]), filter=Equal("kind", "note"))
    assert type(match.metadata["kind"]) is str


async def test_a_namespace_that_another_store_drops_and_makes_anew_is_read_anew(store) -> None:
    other = MilvusVectorStore(store._settings)
    await store.upsert("n", [VectorRecord("old")], Vectors.from_rows([(1, 0)]))
    assert await other.count("n") == 1
    await store.drop("n")
    assert await other.count("n") == 0
    await other.upsert("n", [VectorRecord("new")], Vectors.from_rows([(1, 0, 0)]))
    [[match]] = await store.search("n", Vectors.from_rows([(1, 0, 0)]))
    assert match.id == "new"
    with pytest.raises(ValueError, match="dimensions"):
        await store.upsert("n", [VectorRecord("old")], Vectors.from_rows([(1, 0)]))
    await other.aclose()
    assert await store.count("n") == 1


async def test_a_closed_store_opens_again(store) -> None:
    await put(store, random_rows(5))
    await store.aclose()
    await store.aclose()
    assert await store.count("n") == 5


async def test_one_store_serves_several_event_loops(store) -> None:
    def in_a_loop(writer: int) -> None:
        async def work() -> None:
            for number in range(5):
                record = VectorRecord(f"{writer}-{number}")
                await store.upsert("n", [record], Vectors.from_rows([(1, number)]))
                await store.search("n", Vectors.from_rows([(1, 0)]))

        asyncio.run(work())

    await asyncio.gather(*(asyncio.to_thread(in_a_loop, writer) for writer in range(4)))
    assert await store.count("n") == 20


async def test_ids_go_on_through_changes(store) -> None:
    await put(store, random_rows(2_500, 4))
    seen = []
    async for id in store.ids("n"):
        if len(seen) == 1_200:
            await store.delete("n", [str(number) for number in range(0, 2_500, 2)])
        seen.append(id)
    assert len(seen) == len(set(seen))
    assert set(seen) >= {str(number) for number in range(1, 2_500, 2)}
