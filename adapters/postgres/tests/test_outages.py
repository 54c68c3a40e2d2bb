"""A server that restarts, a network that is cut: nothing is lost, nothing is written twice, nothing hangs."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from psycopg import sql
from tests.support.tcp_proxy import TcpProxy

from portico.errors import StoreBusy, StoreUnavailable
from portico.plugins import Secret
from portico_postgres import _connections
from portico_postgres.config import PostgresRunSettings
from portico_postgres.run_store import PostgresRunStore

Call = Callable[[], Awaitable[object]]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a server for dead a fifth of a second after its time limit, not two seconds."""
    monkeypatch.setattr(_connections, "_GRACE", 0.2)


def count(server: Any, schema: str) -> int:
    [(entries,)] = server.run(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(schema, "entries")))
    return int(entries)


async def until(reached: Callable[[], bool]) -> None:
    for _ in range(500):
        if reached():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it did not come to that within 5 s")


@pytest.mark.parametrize("at_once", [False, True], ids=["restarted", "crashed"])
async def test_the_next_call_after_a_restart_is_as_any_other(own_server: Any, at_once: bool) -> None:
    store = PostgresRunStore(PostgresRunSettings(uri=Secret(own_server.uri)))
    leases = await asyncio.gather(*(store.acquire(f"r{at}", owner="me", seconds=60) for at in range(8)))
    for _ in range(2):
        await asyncio.to_thread(own_server.restart, at_once=at_once)
        began = time.monotonic()
        await asyncio.gather(*(store.append(lease, [{"n": 1}]) for lease in leases))
        assert time.monotonic() - began < 5
    assert await store.read("r0") == [{"n": 1}, {"n": 1}]
    assert await store.held("r0")
    await store.renew(leases[0], seconds=60)
    await store.aclose()


@pytest.mark.parametrize("at_once", [False, True], ids=["restarted", "crashed"])
async def test_what_is_written_while_the_server_restarts_is_written_once_and_in_order(
    own_server: Any, at_once: bool
) -> None:
    store = PostgresRunStore(PostgresRunSettings(uri=Secret(own_server.uri), connect_timeout=30.0))
    leases = await asyncio.gather(*(store.acquire(f"r{at}", owner="me", seconds=600) for at in range(12)))
    stopping = asyncio.Event()

    async def write(lease: Any) -> int:
        number = 0
        while not stopping.is_set():
            await store.append(lease, [{"n": number, "part": part} for part in range(2)])
            number += 1
        return number

    writing = [asyncio.create_task(write(lease)) for lease in leases]
    for _ in range(2):
        await asyncio.sleep(0.5)
        await asyncio.to_thread(own_server.restart, at_once=at_once)
    await asyncio.sleep(0.5)
    stopping.set()
    for lease, written in zip(leases, await asyncio.gather(*writing), strict=True):
        entries = await store.read(lease.run)
        assert entries == [{"n": number, "part": part} for number in range(written) for part in range(2)]
        assert written > 2
    await store.aclose()


async def test_an_append_whose_answer_was_lost_is_written_once(
    opened: Any, server: Any, schema: str, proxy: TcpProxy, proxied: str
) -> None:
    store = opened(proxied)
    lease = await store.acquire("r1", owner="me", seconds=60)
    for number in range(5):
        before = count(server, schema)
        proxy.lose_answers()
        appending = asyncio.create_task(store.append(lease, [{"n": number, "part": part} for part in range(3)]))
        await until(lambda before=before: count(server, schema) == before + 3)
        assert not appending.done()
        proxy.cut()
        await appending
    assert await store.read("r1") == [{"n": number, "part": part} for number in range(5) for part in range(3)]


@pytest.mark.parametrize("what", ["acquire", "renew", "release"])
async def test_other_calls_whose_answer_was_lost_are_made_again(
    opened: Any, server: Any, schema: str, proxy: TcpProxy, proxied: str, what: str
) -> None:
    store, other = opened(proxied), opened()
    first = await store.acquire("r1", owner="me", seconds=60)
    calls: dict[str, Call] = {
        "acquire": lambda: store.acquire("r2", owner="me", seconds=60),
        "renew": lambda: store.renew(first, seconds=600),
        "release": lambda: store.release(first),
    }
    asked = sql.SQL("SELECT xmin::text FROM {} ORDER BY id DESC LIMIT 1").format(sql.Identifier(schema, "runs"))
    before = server.run(asked)
    proxy.lose_answers()
    calling = asyncio.ensure_future(calls[what]())
    await until(lambda: server.run(asked) != before)
    proxy.cut()
    lease = await calling
    if what == "acquire":
        await store.append(lease, [{}])
    elif what == "renew":
        await store.append(first, [{}])
    else:
        assert not await other.held("r1")
        await other.acquire("r1", owner="you", seconds=60)


async def test_the_same_entries_given_again_after_an_outage_are_written_once(
    opened: Any, server: Any, schema: str, proxy: TcpProxy, proxied: str, hasty: None
) -> None:
    store = opened(proxied, statement_timeout=0.3, connect_timeout=1.0)
    lease = await store.acquire("r1", owner="me", seconds=60)
    proxy.lose_answers()
    appending = asyncio.create_task(store.append(lease, [{"n": 1}]))
    await until(lambda: count(server, schema) == 1)
    proxy.stall()
    with pytest.raises(StoreUnavailable, match=r"may or may not have been written|cannot be reached|no answer"):
        await appending
    proxy.go_on()
    proxy.cut()
    await store.append(lease, [{"n": 1}])
    await store.append(lease, [{"n": 2}])
    await store.append(lease, [{"n": 2}])
    assert await store.read("r1") == [{"n": 1}, {"n": 2}, {"n": 2}]


async def test_a_network_that_is_silent_is_noticed_in_time_and_the_next_call_is_as_any_other(
    opened: Any, proxy: TcpProxy, proxied: str, hasty: None
) -> None:
    store = opened(proxied, statement_timeout=0.5, connect_timeout=1.0)
    lease = await store.acquire("r1", owner="me", seconds=60)
    calls: list[Call] = [
        lambda: store.append(lease, [{"n": 1}]),
        lambda: store.renew(lease, seconds=60),
        lambda: store.read("r1"),
        lambda: store.acquire("r2", owner="me", seconds=60),
    ]
    for call in calls:
        proxy.stall()
        began = time.monotonic()
        with pytest.raises(StoreUnavailable):
            await call()
        assert time.monotonic() - began < 6, "a call hung"
        proxy.cut()
        proxy.go_on()
        await store.held("r1")
    assert await store.read("r1") in ([], [{"n": 1}])


async def test_a_call_that_hangs_ends_when_it_is_cancelled_twice(opened: Any, proxy: TcpProxy, proxied: str) -> None:
    store = opened(proxied, statement_timeout=600.0)
    lease = await store.acquire("r1", owner="me", seconds=60)
    proxy.stall()
    appending = asyncio.create_task(store.append(lease, [{"n": 1}]))
    for _ in range(2):
        await asyncio.sleep(0.1)
        appending.cancel()
    await asyncio.wait([appending], timeout=2)
    assert appending.cancelled()
    proxy.cut()
    proxy.go_on()
    await store.append(lease, [{"n": 2}])
    assert await store.read("r1") == [{"n": 2}]


async def test_who_was_cut_off_while_another_took_the_run_writes_nothing_when_it_is_back(
    opened: Any, proxy: TcpProxy, proxied: str
) -> None:
    cut, other = opened(proxied), opened()
    stale = await cut.acquire("r1", owner="cut", seconds=0.5)
    await cut.append(stale, [{"n": 1}])
    proxy.stall()
    late = [
        asyncio.ensure_future(cut.append(stale, [{"late": True}])),
        asyncio.ensure_future(cut.renew(stale, seconds=60)),
        asyncio.ensure_future(cut.release(stale)),
    ]
    while await other.held("r1"):
        await asyncio.sleep(0.05)
    lease = await other.acquire("r1", owner="other", seconds=60)
    await other.append(lease, [{"n": 2}])
    proxy.go_on()
    ended = await asyncio.gather(*late, return_exceptions=True)
    assert [type(each) for each in ended] == [StoreBusy, StoreBusy, type(None)]
    assert await other.held("r1"), "a stale lease gives nothing back"
    await other.append(lease, [{"n": 3}])
    assert await other.read("r1") == [{"n": 1}, {"n": 2}, {"n": 3}]


async def test_a_server_that_is_away_for_too_long_is_told_and_found_again(own_server: Any) -> None:
    store = PostgresRunStore(PostgresRunSettings(uri=Secret(own_server.uri), connect_timeout=1.0))
    lease = await store.acquire("r1", owner="me", seconds=60)
    own_server.stop()
    began = time.monotonic()
    for _ in range(2):
        with pytest.raises(
            StoreUnavailable, match=r"cannot be reached: .*Start the server, or correct `uri` in \[runs"
        ):
            await store.append(lease, [{"n": 1}])
    assert time.monotonic() - began < 8
    await asyncio.to_thread(own_server.start)
    await store.append(lease, [{"n": 1}])
    assert await store.read("r1") == [{"n": 1}]
    await store.aclose()


async def test_a_session_that_an_administrator_ends_is_replaced(opened: Any, server: Any, uri: str) -> None:
    store = opened(f"{uri}{'&' if '?' in uri else '?'}application_name=ended")
    lease = await store.acquire("r1", owner="me", seconds=60)
    for number in range(3):
        server.run("SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE application_name = 'ended'")
        await store.append(lease, [{"n": number}])
    assert await store.read("r1") == [{"n": number} for number in range(3)]


async def test_a_first_host_that_gives_no_answer_leaves_time_for_the_second(
    opened: Any, proxy: TcpProxy, proxied: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        store = opened(proxied.replace("@", f"@127.0.0.1:{port},"), connect_timeout=4.0)
        assert await store.runs() == []
