"""A server as the command has it, in a folder of the workshop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.desks import enter_workshop
from tests.support.guarded import Served, guarded


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which the test works."""
    enter_workshop(tmp_path, monkeypatch)
    return tmp_path


@pytest.fixture
async def served(folder: Path) -> AsyncIterator[Served]:
    """Serve the folder."""
    async with guarded(folder) as made:
        yield made
