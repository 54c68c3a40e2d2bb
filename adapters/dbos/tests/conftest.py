"""The databases of the tests: one SQLite file for each, and a schema of its own in one PostgreSQL for all."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.postgres_server import PostgresServer, postgres_server

from portico.plugins import Secret
from portico_dbos.config import DbosSettings
from portico_dbos.runner import DbosRunner

URI = "PORTICO_TEST_POSTGRES"
"""The variable with the URI of a PostgreSQL to test on, instead of one that is started."""

Open = Callable[..., DbosRunner]


@pytest.fixture(scope="session")
def server(outer_environment: dict[str, str]) -> Iterator[PostgresServer]:
    """Return a PostgreSQL, which ends with the tests."""
    given = outer_environment.get(URI)
    if given:
        yield PostgresServer(given)
        return
    with postgres_server() as made:
        yield made


@pytest.fixture
def stoppable(server: PostgresServer) -> Iterator[PostgresServer]:
    """Return the server of the tests, which runs again after each."""
    if server.own is None:
        pytest.skip(f"{URI} is somebody's server: it is not stopped")
    yield server
    server.start()


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Return the settings that say where, once for each kind of database."""
    if request.param == "sqlite":
        return {"path": tmp_path / "dbos.sqlite3"}
    return {"uri": Secret(request.getfixturevalue("server").uri), "schema": f"t_{uuid.uuid4().hex[:12]}"}


@pytest.fixture
async def opened(where: dict[str, Any]) -> AsyncIterator[Open]:
    """Return what makes runners on one database; all are closed in the end."""
    runners: list[DbosRunner] = []

    def make(**settings: Any) -> DbosRunner:
        runners.append(DbosRunner(DbosSettings(**{"poll": 0.05, "worker_timeout": 5.0} | where | settings)))
        return runners[-1]

    yield make
    for runner in runners:
        await runner.aclose()
