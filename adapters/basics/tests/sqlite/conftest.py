"""Stores in a folder of the test's own, on one clock that the test turns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from portico_basics.config import SqliteSettings
from portico_basics.sqlite.store import SqliteRunStore

Open = Callable[..., SqliteRunStore]


class StillClock:
    """Seconds that pass when a test adds to ``now``."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> StillClock:
    return StillClock(1_700_000_000.0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "journal" / "runs.sqlite3"


@pytest.fixture
async def opened(file: Path, clock: StillClock) -> AsyncIterator[Open]:
    """Return what opens a store, as another process would; all are closed in the end."""
    stores: list[SqliteRunStore] = []

    def make(**settings: Any) -> SqliteRunStore:
        stores.append(SqliteRunStore(SqliteSettings(**{"path": file, "wait": 5.0} | settings), clock=clock))
        return stores[-1]

    yield make
    for store in stores:
        await store.aclose()
