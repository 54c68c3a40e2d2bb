"""The tables: made once however many processes begin, never older or newer than what is known."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from psycopg import sql

from portico.errors import StoreError
from portico.plugins import Secret
from portico_postgres._connections import Connections, Part
from portico_postgres.config import ConnectionSettings

BEGIN = """
import asyncio, os, sys
from portico.plugins import Secret
from portico_postgres.config import PostgresRunSettings
from portico_postgres.run_store import PostgresRunStore

async def write(name):
    store = PostgresRunStore(PostgresRunSettings(uri=Secret(os.environ["URI"]), schema=sys.argv[1]))
    for number in range(5):
        lease = await store.acquire(f"{name}-{number}", owner=name, seconds=60)
        for step in range(5):
            await store.append(lease, [{"step": step}])
        await store.release(lease)
    await store.aclose()

print("ready", flush=True)
sys.stdin.readline()
asyncio.run(write(sys.argv[2]))
"""


async def test_processes_begin_at_once_and_write_side_by_side(opened: Any, uri: str, schema: str) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", BEGIN, schema, f"p{number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "URI": uri},
        )
        for number in range(4)
    ]
    for process in processes:
        assert process.stdout.readline() == b"ready\n"
    for process in processes:
        process.stdin.write(b"\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=60)
    assert [process.returncode for process in processes] == [0] * 4
    store = opened()
    runs = await store.runs()
    assert sorted(runs) == sorted(f"p{process}-{number}" for process in range(4) for number in range(5))
    for run in runs:
        assert await store.read(run) == [{"step": step} for step in range(5)]


def changed(server: Any, schema: str, version: int) -> None:
    server.run(sql.SQL("UPDATE {} SET version = %s").format(sql.Identifier(schema, "portico_versions")), (version,))


async def test_tables_of_a_later_version_ask_for_a_newer_package(opened: Any, server: Any, schema: str) -> None:
    await opened().acquire("r1", owner="me", seconds=60)
    changed(server, schema, 99)
    store = opened()
    for call in (store.runs(), store.acquire("r2", owner="me", seconds=60)):
        with pytest.raises(
            StoreError, match=r"are of version 99.*knows up to 1.*pip install --upgrade portico-postgres"
        ):
            await call
    changed(server, schema, 1)
    assert await store.runs() == ["r1"]


async def test_tables_of_another_program_are_left_alone(opened: Any, server: Any, schema: str) -> None:
    server.run(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    server.run(sql.SQL("CREATE TABLE {} (distance integer)").format(sql.Identifier(schema, "runs")))
    with pytest.raises(StoreError, match=r"Another program's tables.*set another `schema` in \[runs\.postgres\]"):
        await opened().acquire("r1", owner="me", seconds=60)
    made = server.run("SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s)", (schema,))
    assert made == [("runs",)], "half of the tables were made"


def part(*statements: str) -> Part:
    def step(statement: str) -> Any:
        async def run(connection: Any, schema: Any) -> None:
            await connection.execute(sql.SQL(statement).format(schema=schema))

        return run

    return Part("things", tuple(step(statement) for statement in statements))


async def test_older_tables_are_brought_up_to_date_step_by_step_and_keep_what_they_hold(
    server: Any, uri: str, schema: str
) -> None:
    steps = (
        "CREATE TABLE {schema}.things (name text)",
        "ALTER TABLE {schema}.things ADD size integer NOT NULL DEFAULT 7",
        "ALTER TABLE {schema}.things RENAME size TO length",
    )
    settings = ConnectionSettings(uri=Secret(uri), schema=schema)
    first = Connections(settings, part(*steps[:1]), table="[things.postgres]")
    last = Connections(settings, part(*steps), table="[things.postgres]")
    things = sql.Identifier(schema, "things")

    async def add(connection: Any) -> None:
        await connection.execute(sql.SQL("INSERT INTO {} VALUES ('a')").format(things))

    async def look(connection: Any) -> Any:
        return await (await connection.execute(sql.SQL("SELECT name, length FROM {}").format(things))).fetchall()

    await first.write(add)
    assert await last.read(look, None) == [("a", 7)]
    [(version, count)] = server.run(
        sql.SQL("SELECT max(version), count(*) FROM {}").format(sql.Identifier(schema, "portico_versions"))
    )
    assert (version, count) == (3, 1)
    for connections in (first, last):
        await connections.aclose()


async def test_a_step_that_fails_leaves_the_version_before_it(server: Any, uri: str, schema: str) -> None:
    settings = ConnectionSettings(uri=Secret(uri), schema=schema)
    wrong = part("CREATE TABLE {schema}.things (name text)", "ALTER TABLE {schema}.things ADD name text")
    connections = Connections(settings, wrong, table="[things.postgres]")
    for _ in range(2):
        with pytest.raises(StoreError, match="already exists"):
            await connections.write(None)  # type: ignore[arg-type] - it does not come to that
    [(version,)] = server.run(sql.SQL("SELECT version FROM {}").format(sql.Identifier(schema, "portico_versions")))
    assert version == 1
    await connections.aclose()
