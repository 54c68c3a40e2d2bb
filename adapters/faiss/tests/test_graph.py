"""The graph finds nearly all that comparing everything finds, and is only ever a cache."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from portico import VectorRecord, Vectors
from portico.search import Equal
from portico_faiss.config import FaissSettings
from portico_faiss.store import FaissVectorStore

ROWS, DIMENSIONS = 3_000, 32


def clustered(rows: int, seed: int = 0) -> np.ndarray:
    chance = np.random.default_rng(seed)
    centres = chance.standard_normal((rows // 50, DIMENSIONS))
    drawn = centres[chance.integers(0, len(centres), rows)] + 0.5 * chance.standard_normal((rows, DIMENSIONS))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


DATA = clustered(ROWS)
QUERIES = Vectors(DATA[::50].copy(), 60, DIMENSIONS)


async def fill(store: FaissVectorStore, rows: np.ndarray = DATA) -> None:
    for start in range(0, len(rows), 1_500):
        part = rows[start : start + 1_500]
        records = [VectorRecord(str(start + row), {"tenth": row % 10}) for row in range(len(part))]
        await store.upsert("n", records, Vectors(part, *part.shape))


async def ids(store: FaissVectorStore, top: int = 10, **options) -> list[list[str]]:
    return [[match.id for match in found] for found in await store.search("n", QUERIES, top=top, **options)]


def recall(found: list[list[str]], exact: list[list[str]]) -> float:
    return float(np.mean([len(set(some) & set(best)) / len(best) for some, best in zip(found, exact, strict=True)]))


@pytest.fixture
async def exact() -> FaissVectorStore:
    store = FaissVectorStore(FaissSettings())
    await fill(store)
    return store


@pytest.fixture(params=["memory", "folder"])
async def graph(request, tmp_path: Path):
    path = tmp_path / "graph" if request.param == "folder" else None
    store = FaissVectorStore(FaissSettings(path=path, index="hnsw", hnsw_from=1_000))
    await fill(store)
    yield store
    await store.aclose()


def test_the_defaults_are_for_large_namespaces() -> None:
    assert FaissSettings(index="hnsw").indexed_from >= 10_000
    assert FaissSettings().indexed_from == 100_000
    assert FaissSettings(hnsw_from=5).indexed_from == 5


async def test_recall_is_at_least_95_percent(graph, exact) -> None:
    for top in (1, 10, 50):
        reached = recall(await ids(graph, top), await ids(exact, top))
        assert reached >= 0.95, f"recall@{top} is {reached}"


async def test_scores_are_those_of_exact_search(graph, exact) -> None:
    [some, *_], [best, *_] = await graph.search("n", QUERIES), await exact.search("n", QUERIES)
    assert {match.id: match.score for match in best}.items() >= {m.id: m.score for m in some[:5]}.items()


async def test_deleted_records_are_not_found_and_new_ones_are(graph, exact) -> None:
    before = await ids(exact)
    gone = sorted({id for some in before for id in some[:3]})
    for store in (graph, exact):
        assert await store.delete("n", gone) == len(gone)
        fresh = clustered(120, seed=5)
        await store.upsert("n", [VectorRecord(f"new-{row}") for row in range(120)], Vectors(fresh, *fresh.shape))
        await store.upsert("n", [VectorRecord("twin")], QUERIES[0])
    found, expected = await ids(graph), await ids(exact)
    assert not {id for some in found for id in some} & set(gone)
    assert found[0][0] == "twin", "a record that came after the graph was not found"
    assert recall(found, expected) >= 0.95


async def test_enough_are_found_when_most_are_dead(graph, exact) -> None:
    gone = [str(row) for row in range(ROWS) if row % 3 or row < 1_000][:1_450]
    for store in (graph, exact):
        await store.delete("n", gone)
    assert [len(some) for some in await ids(graph, 20)] == [20] * QUERIES.rows
    assert recall(await ids(graph), await ids(exact)) >= 0.95


async def test_filters_are_exact(graph, exact) -> None:
    assert await ids(graph, filter=Equal("tenth", 3)) == await ids(exact, filter=Equal("tenth", 3))


async def folder_store(path: Path, **options) -> FaissVectorStore:
    return FaissVectorStore(FaissSettings(path=path, index="hnsw", hnsw_from=1_000, **options))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filled")

    async def write() -> None:
        store = await folder_store(path)
        await fill(store)
        await store.aclose()

    asyncio.run(write())
    return path


async def test_a_graph_is_read_back_and_used(tmp_path: Path, exact, filled: Path) -> None:
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    [file] = tmp_path.glob("*/graph-*.faiss")
    written = file.stat().st_mtime_ns
    store = await folder_store(tmp_path)
    assert recall(await ids(store), await ids(exact)) >= 0.95
    place = store._namespaces["n"]
    assert place._files._read is not None
    assert place._files._read[1].rows == ROWS
    await store.aclose()
    assert file.stat().st_mtime_ns == written, "the graph was built again"


@pytest.mark.parametrize("damage", ["cut", "flip", "noise", "gone", "renamed"])
async def test_a_damaged_graph_is_replaced(tmp_path: Path, exact, filled: Path, damage: str) -> None:
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    [file] = tmp_path.glob("*/graph-*.faiss")
    content = bytearray(file.read_bytes())
    if damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "flip":
        content[-1_000] ^= 0x55
        file.write_bytes(content)
    elif damage == "noise":
        file.write_bytes(np.random.default_rng(0).bytes(10_000))
    elif damage == "gone":
        file.unlink()
    else:
        file.rename(file.with_name(file.name.replace(f"-{ROWS}-", f"-{ROWS - 1}-")))
    store = await folder_store(tmp_path)
    for _ in range(2):
        # The first search removes what is damaged, the next one makes it again.
        assert recall(await ids(store), await ids(exact)) >= 0.95
    await store.aclose()
    [again] = tmp_path.glob("*/graph-*.faiss")
    assert f"-{ROWS}-" in again.name


async def test_two_stores_share_a_graph(tmp_path: Path, exact) -> None:
    reader = await folder_store(tmp_path)
    writer = await folder_store(tmp_path)
    assert await ids(reader) == [[]] * QUERIES.rows
    await fill(writer)
    assert recall(await ids(reader), await ids(exact)) >= 0.95
    await writer.drop("n")
    assert await ids(reader) == [[]] * QUERIES.rows
    await fill(writer, DATA[::-1].copy())
    assert await reader.count("n") == ROWS
    assert [some[0] for some in await ids(reader, 1)] == [str(ROWS - 1 - 50 * row) for row in range(60)]
    for store in (reader, writer):
        await store.aclose()


async def test_closing_stops_linking_and_the_next_store_goes_on(tmp_path: Path) -> None:
    exact = FaissVectorStore(FaissSettings(path=tmp_path))
    await fill(exact)
    await exact.aclose()
    store = await folder_store(tmp_path)
    await ids(store)
    place = store._namespaces["n"]
    place._stopped = True
    await store.aclose()
    store = await folder_store(tmp_path)
    await ids(store)
    await store.aclose()
    assert len(list(tmp_path.glob("*/graph-*"))) == 1
    assert not list(tmp_path.glob("*/part-*"))
    connection = sqlite3.connect(next(tmp_path.glob("*/store.sqlite")))
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
