"""A PostgreSQL to measure on: one of its own, or that of PORTICO_TEST_POSTGRES, in a schema that goes in the end."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

from tests.support.postgres_server import PostgresServer, postgres_server

from portico.plugins import Secret
from portico_postgres.config import PostgresVectorSettings
from portico_postgres.vector_store import PostgresVectorStore

__all__ = ["postgres_store"]


@asynccontextmanager
async def postgres_store() -> AsyncIterator[PostgresVectorStore]:
    """Open a vector store that has nothing in it."""
    schema = f"portico_eval_{os.getpid()}"
    with ExitStack() as stack:
        if uri := os.environ.get("PORTICO_TEST_POSTGRES"):
            server = PostgresServer(uri)
        else:
            server = stack.enter_context(postgres_server())
        store = PostgresVectorStore(PostgresVectorSettings(uri=Secret(server.uri), schema=schema))
        try:
            yield store
        finally:
            await store.aclose()
            server.run(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
