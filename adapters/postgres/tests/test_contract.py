"""The journal in PostgreSQL is held to the kit of its port."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from portico.plugins import Secret
from portico.ports import RunStore
from portico_postgres.config import PostgresRunSettings, PostgresVectorSettings
from portico_postgres.run_store import PostgresRunStore
from portico_testkit.package import PackageKit
from portico_testkit.run_store import Reopen, RunStoreKit

URI = Secret("postgresql://ada:k3y-0f-the-4ccount@127.0.0.1:1/portico")
"""It has what the kit of packages looks for as its password."""


class TestPostgresRunStore(RunStoreKit):
    @pytest.fixture
    async def opened(self) -> AsyncIterator[list[PostgresRunStore]]:
        stores: list[PostgresRunStore] = []
        yield stores
        for store in stores:
            await store.aclose()

    @pytest.fixture
    async def store(self, uri: str, schema: str, opened: list[PostgresRunStore]) -> PostgresRunStore:
        opened.append(PostgresRunStore(PostgresRunSettings(uri=Secret(uri), schema=schema)))
        # The pool has its tasks from here on, which the kit would take for what a call left behind.
        await opened[-1].runs()
        return opened[-1]

    @pytest.fixture
    def reopen(self, uri: str, schema: str, opened: list[PostgresRunStore]) -> Reopen:
        async def again(store: RunStore) -> RunStore:
            opened.append(PostgresRunStore(PostgresRunSettings(uri=Secret(uri), schema=schema)))
            return opened[-1]

        return again

    @pytest.fixture
    async def failing_store(self, tmp_path: Path) -> AsyncIterator[PostgresRunStore]:
        store = PostgresRunStore(PostgresRunSettings(uri=Secret(f"postgresql:///nobody?host={tmp_path}")))
        yield store
        await store.aclose()


class TestPackage(PackageKit):
    distribution = "portico-postgres"
    settings = (PostgresRunSettings(uri=URI), PostgresVectorSettings(uri=URI))
