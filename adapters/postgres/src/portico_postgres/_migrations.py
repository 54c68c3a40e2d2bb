"""The tables of a schema: made when something is first written, and brought up to date under a lock.

The journal and the vectors are parts of one schema, each with its own version: a journal alone needs no extension for
vectors. Every step is one transaction with the version that it leads to, so that a kill leaves the old or the new.
Processes that start at once wait for the one that is first, by an advisory lock of PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from psycopg import AsyncConnection, sql

from portico.errors import StoreError

Migration: TypeAlias = Callable[[AsyncConnection[Any], sql.Identifier], Awaitable[None]]
"""Leads from one version to the next: it is given a connection inside a transaction, and the schema."""

MIGRATION_SECONDS = 120.0
"""How long bringing the tables up to date may take, with waiting for other processes that do."""

# By the catalogue: `to_regclass` answers from what the session remembers, also that there was no such table before
# another process made it.
_FIND = """SELECT 1 FROM pg_catalog.pg_class AS made
    JOIN pg_catalog.pg_namespace AS schema ON schema.oid = made.relnamespace
    WHERE schema.nspname = %s AND made.relname = 'portico_versions'"""
_CREATE = """CREATE TABLE IF NOT EXISTS {} (
    part text PRIMARY KEY, version integer NOT NULL, migrated timestamptz NOT NULL)"""
_WRITE = """INSERT INTO {} VALUES (%s, %s, now())
    ON CONFLICT (part) DO UPDATE SET version = EXCLUDED.version, migrated = EXCLUDED.migrated"""


@dataclass(frozen=True, slots=True)
class Part:
    """One store's tables: its version is the number of its migrations, which are only ever added to."""

    name: str
    migrations: tuple[Migration, ...]


async def version_of(connection: AsyncConnection[Any], part: Part, schema: str) -> int:
    """Return the version of a part, 0 where it was not made. Raises ``StoreError`` for one that is not known here."""
    cursor = await connection.execute(_FIND, (schema,))
    if await cursor.fetchone() is None:
        return 0
    versions = sql.Identifier(schema, "portico_versions")
    cursor = await connection.execute(sql.SQL("SELECT version FROM {} WHERE part = %s").format(versions), (part.name,))
    row = await cursor.fetchone()
    version = 0 if row is None else int(row[0])
    if not 0 <= version <= len(part.migrations):
        raise StoreError(
            f"The {part.name} in the schema {schema!r} are of version {version}, and this portico-postgres knows up to "
            f"{len(part.migrations)}. Run `pip install --upgrade portico-postgres`."
        )
    return version


async def bring_up(connection: AsyncConnection[Any], part: Part, schema: str) -> None:
    """Make the part, or bring it to the version that is known here; what is up to date is left alone."""
    name = sql.Identifier(schema)
    versions = sql.Identifier(schema, "portico_versions")
    for _ in part.migrations:
        async with connection.transaction():
            await connection.execute(f"SET LOCAL statement_timeout = {int(MIGRATION_SECONDS * 1000)}")
            lock = f"portico schema {schema}"
            await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (lock,))
            version = await version_of(connection, part, schema)
            if version == len(part.migrations):
                return
            # "IF NOT EXISTS" alone needs the right to make schemas also where there is one.
            cursor = await connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,))
            if await cursor.fetchone() is None:
                await connection.execute(sql.SQL("CREATE SCHEMA {}").format(name))
            await connection.execute(sql.SQL(_CREATE).format(versions))
            await part.migrations[version](connection, name)
            await connection.execute(sql.SQL(_WRITE).format(versions), (part.name, version + 1))
