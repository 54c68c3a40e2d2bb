"""Files that are not as they were written give a clear error, or are made again where that is possible."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from portico import VectorRecord, Vectors
from portico.errors import StoreBusy, StoreError
from portico_faiss.config import FaissSettings
from portico_faiss.store import FaissVectorStore

QUERY = Vectors.from_rows([[1.0, 0.0, 0.0]])


async def written(folder: Path, rows: int = 300) -> Path:
    store = FaissVectorStore(FaissSettings(path=folder))
    await put(store, 0, rows)
    await store.aclose()
    [namespace] = folder.iterdir()
    return namespace


async def put(store: FaissVectorStore, first: int, rows: int) -> None:
    await store.upsert(
        "n",
        [VectorRecord(str(first + row), {"text": "x" * 50}) for row in range(rows)],
        Vectors.from_rows([[1.0, row, 1.0] for row in range(rows)]),
    )


async def errors(folder: Path) -> list[str]:
    """Return what reading and writing say, on a fresh store."""
    found = []
    for call in ("search", "get", "count", "ids", "upsert", "delete"):
        store = FaissVectorStore(FaissSettings(path=folder))
        try:
            if call == "search":
                await store.search("n", QUERY)
            elif call == "get":
                await store.get("n", ["1"])
            elif call == "count":
                await store.count("n")
            elif call == "ids":
                assert len([id async for id in store.ids("n")]) > 0
            elif call == "upsert":
                await store.upsert("n", [VectorRecord("new")], QUERY)
            else:
                await store.delete("n", ["1"])
        except StoreError as error:
            found.append(f"{call}: {error}")
        finally:
            await store.aclose()
    return found


@pytest.mark.parametrize("keep", [0, 1, 100, 0.5, 0.9])
async def test_a_cut_off_database_is_reported(tmp_path: Path, keep: float) -> None:
    namespace = await written(tmp_path)
    database = namespace / "store.sqlite"
    content = database.read_bytes()
    database.write_bytes(content[: int(keep * len(content)) if isinstance(keep, float) else keep])
    found = await errors(tmp_path)
    assert any(line.startswith("search") for line in found), found
    for line in found:
        assert "store.sqlite" in line, line
        assert f"Delete the folder {namespace}" in line, line


async def test_damage_that_no_message_can_quote_is_reported(tmp_path: Path) -> None:
    namespace = await written(tmp_path)
    database = namespace / "store.sqlite"
    content = database.read_bytes()
    assert b"CREATE TABLE state" in content
    database.write_bytes(content.replace(b"CREATE TABLE state", b"CREATE TABL\xff state"))
    found = await errors(tmp_path)
    assert len(found) == 6, found
    assert all("is damaged" in line and f"Delete the folder {namespace}" in line for line in found), found


async def test_metadata_that_is_no_text_is_reported(tmp_path: Path) -> None:
    namespace = await written(tmp_path)
    with sqlite3.connect(namespace / "store.sqlite") as connection:
        connection.execute("UPDATE records SET metadata = CAST(x'ff5b31' AS TEXT)")
    connection.close()
    found = await errors(tmp_path)
    assert any(line.startswith("get") for line in found), found
    assert all("is damaged" in line for line in found), found


async def test_a_database_of_noise_is_reported(tmp_path: Path) -> None:
    namespace = await written(tmp_path)
    (namespace / "store.sqlite").write_bytes(np.random.default_rng(0).bytes(20_000))
    found = await errors(tmp_path)
    assert len(found) == 6, found
    assert all("is damaged" in line for line in found)


@pytest.mark.parametrize("seed", range(12))
async def test_noise_anywhere_in_a_database_never_escapes_as_another_error(tmp_path: Path, seed: int) -> None:
    namespace = await written(tmp_path)
    database = namespace / "store.sqlite"
    content = bytearray(database.read_bytes())
    chance = np.random.default_rng(seed)
    start = int(chance.integers(0, len(content) - 600))
    content[start : start + 600] = chance.bytes(600)
    database.write_bytes(content)
    await errors(tmp_path)


async def test_a_database_of_something_else_is_reported(tmp_path: Path) -> None:
    namespace = await written(tmp_path)
    for file in namespace.iterdir():
        file.unlink()
    connection = sqlite3.connect(namespace / "store.sqlite")
    connection.execute("CREATE TABLE state (something)")
    connection.close()
    assert all("is damaged" in line for line in await errors(tmp_path))


async def test_a_folder_of_another_namespace_is_reported(tmp_path: Path) -> None:
    namespace = await written(tmp_path)
    namespace.rename(tmp_path / "ns-other")
    store = FaissVectorStore(FaissSettings(path=tmp_path))
    with pytest.raises(StoreError, match="belongs to the namespace"):
        await store.search("other", QUERY)
    await store.aclose()


@pytest.mark.parametrize("change", ["cut", "empty", "gone"])
async def test_missing_vectors_are_reported(tmp_path: Path, change: str) -> None:
    namespace = await written(tmp_path)
    [file] = namespace.glob("vectors-*")
    if change == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[: 1_000 if change == "cut" else 0])
    store = FaissVectorStore(FaissSettings(path=tmp_path))
    with pytest.raises(StoreError, match=file.name):
        await store.search("n", QUERY)
    with pytest.raises(StoreError, match=file.name):
        await put(store, 900, 1)
    await store.aclose()


@pytest.mark.parametrize("number", [0.5, np.nan])
async def test_vectors_that_are_not_those_that_were_written_are_reported(tmp_path: Path, number: float) -> None:
    namespace = await written(tmp_path)
    store = FaissVectorStore(FaissSettings(path=tmp_path))
    await put(store, 300, 20)
    await store.aclose()
    [file] = namespace.glob("vectors-*")
    rows = np.fromfile(file, np.float32)
    rows[301 * 3] = number
    rows.tofile(file)
    with pytest.raises(StoreError, match=f"{file.name} is damaged"):
        await store.search("n", QUERY)
    await store.drop("n")
    await put(store, 0, 3)
    assert len((await store.search("n", QUERY))[0]) == 3
    await store.aclose()


async def test_damage_is_not_copied_when_records_are_moved_together(tmp_path: Path) -> None:
    namespace = await written(tmp_path, 3_000)
    [file] = namespace.glob("vectors-*")
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    store = FaissVectorStore(FaissSettings(path=tmp_path))
    with pytest.raises(StoreError, match=f"{file.name} is damaged"):
        await store.delete("n", [str(number) for number in range(2_000)])
    await store.aclose()


async def test_what_a_killed_writer_left_behind_the_vectors_is_overwritten(tmp_path: Path) -> None:
    namespace = await written(tmp_path)
    [file] = namespace.glob("vectors-*")
    with file.open("ab") as stream:
        stream.write(b"\xff" * 1_000)
    store = FaissVectorStore(FaissSettings(path=tmp_path))
    await store.upsert("n", [VectorRecord("new")], QUERY)
    [found] = await store.search("n", QUERY, top=1_000)
    assert len(found) == 301
    assert found[0].id == "new"
    await store.aclose()


async def test_drop_clears_a_damaged_namespace_away(tmp_path: Path) -> None:
    namespace = await written(tmp_path)
    (namespace / "store.sqlite").write_bytes(b"nonsense" * 1_000)
    store = FaissVectorStore(FaissSettings(path=tmp_path))
    await store.drop("n")
    assert list(tmp_path.iterdir()) == []
    await put(store, 0, 3)
    assert await store.count("n") == 3
    await store.aclose()


async def test_a_folder_deleted_under_an_open_store_is_made_anew(tmp_path: Path) -> None:
    store = FaissVectorStore(FaissSettings(path=tmp_path))
    await put(store, 0, 3)
    assert len(await store.search("n", QUERY)) == 1
    for folder in tmp_path.iterdir():
        shutil.rmtree(folder)
    await put(store, 10, 2)
    assert await store.count("n") == 2
    assert sorted([id async for id in store.ids("n")]) == ["10", "11"]
    await store.aclose()


async def test_a_writer_that_cannot_get_its_turn_says_so(tmp_path: Path) -> None:
    namespace = await written(tmp_path)
    other = sqlite3.connect(namespace / "store.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store = FaissVectorStore(FaissSettings(path=tmp_path, wait=0.05))
    with pytest.raises(StoreBusy, match="Another process is writing"):
        await put(store, 0, 1)
    assert len((await store.search("n", QUERY, top=3))[0]) == 3, "readers need not wait"
    other.execute("ROLLBACK")
    other.close()
    await put(store, 0, 1)
    await store.aclose()


async def test_a_path_that_is_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    store = FaissVectorStore(FaissSettings(path=tmp_path / "file"))
    with pytest.raises(StoreError, match="file"):
        await put(store, 0, 1)
    await store.aclose()
