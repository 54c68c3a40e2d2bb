"""Any index of `faiss.index_factory` is trained, kept, searched and retrained; it is only ever a cache."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from portico import VectorRecord, Vectors
from portico.errors import ConfigurationError
from portico.ports import IndexProgress
from portico.search import Equal
from portico_faiss._index import FaissIndex
from portico_faiss.config import FaissSettings
from portico_faiss.store import FaissVectorStore

ROWS, DIMENSIONS = 5_000, 32


def clustered(rows: int, seed: int = 0, dimensions: int = DIMENSIONS) -> np.ndarray:
    chance = np.random.default_rng(seed)
    centres = np.random.default_rng(1).standard_normal((100, dimensions))
    drawn = centres[chance.integers(0, len(centres), rows)] + 0.5 * chance.standard_normal((rows, dimensions))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


DATA = clustered(ROWS)
QUERIES = Vectors(clustered(60, seed=7), 60, DIMENSIONS)


def as_vectors(rows: np.ndarray) -> Vectors:
    return Vectors(rows, *rows.shape)


async def fill(store: FaissVectorStore, rows: np.ndarray = DATA, first: int = 0) -> None:
    records = [VectorRecord(str(first + row), {"tenth": row % 10}) for row in range(len(rows))]
    await store.upsert("n", records, as_vectors(rows))


async def ids(store: FaissVectorStore, top: int = 10, **options) -> list[list[str]]:
    return [[match.id for match in found] for found in await store.search("n", QUERIES, top=top, **options)]


def recall(found: list[list[str]], exact: list[list[str]]) -> float:
    return float(np.mean([len(set(some) & set(best)) / len(best) for some, best in zip(found, exact, strict=True)]))


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows of each index that is searched."""
    rows: list[int] = []
    candidates = FaissIndex.candidates

    def noted(index: FaissIndex, *arguments):
        rows.append(index.rows)
        return candidates(index, *arguments)

    monkeypatch.setattr(FaissIndex, "candidates", noted)
    return rows


def graphs(path: Path) -> list[str]:
    return sorted(file.name for file in path.glob("*/graph-*.faiss"))


@pytest.mark.parametrize("kept", ["memory", "folder"])
@pytest.mark.parametrize(
    ("factory", "search"), [("IVF16,Flat", "nprobe=8"), ("IVF16,PQ8x4", None), ("PCA16,SQ8", None), ("HNSW16", None)]
)
async def test_an_index_of_any_factory_finds_nearly_all(
    tmp_path: Path, kept: str, factory: str, search: str | None, searched: list[int]
) -> None:
    exact = FaissVectorStore(FaissSettings(index="exact"))
    path = tmp_path if kept == "folder" else None
    store = FaissVectorStore(FaissSettings(path=path, factory=factory, search=search))
    for each in (exact, store):
        await fill(each)
    assert recall(await ids(store), await ids(exact)) >= 0.95
    assert searched == [ROWS]
    assert await ids(store, filter=Equal("tenth", 3)) == await ids(exact, filter=Equal("tenth", 3))
    # Those that an index finds are gone; new ones are found beside it.
    gone = sorted({id for some in await ids(exact) for id in some[:5]})
    for each in (exact, store):
        assert await each.delete("n", gone) == len(gone)
        await fill(each, clustered(100, seed=3), first=ROWS)
    assert recall(await ids(store), await ids(exact)) >= 0.95
    await store.aclose()


async def test_an_index_is_trained_once_and_kept(tmp_path: Path) -> None:
    settings = FaissSettings(path=tmp_path, factory="IVF16,Flat")
    store = FaissVectorStore(settings)
    trainings: list[IndexProgress] = []
    tell = store._tell

    def note(activity: IndexProgress | None) -> None:
        if activity is not None and "Training" in (activity.waiting or ""):
            trainings.append(activity)
        tell(activity)

    store._tell = note
    await fill(store, DATA[:1_100])
    await fill(store, DATA[1_100:], first=1_100)
    assert [each.waiting for each in trainings] == ["Training IVF16,Flat with 1,100 of 1,100 vectors"]
    assert store.activity is None
    [name] = graphs(tmp_path)
    await store.aclose()
    store = FaissVectorStore(settings)
    store._tell = note
    await ids(store)
    assert graphs(tmp_path) == [name], "it was trained again"
    # Eight times the vectors of the training outgrow it.
    await fill(store, clustered(4_000, seed=4), first=ROWS)
    assert [each.waiting for each in trainings[1:]] == ["Training IVF16,Flat with 9,000 of 9,000 vectors"]
    await store.aclose()


def test_thousands_and_millions_of_lists_are_counted_as_faiss_counts_them() -> None:
    assert [FaissSettings(factory=f"IVF{lists},Flat").centroids for lists in ("64", "2k", "1M")] == [64, 2048, 1 << 20]


async def test_another_factory_makes_another_index(tmp_path: Path, searched: list[int]) -> None:
    names = []
    for factory in ("IVF16,Flat", "IVF8,Flat", None):
        store = FaissVectorStore(FaissSettings(path=tmp_path, factory=factory, hnsw_from=1_000))
        if factory == "IVF16,Flat":
            await fill(store)
        await ids(store)
        names += graphs(tmp_path)
        await store.aclose()
    assert len(set(names)) == len(names) == 3
    assert searched == [ROWS] * 3


async def test_too_few_vectors_are_compared_exactly_which_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    exact = FaissVectorStore(FaissSettings(index="exact"))
    store = FaissVectorStore(FaissSettings(path=tmp_path, factory="IVF200,Flat"))
    for each in (exact, store):
        await fill(each)
    assert await ids(store) == await ids(exact)
    await store.aclose()
    [record] = [record for record in caplog.records if record.name == "portico_faiss"]
    assert record.levelno == logging.WARNING
    assert "IVF200,Flat" in record.message
    assert "7800" in record.message


@pytest.mark.parametrize(
    "settings",
    [{"factory": each} for each in ("IFV16,Flat", "", "IVF0,Flat", "IVF2000000000,Flat")] + [{"search": "nprobe=4"}],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        FaissSettings(**settings)
    with pytest.raises(ValueError, match="index"):
        FaissSettings(index="hnsw", factory="IVF16,Flat")


@pytest.mark.parametrize(
    ("factory", "search", "named"),
    [
        ("IVF16,PQ7", None, "factory = 'IVF16,PQ7'"),
        ("LSH", None, "LSH"),
        ("IDMap,Flat", None, "IDMap"),
        *(("IVF16,Flat", search, f"search = '{search}'") for search in ("nprob=4", "nprobe", "efSearch=9")),
    ],
)
async def test_what_does_not_fit_the_vectors_is_refused_before_anything_is_written(
    factory: str, search: str | None, named: str
) -> None:
    store = FaissVectorStore(FaissSettings(factory=factory, search=search))
    with pytest.raises(ConfigurationError, match=named) as raised:
        await fill(store)
    assert "/" not in str(raised.value), "a place in FAISS's sources is shown"
    assert await store.count("n") == 0


@pytest.mark.parametrize("damage", [b"noise" * 1_000, None])
async def test_a_damaged_index_is_made_again(tmp_path: Path, damage: bytes | None) -> None:
    store = FaissVectorStore(FaissSettings(path=tmp_path, factory="IVF16,Flat"))
    await fill(store)
    await store.aclose()
    [file] = tmp_path.glob("*/graph-*.faiss")
    file.write_bytes(file.read_bytes()[:-1_000] if damage is None else damage)
    store = FaissVectorStore(FaissSettings(path=tmp_path, factory="IVF16,Flat"))
    for _ in range(2):
        assert [len(some) for some in await ids(store)] == [10] * 60
    await store.aclose()
    [again] = tmp_path.glob("*/graph-*.faiss")
    assert again.stat().st_size > 100_000
