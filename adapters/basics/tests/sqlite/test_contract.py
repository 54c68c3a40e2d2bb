"""The SQLite journal is held to the kit of its port."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from portico.ports import RunStore
from portico_basics.config import SqliteSettings
from portico_basics.sqlite.store import SqliteRunStore
from portico_testkit.run_store import Reopen, RunStoreKit


class TestSqliteRunStore(RunStoreKit):
    @pytest.fixture
    async def opened(self) -> AsyncIterator[list[SqliteRunStore]]:
        stores: list[SqliteRunStore] = []
        yield stores
        for store in stores:
            await store.aclose()

    @pytest.fixture
    def store(self, tmp_path: Path, opened: list[SqliteRunStore]) -> SqliteRunStore:
        opened.append(SqliteRunStore(SqliteSettings(path=tmp_path / "runs.sqlite3")))
        return opened[-1]

    @pytest.fixture
    def reopen(self, tmp_path: Path, opened: list[SqliteRunStore]) -> Reopen:
        async def again(store: RunStore) -> RunStore:
            opened.append(SqliteRunStore(SqliteSettings(path=tmp_path / "runs.sqlite3")))
            return opened[-1]

        return again

    @pytest.fixture
    async def failing_store(self, tmp_path: Path) -> AsyncIterator[SqliteRunStore]:
        (tmp_path / "damaged.sqlite3").write_bytes(b"This is no database. " * 200)
        store = SqliteRunStore(SqliteSettings(path=tmp_path / "damaged.sqlite3"))
        yield store
        await store.aclose()
