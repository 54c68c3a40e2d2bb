"""The vectors in PostgreSQL are held to the kits of their ports, compared one by one and along graphs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from portico.plugins import Secret
from portico_postgres.config import PostgresVectorSettings
from portico_postgres.vector_store import PostgresVectorStore
from portico_testkit.hybrid_search import HybridSearchKit
from portico_testkit.vector_store import VectorStoreKit

ALONG_GRAPHS = {"index": "hnsw", "hnsw_from": 1}


class Postgres:
    """What both kits are given."""

    more: ClassVar[dict[str, Any]] = {}

    @pytest.fixture
    async def vector_store(self, uri: str, schema: str) -> AsyncIterator[PostgresVectorStore]:
        store = PostgresVectorStore(PostgresVectorSettings(uri=Secret(uri), schema=schema, **self.more))
        # The pool has its tasks from here on, which the kit would take for what a call left behind.
        await store.count("n")
        yield store
        await store.aclose()

    async def another(self, vector_store: PostgresVectorStore) -> PostgresVectorStore:
        return PostgresVectorStore(vector_store._access.settings)

    @pytest.fixture
    async def failing_store(self, tmp_path: Path) -> AsyncIterator[PostgresVectorStore]:
        store = PostgresVectorStore(PostgresVectorSettings(uri=Secret(f"postgresql:///nobody?host={tmp_path}")))
        yield store
        await store.aclose()


class TestExactVectors(Postgres, VectorStoreKit):
    """Every vector is compared."""


class TestVectorsAlongGraphs(Postgres, VectorStoreKit):
    more: ClassVar[dict[str, Any]] = ALONG_GRAPHS


class TestVectorsBehindAPooler(Postgres, VectorStoreKit):
    """Nothing lasts on a session."""

    more: ClassVar[dict[str, Any]] = {**ALONG_GRAPHS, "transaction_pooler": True}


class TestExactHybrid(Postgres, HybridSearchKit):
    """Every vector is compared."""


class TestHybridAlongGraphs(Postgres, HybridSearchKit):
    more: ClassVar[dict[str, Any]] = ALONG_GRAPHS
