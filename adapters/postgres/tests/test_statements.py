"""What the journal's statements cost: where there are many runs, and where an entry is long."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import sql

from portico_postgres.run_store import run_statements
from portico_testkit.event_loop import leaves_the_event_loop_free

RUNS = 20_000
VALUES = {
    "name": b"run 7",
    "owner": b"me",
    "presence": None,
    "seconds": 60.0,
    "seen": -1,
    "token": 7,
    "count": 1,
    "length": 3,
    "end": None,
    "batch": "00000000-0000-0000-0000-000000000000",
    "entries": ["{}"],
    "most": 100,
}


@pytest.fixture
async def many(opened: Any, server: Any, schema: str) -> str:
    """Give a schema with many runs, all of which ended in the last minutes."""
    await opened().acquire("the first makes the tables", owner="me", seconds=60)
    runs, entries = sql.Identifier(schema, "runs"), sql.Identifier(schema, "entries")
    server.run(
        sql.SQL(
            "INSERT INTO {} (name, token, expires, finished) SELECT convert_to('run ' || n, 'UTF8'), n, now(), now()"
            " FROM generate_series(1, {}) AS n"
        ).format(runs, RUNS)
    )
    server.run(
        sql.SQL("INSERT INTO {} SELECT id, n, gen_random_uuid(), '{{}}' FROM {}, generate_series(1, 3) AS n").format(
            entries, runs
        )
    )
    for table in (runs, entries):
        server.run(sql.SQL("ANALYZE {}").format(table))
    return schema


@pytest.mark.parametrize("name", ["take", "look", "renew", "release", "append", "state", "read"])
def test_a_statement_about_one_run_reads_none_of_the_others(many: str, server: Any, name: str) -> None:
    assert "Seq Scan" not in plan(server, run_statements(many)[name], VALUES)


def test_looking_for_old_runs_reads_none_that_ended_lately(many: str, server: Any) -> None:
    found = plan(server, run_statements(many)["clean"], {**VALUES, "seconds": 86_400.0})
    assert "Seq Scan" not in found
    assert "Index Cond: (finished < " in found


def plan(server: Any, statement: bytes, values: dict[str, Any]) -> str:
    with psycopg.connect(server.uri) as connection:
        rows = connection.execute(b"EXPLAIN " + statement, values).fetchall()
        return "\n".join(line for (line,) in rows)


async def test_a_long_entry_full_of_quotes_is_sent_while_the_event_loop_goes_on(opened: Any) -> None:
    store = opened()
    lease = await store.acquire("r1", owner="me", seconds=60)
    entry = {"text": '"\\' * 400_000}
    await leaves_the_event_loop_free(lambda _: store.append(lease, [entry]))
    assert (await store.read("r1"))[0] == entry
