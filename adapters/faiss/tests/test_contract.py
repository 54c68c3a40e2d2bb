"""The store keeps the VectorStore contract, in memory and in a folder, exactly and along graphs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from portico.search import VectorRecord, Vectors
from portico_faiss.config import FaissSettings
from portico_faiss.store import FaissVectorStore
from portico_testkit.package import PackageKit
from portico_testkit.vector_store import VectorStoreKit

GRAPHS_AT_ONCE = {"index": "hnsw", "hnsw_from": 1}


async def closing(settings: FaissSettings) -> AsyncIterator[FaissVectorStore]:
    store = FaissVectorStore(settings)
    yield store
    await store.aclose()


class TestMemory(VectorStoreKit):
    @pytest.fixture
    async def vector_store(self) -> AsyncIterator[FaissVectorStore]:
        async for store in closing(FaissSettings()):
            yield store


class TestMemoryGraph(VectorStoreKit):
    @pytest.fixture
    async def vector_store(self) -> AsyncIterator[FaissVectorStore]:
        async for store in closing(FaissSettings(**GRAPHS_AT_ONCE)):
            yield store


class FolderKit(VectorStoreKit):
    async def another(self, vector_store: FaissVectorStore) -> FaissVectorStore:
        return FaissVectorStore(vector_store._settings)


class TestFolder(FolderKit):
    @pytest.fixture
    async def vector_store(self, tmp_path: Path) -> AsyncIterator[FaissVectorStore]:
        async for store in closing(FaissSettings(path=tmp_path / "vectors")):
            yield store

    @pytest.fixture
    async def failing_store(self, tmp_path: Path) -> AsyncIterator[FaissVectorStore]:
        settings = FaissSettings(path=tmp_path / "damaged")
        async for store in closing(settings):
            await store.upsert("n", [VectorRecord("a")], Vectors.from_rows([(1, 0)]))
        for file in (tmp_path / "damaged").rglob("*"):
            if file.is_file():
                file.write_bytes(b"These are no vectors. ")
        async for store in closing(settings):
            yield store


class TestFolderGraph(FolderKit):
    @pytest.fixture
    async def vector_store(self, tmp_path: Path) -> AsyncIterator[FaissVectorStore]:
        async for store in closing(FaissSettings(path=tmp_path / "vectors", **GRAPHS_AT_ONCE)):
            yield store


class TestFolderWithoutCache(FolderKit):
    """As a namespace of many records is read: nothing but the vectors' map is kept between searches."""

    @pytest.fixture
    async def vector_store(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FaissVectorStore]:
        monkeypatch.setattr("portico_faiss._folder._LOADED_SLOTS", 0)
        monkeypatch.setattr("portico_faiss._search._WALK_LAST", 16)
        monkeypatch.setattr("portico_faiss._search._WALK_FIRST", 2)
        async for store in closing(FaissSettings(path=tmp_path / "vectors")):
            yield store


class TestCompactingAlways(FolderKit):
    """Every second write makes a new generation."""

    @pytest.fixture
    async def vector_store(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FaissVectorStore]:
        monkeypatch.setattr("portico_faiss._files._DEAD_BEFORE_COMPACTION", 0)
        async for store in closing(FaissSettings(path=tmp_path / "vectors")):
            yield store


class TestCompactingMemoryAlways(VectorStoreKit):
    @pytest.fixture
    async def vector_store(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FaissVectorStore]:
        monkeypatch.setattr("portico_faiss._files._DEAD_BEFORE_COMPACTION", 0)
        async for store in closing(FaissSettings()):
            yield store


class TestPackage(PackageKit):
    distribution = "portico-faiss"
