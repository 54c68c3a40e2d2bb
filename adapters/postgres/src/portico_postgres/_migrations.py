"""The tables of a schema: made when something is first written, and brought up to date under a lock.

The journal and the vectors are parts of one schema, each with its own version: who keeps only a journal needs no
extension for vectors. Every step is one transaction with the version that it leads to, so that a kill leaves the old
or the new. Processes that start at once wait for the one that is first, by an advisory lock of PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from psycopg import AsyncConnection, sql

from portico.errors import StoreDamaged, StoreError
from portico_postgres._errors import Place

Migration: TypeAlias = Callable[[AsyncConnection[Any], sql.Identifier], Awaitable[None]]
"""Leads from one version to the next: it is given a connection inside a transaction, and the schema."""

MIGRATION_SECONDS = 120.0
"""How long bringing the tables up to date may take, with waiting for other processes that do."""

_THERE = """SELECT 1 FROM pg_catalog.pg_class AS made
    JOIN pg_catalog.pg_namespace AS schema ON schema.oid = made.relnamespace
    WHERE schema.nspname = %s AND made.relname = 'portico_versions'"""


@dataclass(frozen=True, slots=True)
class Part:
    """One store's tables: its version is the number of its migrations, which are only ever added to."""

    name: str
    migrations: tuple[Migration, ...]


async def version_of(connection: AsyncConnection[Any], part: Part, place: Place) -> int:
    """Return the version of a part, 0 where it is not there.

    Raises ``StoreError`` for one that a later portico-postgres made, and ``StoreDamaged`` for one below 0.
    """
    versions = sql.Identifier(place.schema, "portico_versions")
    # By the catalogue: `to_regclass` answers from what the session remembers, also that there was no such table before
    # another process made it.
    cursor = await connection.execute(_THERE, (place.schema,))
    if await cursor.fetchone() is None:
        return 0
    cursor = await connection.execute(sql.SQL("SELECT version FROM {} WHERE part = %s").format(versions), (part.name,))
    row = await cursor.fetchone()
    version = 0 if row is None else row[0]
    known = len(part.migrations)
    if version > known:
        raise StoreError(
            f"The {part.name} in the schema {place.schema!r} of {place} are of version {version}, and this "
            f"portico-postgres knows up to {known}. Run `pip install --upgrade portico-postgres`."
        )
    if version < 0:
        raise StoreDamaged(
            f"The {part.name} in the schema {place.schema!r} of {place} say of themselves that they are of version "
            f"{version}. Restore the schema from a backup, or set another `schema` in {place.table}."
        )
    return int(version)


async def bring_up(connection: AsyncConnection[Any], part: Part, place: Place) -> None:
    """Make the part, or bring it to the version that is known here; what is up to date is left alone."""
    schema = sql.Identifier(place.schema)
    versions = sql.Identifier(place.schema, "portico_versions")
    for _ in part.migrations:
        async with connection.transaction():
            await connection.execute(f"SET LOCAL statement_timeout = {int(MIGRATION_SECONDS * 1000)}")
            await connection.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"portico schema {place.schema}",)
            )
            version = await version_of(connection, part, place)
            if version == len(part.migrations):
                return
            # Asked for first: "IF NOT EXISTS" alone wants the right to make schemas also where there is one.
            cursor = await connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (place.schema,))
            if await cursor.fetchone() is None:
                await connection.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
            await connection.execute(
                sql.SQL(
                    "CREATE TABLE IF NOT EXISTS {} (part text PRIMARY KEY, version integer NOT NULL, "
                    "migrated timestamptz NOT NULL)"
                ).format(versions)
            )
            await part.migrations[version](connection, schema)
            await connection.execute(
                sql.SQL(
                    "INSERT INTO {} VALUES (%s, %s, now()) ON CONFLICT (part) "
                    "DO UPDATE SET version = EXCLUDED.version, migrated = EXCLUDED.migrated"
                ).format(versions),
                (part.name, version + 1),
            )
