"""What the FAISS store promises beyond the contract."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from enum import StrEnum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from portico import VectorRecord, Vectors
from portico.search import Equal, FilterSupport, Range
from portico_faiss import _plugin
from portico_faiss._files import folder_name
from portico_faiss._search import StoredEntries
from portico_faiss.config import FaissSettings
from portico_faiss.store import FaissVectorStore
from portico_testkit.vector_strategies import filters, metadata


@pytest.fixture(params=["memory", "folder"])
async def store(request, tmp_path: Path):
    store = FaissVectorStore(FaissSettings(path=tmp_path / "vectors" if request.param == "folder" else None))
    yield store
    await store.aclose()


def random_rows(rows: int, dimensions: int = 16, seed: int = 0) -> np.ndarray:
    drawn = np.random.default_rng(seed).standard_normal((rows, dimensions))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


async def put(store: FaissVectorStore, rows: np.ndarray, **metadata) -> None:
    records = [VectorRecord(str(number), {"number": number, **metadata}) for number in range(len(rows))]
    await store.upsert("n", records, Vectors(rows, *rows.shape))


async def test_what_is_registered_can_be_made() -> None:
    [registration] = _plugin.portico_vector_stores()
    assert registration.name == FaissVectorStore.name
    module, attribute = registration.factory.split(":")
    assert f"{FaissVectorStore.__module__}:{FaissVectorStore.__name__}" == f"{module}:{attribute}"
    assert registration.settings == f"{FaissSettings.__module__}:{FaissSettings.__name__}"


def test_listing_the_plugin_loads_no_vendor_and_exact_search_no_faiss() -> None:
    script = """
import sys, portico_faiss._plugin as plugin
plugin.portico_vector_stores()
print([name for name in ("faiss", "numpy", "attrs", "sqlite3") if name in sys.modules])
import portico_faiss.store
print("faiss" in sys.modules)
"""
    printed = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert printed.split("\n")[:2] == ["[]", "False"]


async def test_making_a_store_opens_nothing(tmp_path: Path) -> None:
    store = FaissVectorStore(FaissSettings(path=tmp_path / "not there"))
    assert await store.count("n") == 0
    assert list(tmp_path.iterdir()) == []
    await store.aclose()


async def test_unit_vectors_come_back_bit_for_bit(store) -> None:
    rows = random_rows(50)
    await put(store, rows)
    _, vectors = await store.get("n", [str(number) for number in range(50)])
    assert vectors == Vectors(rows, *rows.shape)


async def test_equal_vectors_have_equal_scores_and_the_oldest_comes_first(store) -> None:
    rows = np.repeat(random_rows(7, 33), 150, axis=0)
    np.random.default_rng(1).shuffle(rows)
    await put(store, rows)
    for query in random_rows(7, 33):
        [found] = await store.search("n", Vectors(query, 1, 33), top=100)
        assert len({match.score for match in found}) == 1
        same = np.flatnonzero((rows == rows[int(found[0].id)]).all(axis=1))
        assert [int(match.id) for match in found] == same[:100].tolist()


async def test_one_query_and_many_give_the_same(store) -> None:
    rows, queries = random_rows(3_000), random_rows(40, seed=1)
    await put(store, rows)
    together = await store.search("n", Vectors(queries, *queries.shape), top=7)
    apart = [(await store.search("n", Vectors(query, 1, 16), top=7))[0] for query in queries]
    assert together == apart


@pytest.mark.parametrize("keeps", [1, 3, 300, 12_000])
async def test_filters_of_any_strength_find_the_best(store, keeps: int) -> None:
    rows = random_rows(12_000, 8)
    await put(store, rows, kind="x")
    filter = Range("number", below=keeps)
    for query in random_rows(3, 8, seed=2):
        [found] = await store.search("n", Vectors(query, 1, 8), top=10, filter=filter)
        order = np.argsort(-(rows[:keeps] @ query), kind="stable")[:10]
        assert [int(match.id) for match in found] == order.tolist()
    [found] = await store.search("n", Vectors(rows[:1], 1, 8), filter=Equal("kind", "X"))
    assert found == []


@given(metadata(), filters())
def test_a_scan_of_the_database_keeps_what_the_filter_keeps(fields, filter) -> None:
    import sqlite3

    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE records (slot, metadata)")
    text = VectorRecord.encode_metadata(VectorRecord("r", fields).plain_metadata())
    connection.execute("INSERT INTO records VALUES (0, ?)", [text])
    found = StoredEntries(connection, Path()).scan(filter).tolist()
    connection.close()
    assert found == ([0] if FilterSupport.matches(filter, fields) else [])


@given(st.text(), st.text())
def test_namespaces_have_folders_of_their_own_on_any_file_system(one: str, other: str) -> None:
    names = [folder_name(one), folder_name(other)]
    assert (names[0].casefold() == names[1].casefold()) == (one == other)
    for name in names:
        assert len(name) <= 130
        assert not set(name) & set('/\\:*?"<>|. \0')


@pytest.mark.parametrize("value", [None, {"a": 1}, b"x", [None], [["a"]], np.float32(1), np.int64(1)])
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


@pytest.mark.parametrize("top", [0, -1])
async def test_top_is_at_least_one(store, top: int) -> None:
    with pytest.raises(ValueError, match="top"):
        await store.search("n", Vectors.from_rows([(1, 0)]), top=top)


async def test_replacing_again_and_again_does_not_grow_the_store(tmp_path: Path) -> None:
    store = FaissVectorStore(FaissSettings(path=tmp_path))
    for turn in range(30):
        await put(store, random_rows(500, seed=turn))
    [file] = tmp_path.glob("*/vectors-*.f32")
    assert file.stat().st_size <= 4 * 500 * 16 * 4
    rows = random_rows(500, seed=29)
    [[best]] = await store.search("n", Vectors(rows[7], 1, 16), top=1)
    assert best.id == "7"
    await store.aclose()


async def test_ids_go_on_through_changes(store) -> None:
    await put(store, random_rows(3_000))
    seen = []
    async for id in store.ids("n"):
        if len(seen) == 1_500:
            await store.delete("n", [str(number) for number in range(0, 3_000, 2)])
        seen.append(id)
    assert len(seen) == len(set(seen))
    assert set(seen) >= {str(number) for number in range(1, 3_000, 2)}


async def test_a_closed_store_opens_again(store) -> None:
    await put(store, random_rows(5))
    await store.aclose()
    await store.aclose()
    assert await store.count("n") == 5


async def test_one_store_serves_several_event_loops(store) -> None:
    def in_a_loop(writer: int) -> None:
        async def work() -> None:
            for number in range(10):
                record = VectorRecord(f"{writer}-{number}")
                await store.upsert("n", [record], Vectors.from_rows([(1, number)]))
                await store.search("n", Vectors.from_rows([(1, 0)]))

        asyncio.run(work())

    await asyncio.gather(*(asyncio.to_thread(in_a_loop, writer) for writer in range(4)))
    assert await store.count("n") == 40


MEMORY = """
import asyncio, json, resource, sys
import numpy as np
from pathlib import Path
from portico import VectorRecord, Vectors
from portico_faiss.config import FaissSettings
from portico_faiss.store import FaissVectorStore

async def main(folder, rows):
    store = FaissVectorStore(FaissSettings(path=Path(folder)))
    chance = np.random.default_rng(0)
    for start in range(0, rows, 1000):
        part = chance.standard_normal((1000, 64), dtype=np.float32)
        records = [VectorRecord(f"id-{start + row}", {"text": "some text " * 20, "n": row}) for row in range(1000)]
        await store.upsert("n", records, Vectors(part, *part.shape))
        await store.count("n")
    await store.aclose()
    for line in open("/proc/self/status"):
        if line.startswith(("VmHWM", "RssFile")):
            print(line.split()[1])

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_memory_does_not_grow_with_what_is_written(tmp_path: Path) -> None:
    peaks = []
    for rows in (4_000, 40_000):
        printed = subprocess.run(
            [sys.executable, "-c", MEMORY, str(tmp_path / str(rows)), str(rows)], check=True, capture_output=True
        ).stdout
        peaks.append(int(printed.split()[0]))
    assert peaks[1] <= 1.3 * peaks[0], f"{peaks} KiB for 4,000 and 40,000 records"


def test_settings_have_words_and_bounds() -> None:
    for attribute in FaissSettings.__attrs_attrs__:
        assert attribute.metadata["doc"].endswith("."), attribute.name
    with pytest.raises(ValueError):
        FaissSettings(index="flat")
    with pytest.raises(ValueError):
        FaissSettings(hnsw_search=0)
    assert json.dumps(FaissSettings().hnsw_neighbours)
