"""The way to the database: event loops, cancellation, how many connections there are, what is on a session."""

from __future__ import annotations

import asyncio
import gc
import secrets
import socket
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from portico.errors import ConfigurationError, StoreError, StoreUnavailable
from portico.plugins import Secret
from portico_postgres.config import PostgresRunSettings
from portico_postgres.run_store import PostgresRunStore

NO_ANSWER = "postgresql://ada:secret@127.0.0.1:1/portico"


async def write(store: PostgresRunStore, run: str = "r1") -> None:
    lease = await store.acquire(run, owner="me", seconds=60)
    await store.append(lease, [{"n": 1}])
    await store.release(lease)


def sessions(server: Any, name: str) -> int:
    """Count the sessions of an application, once those that were closed are gone."""
    for _ in range(100):
        [(count,)] = server.run("SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", (name,))
        if not count:
            break
        time.sleep(0.02)
    return count


def named(uri: str) -> tuple[str, str]:
    """Return a URI whose sessions have a name of their own, and the name."""
    name = f"test-{secrets.token_hex(4)}"
    return f"{uri}{'&' if '?' in uri else '?'}application_name={name}", name


async def test_nothing_is_opened_before_the_first_call() -> None:
    PostgresRunStore(PostgresRunSettings(uri=Secret(NO_ANSWER)))


async def test_reading_makes_nothing(opened: Any, server: Any, schema: str) -> None:
    store = opened()
    assert await store.read("r1") == []
    assert await store.runs() == []
    assert not await store.held("r1")
    assert server.run("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)) == []
    await write(opened())
    assert await store.runs() == ["r1"]


async def test_closing_ends_every_session_and_the_next_call_opens_another(opened: Any, server: Any, uri: str) -> None:
    uri, name = named(uri)
    store = opened(uri)
    await asyncio.gather(*(write(store, f"r{number}") for number in range(8)))
    await store.aclose()
    await store.aclose()
    assert sessions(server, name) == 0
    await write(store)
    await store.aclose()
    assert sessions(server, name) == 0


def test_it_serves_one_event_loop_after_another_and_each_in_a_thread(server: Any, uri: str, schema: str) -> None:
    uri, name = named(uri)
    store = PostgresRunStore(PostgresRunSettings(uri=Secret(uri), schema=schema))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(3):
            asyncio.run(write(store, f"r{number}"))
            assert sessions(server, name) == 0, "a loop that ended left its connections"
        threads = [threading.Thread(target=lambda at=at: asyncio.run(write(store, f"t{at}"))) for at in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(asyncio.run(store.runs())) == ["r0", "r1", "r2", "t0", "t1", "t2", "t3"]
        gc.collect()
    assert sessions(server, name) == 0


async def test_what_is_under_way_when_it_is_closed_comes_to_its_end(opened: Any, server: Any, schema: str) -> None:
    store = opened(pool_size=2)
    lease = await store.acquire("r1", owner="me", seconds=60)
    with locked(server, schema):
        appending = asyncio.create_task(store.append(lease, [{"n": 1}]))
        await asyncio.sleep(0.2)
        await store.aclose()
        assert not appending.done()
    await appending
    assert await store.read("r1") == [{"n": 1}]


async def test_a_process_has_no_more_connections_than_it_may(opened: Any, server: Any, uri: str) -> None:
    uri, name = named(uri)
    store = opened(uri, pool_size=3)
    await asyncio.gather(*(write(store, f"r{number}") for number in range(30)))
    [(count,)] = server.run("SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", (name,))
    assert 1 <= count <= 3


async def test_when_all_connections_are_in_use_for_too_long_it_says_so(opened: Any, server: Any, schema: str) -> None:
    store = opened(pool_size=1, connect_timeout=1.0)
    await write(store)
    with locked(server, schema):
        writing = asyncio.create_task(store.acquire("r1", owner="me", seconds=60))
        await asyncio.sleep(0.1)
        with pytest.raises(StoreUnavailable, match=r"All 1 connections to .* were in use for 1 s\. Raise `pool_size`"):
            await store.runs()
    await writing


def locked(server: Any, schema: str) -> Any:
    """Hold the run "r1", as a transaction does that does not end."""
    connection = psycopg.connect(server.uri)
    connection.execute(sql.SQL("SELECT 1 FROM {} FOR UPDATE").format(sql.Identifier(schema, "runs")))
    return connection


async def test_a_statement_that_takes_too_long_is_taken_back_and_says_so(opened: Any, server: Any, schema: str) -> None:
    store = opened(statement_timeout=0.3)
    lease = await store.acquire("r1", owner="me", seconds=60)
    with locked(server, schema):
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match=r"Nothing was written.*statement_timeout"):
            await store.append(lease, [{"n": 1}])
        assert time.monotonic() - began < 2
    assert await store.read("r1") == []
    await store.append(lease, [{"n": 2}])
    assert await store.read("r1") == [{"n": 2}]


async def test_calls_that_are_cancelled_at_any_moment_leave_the_pool_as_it_was(opened: Any) -> None:
    store = opened(pool_size=2)
    lease = await store.acquire("r1", owner="me", seconds=60)
    for number in range(60):
        tasks = [
            asyncio.create_task(store.append(lease, [{"n": number, "part": part} for part in range(3)])),
            asyncio.create_task(store.read("r1")),
            asyncio.create_task(store.acquire(f"r{number}", owner="me", seconds=60)),
        ]
        await asyncio.sleep(0.0003 * (number % 13))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    entries = await store.read("r1")
    for start in range(0, len(entries), 3):
        assert [entry["part"] for entry in entries[start : start + 3]] == [0, 1, 2]
        assert len({entry["n"] for entry in entries[start : start + 3]}) == 1
    numbers = [entry["n"] for entry in entries]
    assert numbers == sorted(numbers), "one that was cancelled was written after the next"
    await asyncio.gather(*(store.read("r1") for _ in range(10)))


async def test_a_call_that_waits_at_the_server_ends_when_it_is_cancelled(opened: Any, server: Any, schema: str) -> None:
    store = opened(pool_size=1)
    lease = await store.acquire("r1", owner="me", seconds=60)
    with locked(server, schema):
        appending = asyncio.create_task(store.append(lease, [{"n": 1}]))
        await asyncio.sleep(0.2)
        assert not appending.done()
        appending.cancel()
        began = time.monotonic()
        await asyncio.wait([appending])
        assert appending.cancelled()
        assert time.monotonic() - began < 2
        assert await store.read("r1") == [], "the connection is usable while the other one still waits"
    await store.append(lease, [{"n": 2}])
    assert await store.read("r1") == [{"n": 2}]


async def test_a_server_that_is_not_there_is_told_at_once(opened: Any) -> None:
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match=r"postgresql://127\.0\.0\.1:1/portico cannot be reached.*Start the"):
        await opened(NO_ANSWER).acquire("r1", owner="me", seconds=60)
    assert time.monotonic() - began < 5


def test_an_option_that_the_library_does_not_know_is_a_mistake_of_the_configuration() -> None:
    with pytest.raises(ConfigurationError, match=r"^\[runs\.postgres\]: uri has an option") as caught:
        PostgresRunStore(PostgresRunSettings(uri=Secret("postgresql://db.example/portico?pasword=tea")))
    assert "tea" not in str(caught.value)


def variables(error: BaseException | None) -> Iterator[str]:
    """Give what loggers print that show the local variables of a traceback, and of what caused it."""
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if "test" not in frame.f_code.co_name:
                yield from map(repr, frame.f_locals.values())
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


async def test_no_password_is_in_the_variables_of_the_traceback_of_a_server_that_is_not_there(opened: Any) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        await opened(NO_ANSWER).runs()
    shown = list(variables(caught.value))
    assert len(shown) > 10
    assert not [each for each in shown if "secret@" in each or "'secret'" in each]


async def test_no_password_is_in_the_variables_of_the_traceback_of_one_that_gives_no_answer(opened: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = NO_ANSWER.replace(":1/", f":{silent.getsockname()[1]}/")
        with pytest.raises(StoreUnavailable) as caught:
            await opened(uri, connect_timeout=1.0).runs()
    shown = list(variables(caught.value))
    assert len(shown) > 10
    assert not [each for each in shown if "secret@" in each or "'secret'" in each]


async def test_a_database_that_is_not_there_is_told(opened: Any, uri: str) -> None:
    nowhere = uri.replace("/postgres?", "/no_such_database?")
    assert nowhere != uri
    with pytest.raises(StoreError, match=r"no_such_database.*the database in `uri` of \[runs\.postgres\]"):
        await opened(nowhere).runs()


async def test_a_session_commits_for_good_and_sees_what_others_wrote_whatever_the_server_is_set_to(
    opened: Any, uri: str
) -> None:
    loose = "-c%20synchronous_commit%3Doff%20-c%20default_transaction_isolation%3Dserializable"
    store = opened(f"{uri}{'&' if '?' in uri else '?'}options={loose}", statement_timeout=7.5)
    asked = (
        "SELECT current_setting('synchronous_commit'), current_setting('default_transaction_isolation'), "
        "current_setting('statement_timeout')"
    )

    async def ask(connection: Any) -> Any:
        return await (await connection.execute(asked)).fetchone()

    assert await store._connections.write(ask) == ("on", "read committed", "7500ms")


async def test_what_is_stricter_than_that_stays(opened: Any, uri: str) -> None:
    store = opened(f"{uri}{'&' if '?' in uri else '?'}options=-c%20synchronous_commit%3Dremote_apply")

    async def ask(connection: Any) -> Any:
        return await (await connection.execute("SELECT current_setting('synchronous_commit')")).fetchone()

    assert await store._connections.write(ask) == ("remote_apply",)


async def test_before_a_pooler_nothing_is_kept_on_a_session(opened: Any) -> None:
    store = opened(transaction_pooler=True, pool_size=1)
    lease = await store.acquire("r1", owner="me", seconds=60)
    for number in range(20):
        await store.append(lease, [{"n": number}])

    async def ask(connection: Any) -> Any:
        asked = "SELECT (SELECT count(*) FROM pg_prepared_statements), current_setting('statement_timeout')"
        return await (await connection.execute(asked)).fetchone()

    assert await store._connections.write(ask) == (0, "0")
