"""Who is let in and what they may do, and that no password is told on the way."""

from __future__ import annotations

import logging
import secrets
import traceback
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from portico.errors import StoreError, StoreUnavailable
from portico.plugins import Secret
from portico.search import VectorRecord, Vectors
from portico_postgres.config import PostgresRunSettings, PostgresVectorSettings
from portico_postgres.run_store import PostgresRunStore
from portico_postgres.vector_store import PostgresVectorStore


async def write(store: PostgresRunStore) -> None:
    lease = await store.acquire("r1", owner="me", seconds=60)
    await store.append(lease, [{"n": 1}])
    await store.release(lease)


async def test_a_password_is_in_no_error_no_log_and_no_traceback(
    own_server: Any, caplog: pytest.LogCaptureFixture
) -> None:
    rules = Path(own_server.own.pgdata) / "pg_hba.conf"
    own_server.run("CREATE ROLE ada LOGIN PASSWORD 'right-walrus'")
    own_server.run("CREATE ROLE bob LOGIN")
    own_server.run("CREATE SCHEMA bobs AUTHORIZATION bob")
    rules.write_text("local all ada scram-sha-256\nlocal all all trust\n")
    own_server.run("SELECT pg_reload_conf()")
    caplog.set_level(logging.DEBUG)
    told = []

    def uri(user: str, password: str) -> str:
        return own_server.uri.replace("postgres:@", f"{user}:{password}@")

    def settings(user: str, password: str, **more: Any) -> PostgresRunSettings:
        return PostgresRunSettings(uri=Secret(uri(user, password), origin="env DATABASE_URL"), **more)

    for made, message in [
        (settings("ada", "wrong-walrus"), r"authentication failed.*Check the user, the password and"),
        (settings("eve", "walrus"), "refused the connection"),
        (settings("bob", "walrus"), "permission denied for database.*an administrator grant"),
    ]:
        store = PostgresRunStore(made)
        with pytest.raises(StoreError, match=message) as caught:
            await store.acquire("r1", owner="me", seconds=60)
        told += ["".join(traceback.format_exception(caught.value)), repr(made), repr(store), repr(store.__dict__)]
        await store.aclose()

    right = PostgresRunStore(settings("bob", "right-walrus", schema="bobs", connect_timeout=1.0))
    await write(right)
    own_server.stop()
    with pytest.raises(StoreUnavailable, match=r"was lost|cannot be reached") as caught:
        await write(right)
    told += ["".join(traceback.format_exception(caught.value)), repr(right._connections.__dict__)]
    own_server.start()
    await write(right)
    await right.aclose()
    assert [text for text in [*told, caplog.text] if "walrus" in text] == []


async def test_a_user_without_the_right_to_make_schemas_uses_one_that_is_its_own(
    server: Any, uri: str, schema: str
) -> None:
    role = f"role_{secrets.token_hex(4)}"
    server.run(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
    try:
        server.run(sql.SQL("CREATE SCHEMA {} AUTHORIZATION {}").format(sql.Identifier(schema), sql.Identifier(role)))
        with psycopg.connect(uri) as connection:
            mine = uri.replace(f"{connection.info.user}:", f"{role}:", 1)
        assert mine != uri
        store = PostgresRunStore(PostgresRunSettings(uri=Secret(mine), schema=schema))
        await write(store)
        assert await store.runs() == ["r1"]
        await store.aclose()
    finally:
        server.run(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)))
        server.run(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


async def test_a_user_who_may_only_read_sees_the_runs(opened: Any, server: Any, uri: str, schema: str) -> None:
    role = f"role_{secrets.token_hex(4)}"
    names = {"role": sql.Identifier(role), "schema": sql.Identifier(schema)}
    server.run(sql.SQL("CREATE ROLE {role} LOGIN").format(**names))
    try:
        await write(opened())
        with psycopg.connect(uri) as connection:
            theirs = uri.replace(f"{connection.info.user}:", f"{role}:", 1)
        viewer = PostgresRunStore(PostgresRunSettings(uri=Secret(theirs), schema=schema))
        with pytest.raises(StoreError, match=r"permission denied.*an administrator grant"):
            await viewer.runs()
        server.run(sql.SQL("GRANT USAGE ON SCHEMA {schema} TO {role}").format(**names))
        server.run(sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}").format(**names))
        assert await viewer.runs() == ["r1"]
        assert await viewer.read("r1") == [{"n": 1}]
        assert not await viewer.held("r1")
        with pytest.raises(StoreError, match=r"permission denied.*an administrator grant"):
            await viewer.acquire("r1", owner="me", seconds=60)
        await viewer.aclose()
    finally:
        server.run(sql.SQL("DROP OWNED BY {role}").format(**names))
        server.run(sql.SQL("DROP ROLE {role}").format(**names))


async def test_a_user_who_may_not_make_temporary_tables_is_told_that_vectors_are_written_through_one(
    server: Any, uri: str
) -> None:
    name = f"portico_test_{secrets.token_hex(4)}"
    names = {"database": sql.Identifier(name), "role": sql.Identifier(name)}
    server.run(sql.SQL("CREATE ROLE {role} LOGIN").format(**names))
    server.run(sql.SQL("CREATE DATABASE {database}").format(**names))
    try:
        with psycopg.connect(uri) as connection:
            there = urlsplit(uri)._replace(path=f"/{name}").geturl()
            mine = there.replace(f"{connection.info.user}:", f"{name}:", 1)
        with psycopg.connect(there, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
            connection.execute(sql.SQL("CREATE SCHEMA portico AUTHORIZATION {role}").format(**names))
            connection.execute(sql.SQL("REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC").format(**names))
        store = PostgresVectorStore(PostgresVectorSettings(uri=Secret(mine)))
        one = [VectorRecord("a")], Vectors.from_rows([[1.0, 0.0]])
        with pytest.raises(StoreError, match="permission denied to create temporary tables"):
            await store.upsert("notes", *one)
        with psycopg.connect(there, autocommit=True) as connection:
            connection.execute(sql.SQL("GRANT TEMPORARY ON DATABASE {database} TO {role}").format(**names))
        await store.upsert("notes", *one)
        assert await store.count("notes") == 1
        await store.aclose()
    finally:
        server.run(sql.SQL("DROP DATABASE {database} WITH (FORCE)").format(**names))
        server.run(sql.SQL("DROP ROLE {role}").format(**names))
