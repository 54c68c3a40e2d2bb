"""An index that FAISS wrote elsewhere is imported with its ids, or refused with the reason."""

from __future__ import annotations

from pathlib import Path

import faiss
import numpy as np
import pytest

from portico import VectorRecord, Vectors
from portico.search import Equal
from portico_faiss.config import FaissSettings
from portico_faiss.store import FaissVectorStore

ROWS, DIMENSIONS = 500, 16


def unit(rows: int) -> np.ndarray:
    drawn = np.random.default_rng(0).standard_normal((rows, DIMENSIONS))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


DATA = unit(ROWS)


def written(folder: Path, factory: str, metric: int = faiss.METRIC_INNER_PRODUCT, numbers: bool = False) -> Path:
    """Write an index of the data; with ``numbers``, vector i has the number 7 i + 3."""
    index = faiss.index_factory(DIMENSIONS, factory, metric)
    index.train(DATA)
    if numbers:
        index.add_with_ids(DATA, 7 * np.arange(ROWS) + 3)
    else:
        index.add(DATA)
    file = folder / f"{factory}-{metric}.faiss"
    faiss.write_index(index, str(file))
    return file


@pytest.fixture
async def store(tmp_path: Path):
    store = FaissVectorStore(FaissSettings(path=tmp_path / "vectors"))
    yield store
    await store.aclose()


@pytest.mark.parametrize(
    ("factory", "numbers"),
    [
        *((factory, False) for factory in ("Flat", "HNSW8", "IVF4,Flat", "IVF4,PQ4x4fs,RFlat")),
        *((factory, True) for factory in ("IVF4,Flat", "IDMap,Flat", "IDMap2,HNSW8", "IDMap,IVF4,Flat")),
    ],
)
async def test_every_vector_is_imported_under_its_id(
    tmp_path: Path, store: FaissVectorStore, factory: str, numbers: bool
) -> None:
    metric = faiss.METRIC_L2 if factory == "Flat" else faiss.METRIC_INNER_PRODUCT
    file = written(tmp_path, factory, metric, numbers)
    records = [VectorRecord(f"note-{row}", {"even": row % 2 == 0}) for row in range(ROWS)]
    given = {7 * row + 3: record for row, record in enumerate(records)} if numbers else records
    assert await store.import_index("n", file, given) == ROWS == await store.count("n")
    names = [f"note-{row}" for row in range(ROWS)]
    assert await store.get("n", names) == (records, Vectors(DATA, *DATA.shape))
    [found] = await store.search("n", Vectors(DATA[4:5], 1, DIMENSIONS), top=1, filter=Equal("even", True))
    assert found[0].id == "note-4"


async def test_codes_are_imported_as_directions_when_that_is_wanted(tmp_path: Path, store: FaissVectorStore) -> None:
    file = written(tmp_path, "IVF4,PQ8x4")
    names = [str(row) for row in range(ROWS)]
    with pytest.raises(ValueError, match="normalise"):
        await store.import_index("n", file, names)
    assert await store.import_index("n", file, names, normalise=True) == ROWS
    found = await store.search("n", Vectors(DATA, *DATA.shape), top=5)
    assert np.mean([str(row) in [match.id for match in some] for row, some in enumerate(found)]) >= 0.9


async def test_what_cannot_be_imported_says_why(tmp_path: Path, store: FaissVectorStore) -> None:
    names = [str(row) for row in range(ROWS)]
    noise = tmp_path / "noise"
    noise.write_bytes(b"These are no vectors. " * 50)
    for file, given, why in (
        (noise, names, "noise"),
        (tmp_path / "none", names, "none"),
        (written(tmp_path, "Flat"), names[:-1], "record"),
        (written(tmp_path, "Flat", faiss.METRIC_L1), names, "cosine"),
        (written(tmp_path, "IVF4,PQ4x4fs"), names, "codes"),
    ):
        with pytest.raises(ValueError, match=why):
            await store.import_index("n", file, given)
    await store.upsert("other", [VectorRecord("a")], Vectors.from_rows([(1, 0)]))
    with pytest.raises(ValueError, match="16 dimensions"):
        await store.import_index("other", written(tmp_path, "Flat"), names)
    assert await store.count("other") == 1


async def test_a_negative_number_is_no_place_from_the_end(tmp_path: Path, store: FaissVectorStore) -> None:
    index = faiss.IndexIDMap(faiss.IndexFlatIP(DIMENSIONS))
    index.add_with_ids(DATA[:2], np.array([0, -1]))
    faiss.write_index(index, str(tmp_path / "negative.faiss"))
    with pytest.raises(ValueError, match="no record"):
        await store.import_index("notes", tmp_path / "negative.faiss", ["a", "b"])
    assert await store.import_index("notes", tmp_path / "negative.faiss", {0: "a", -1: "b"}) == 2


async def test_an_index_in_the_folder_is_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    written(tmp_path, "IVF4,Flat")
    (tmp_path / "Index of things.txt").write_text("Nothing that FAISS wrote, but long enough to be a header.")
    store = FaissVectorStore(FaissSettings(path=tmp_path))
    assert await store.count("n") == await store.count("m") == 0
    await store.aclose()
    [record] = caplog.records
    for words in ("IVF4,Flat-0.faiss", "500 vectors of 16 dimensions", "import_index"):
        assert words in record.message
