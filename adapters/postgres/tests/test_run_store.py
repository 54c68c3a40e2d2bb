"""The journal: what is kept as it was, what is removed, and what is said of damage."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from psycopg import sql

from portico.errors import StoreBusy, StoreDamaged, StoreError
from portico.plugins import Secret
from portico.ports import Lease
from portico_postgres.config import PostgresRunSettings
from portico_postgres.run_store import PostgresRunStore

ODD = [
    "'",
    '"',
    "\\",
    "\0",
    "\ud800",
    "\udfff",
    "%s",
    "%(name)s",
    "{runs}",
    "$1",
    "--",
    ";",
    "é",
    "\U0001f600",
    "\n",
    " ",
]
NAMES = st.text(
    st.characters(codec=None, categories=None) | st.sampled_from(["\0", "\ud800", "'"]), max_size=30
) | st.lists(st.sampled_from([*ODD, "a"]), max_size=6).map("".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
ENTRIES = st.lists(st.dictionaries(NAMES, VALUES, max_size=3), max_size=4)


async def finish(store: PostgresRunStore, run: str, kind: str = "answer") -> None:
    lease = await store.acquire(run, owner="me", seconds=60)
    await store.append(lease, [{"type": "outcome", "kind": kind}])
    await store.release(lease)


@pytest.fixture
def store(opened: Any) -> PostgresRunStore:
    return opened()


def table(schema: str, name: str = "runs") -> sql.Identifier:
    return sql.Identifier(schema, name)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES, owner=NAMES, entries=ENTRIES)
async def test_names_owners_and_entries_come_out_as_they_went_in(
    store: PostgresRunStore, server: Any, schema: str, name: str, owner: str, entries: list[dict[str, Any]]
) -> None:
    lease = await store.acquire(name, owner=owner, seconds=60)
    try:
        before = len(await store.read(name))
        await store.append(lease, entries)
        await store.renew(lease, seconds=60)
        written = (await store.read(name))[before:]
        # JSON has no half of a pair beside the other half: they are one character, here as in every journal.
        assert [repr(each) for each in written] == [repr(joined(each)) for each in entries]
        assert name in await store.runs()
        assert await store.held(name)
    finally:
        await store.release(lease)
        assert not await store.held(name)
    made = server.run(
        "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind IN ('r', 'S')",
        (f'"{schema}"',),
    )
    assert {name for (name,) in made} >= {"runs", "entries", "tokens", "portico_versions"}


def joined(value: Any) -> Any:
    """Return a value with halves of pairs that stand side by side as the one character that they are to JSON."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        case dict():
            return {joined(key): joined(each) for key, each in value.items()}
        case list():
            return [joined(each) for each in value]
    return value


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(st.text(st.sampled_from("aB9_-"), min_size=1, max_size=20))
async def test_any_schema_that_the_settings_take_holds_a_journal_and_nothing_else_is_touched(
    server: Any, uri: str, schema: str
) -> None:
    named = f"p{os.getpid()}{schema}"
    store = PostgresRunStore(PostgresRunSettings(uri=Secret(uri), schema=named))
    before = set(server.run("SELECT nspname FROM pg_namespace"))
    try:
        await finish(store, "r1")
        assert await store.runs() == ["r1"]
        assert set(server.run("SELECT nspname FROM pg_namespace")) - before == {(named,)}
    finally:
        await store.aclose()
        server.run(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(named)))


async def test_two_names_of_one_look_are_two_runs(opened: Any) -> None:
    store = opened()
    names = ["é", "e\u0301", "a", "A", "a ", "\ud83d\ude00", "\U0001f600", "x" * 5_000, "x" * 5_001, ""]
    for name in names:
        await store.append(await store.acquire(name, owner="me", seconds=60), [{"name": len(name)}])
    assert await store.runs() == names
    assert [len(await store.read(name)) for name in names] == [1] * len(names)


async def test_many_and_large_entries_are_read_as_they_were(opened: Any) -> None:
    store = opened()
    lease = await store.acquire("r1", owner="me", seconds=60)
    entries = [{"number": number, "text": "x" * 2_000} for number in range(500)]
    await store.append(lease, entries)
    await store.append(lease, [{"text": "y" * 3_000_000}])
    assert await store.read("r1") == [*entries, {"text": "y" * 3_000_000}]


async def test_appending_nothing_writes_nothing_and_wants_the_lease(opened: Any) -> None:
    store = opened()
    lease = await store.acquire("r1", owner="me", seconds=60)
    await store.append(lease, [])
    assert await store.read("r1") == []
    with pytest.raises(StoreBusy):
        await store.append(Lease("r1", "me", lease.token - 1), [])


async def test_appends_of_one_process_are_in_the_order_of_their_calls(opened: Any) -> None:
    store = opened()
    lease = await store.acquire("r1", owner="me", seconds=60)
    await asyncio.gather(*(store.append(lease, [{"n": number}]) for number in range(40)))
    assert [entry["n"] for entry in await store.read("r1")] == list(range(40))


async def test_runs_that_ended_long_ago_are_removed_and_all_that_wait_for_somebody_stay(
    opened: Any, server: Any, schema: str
) -> None:
    store = opened(keep_days=30)
    for number, kind in enumerate(["answer", "infeasible", "failed", "held", "answer"]):
        await finish(store, f"{kind}{number}", kind)
    taken = await store.acquire("answer4", owner="me", seconds=60)
    server.run(
        sql.SQL("UPDATE {} SET finished = finished - interval '31 days' WHERE finished IS NOT NULL").format(
            table(schema)
        )
    )
    await finish(store, "recent")
    assert await store.runs() == ["answer0", "infeasible1", "failed2", "held3", "answer4", "recent"], "once a minute"
    await opened(keep_days=32)._clean()
    assert len(await store.runs()) == 6
    await finish(opened(keep_days=30), "last")
    assert await store.runs() == ["held3", "answer4", "recent", "last"]
    assert await store.read("answer0") == []
    assert server.run(sql.SQL("SELECT count(*) FROM {}").format(table(schema, "entries"))) == [(4,)]
    await store.append(taken, [{"type": "resumed"}])
    await store.release(taken)
    await store._clean()
    assert "answer4" in await store.runs(), "one that was taken up again has not ended"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE {entries} SET entry = '[1]' WHERE number = 2", "entry 2 of the run r1 is no object"),
        (
            """UPDATE {entries} SET entry = replace(entry::text, '"n":2', '"n":3')::json WHERE number = 2""",
            "entry 2 of the run r1 is not as it was written: its checksum differs",
        ),
        ("DELETE FROM {entries} WHERE number = 1", "the run r1 has no entry 1"),
        ("DELETE FROM {entries} WHERE number = 2", "the run r1 has no entry 2"),
        ("DELETE FROM {entries}", "the run r1 has no entry 1"),
        ("ALTER TABLE {entries} DROP COLUMN entry", r"does not exist\. Restore the schema"),
        ("DROP TABLE {entries}", r"does not exist\. Restore the schema"),
    ],
)
async def test_what_is_not_as_it_was_written_is_damage(
    opened: Any, server: Any, schema: str, statement: str, message: str
) -> None:
    store = opened()
    await store.append(await store.acquire("r1", owner="me", seconds=60), [{"n": 1}, {"n": 2}])
    server.run(sql.SQL(statement).format(entries=table(schema, "entries")))
    with pytest.raises(StoreDamaged, match=message):
        await store.read("r1")


async def test_a_schema_that_was_dropped_is_made_anew(opened: Any, server: Any, schema: str) -> None:
    store = opened()
    await finish(store, "r1")
    server.run(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))
    with pytest.raises(StoreDamaged, match="made anew"):
        await store.acquire("r2", owner="me", seconds=60)
    await finish(store, "r2")
    assert await store.runs() == ["r2"]


@pytest.mark.parametrize("entry", [{"n": float("nan")}, {"n": object()}, {"n": {1, 2}}])
async def test_what_is_no_json_is_refused_and_nothing_of_it_written(opened: Any, entry: Any) -> None:
    store = opened()
    lease = await store.acquire("r\n1", owner="me", seconds=60)
    with pytest.raises(StoreError, match=r"An entry of the run 'r\\n1' is not JSON"):
        await store.append(lease, [{"type": "pursuit"}, entry])
    assert await store.read("r\n1") == []
