"""The store keeps the VectorStore contract, on Milvus Lite in a folder and on a server at an address."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from portico.search import VectorRecord, Vectors
from portico_milvus.config import MilvusSettings
from portico_milvus.store import MilvusVectorStore
from portico_testkit.package import PackageKit
from portico_testkit.vector_store import VectorStoreKit

PREFIXES = itertools.count()


async def closing(settings: MilvusSettings) -> AsyncIterator[MilvusVectorStore]:
    store = MilvusVectorStore(settings)
    yield store
    await store.aclose()


class MilvusKit(VectorStoreKit):
    async def another(self, vector_store: MilvusVectorStore) -> MilvusVectorStore:
        return MilvusVectorStore(vector_store._settings)


class TestFolder(MilvusKit):
    @pytest.fixture
    async def vector_store(self, tmp_path: Path) -> AsyncIterator[MilvusVectorStore]:
        async for store in closing(MilvusSettings(uri=str(tmp_path / "vectors.db"))):
            yield store

    @pytest.fixture
    async def failing_store(self, tmp_path: Path) -> AsyncIterator[MilvusVectorStore]:
        settings = MilvusSettings(uri=str(tmp_path / "damaged.db"))
        async for store in closing(settings):
            await store.upsert("n", [VectorRecord("a")], Vectors.from_rows([(1, 0)]))
        for file in (tmp_path / "damaged.db").rglob("*"):
            if file.is_file():
                file.write_bytes(b"These are no vectors. ")
        async for store in closing(settings):
            yield store


class TestFolderWithGraphs(MilvusKit):
    @pytest.fixture
    async def vector_store(self, tmp_path: Path) -> AsyncIterator[MilvusVectorStore]:
        async for store in closing(MilvusSettings(uri=str(tmp_path / "vectors.db"), index="hnsw")):
            yield store


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server: Milvus Lite, which speaks what a cluster speaks."""
    from milvus_lite.adapter.grpc.server import start_server_in_thread

    server, database, port = start_server_in_thread(str(tmp_path_factory.mktemp("server")))
    yield f"http://127.0.0.1:{port}"
    server.stop(grace=2).wait()
    database.close()


class TestServer(MilvusKit):
    @pytest.fixture
    async def vector_store(self, address: str) -> AsyncIterator[MilvusVectorStore]:
        async for store in closing(MilvusSettings(uri=address, prefix=f"test{next(PREFIXES)}")):
            yield store

    @pytest.fixture
    async def failing_store(self, unused_tcp_port: int) -> AsyncIterator[MilvusVectorStore]:
        """Nobody is there."""
        settings = MilvusSettings(uri=f"http://127.0.0.1:{unused_tcp_port}", connect_timeout=0.5, timeout=1)
        async for store in closing(settings):
            yield store


class TestPackage(PackageKit):
    distribution = "portico-milvus"
