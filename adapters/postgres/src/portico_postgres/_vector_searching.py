"""Searching a namespace, by vectors, by words and by both, and reading what is in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import AsyncPipeline

from portico.search import VectorMatch, VectorRecord, Vectors
from portico_postgres._conditions import EVERYTHING, Condition
from portico_postgres._hybrid import ALL_ANSWERED, BOTH, SOME_ANSWERED, WORDS
from portico_postgres._metadata import decoded
from portico_postgres._texts import given
from portico_postgres._vector_tables import Connection, Namespace
from portico_postgres._vectors import PackedVector, unpacked

_QUERIES_AT_ONCE = 64
"""Queries that are sent before the first answer is read."""
_LEAST_DEPTH = 200
"""Candidates of each half of a hybrid search, at least."""

# The product is a function, which no graph answers: every vector that passes is compared.
_EXACT = """SELECT id, metadata, {product} AS score FROM {vectors} WHERE {condition}
    ORDER BY score DESC, number LIMIT {top}"""
_ALONG_GRAPH = """SELECT id, metadata, -distance FROM (
    SELECT id, metadata, {distance} AS distance FROM {vectors} WHERE {condition}
    ORDER BY distance LIMIT {top}) AS near"""
# A graph in half precision gives what is about nearest; the scores are of the vectors themselves.
_ALONG_HALF_GRAPH = """SELECT id, metadata, score FROM (
    SELECT id, metadata, {product} AS score, {distance} AS distance FROM {vectors} WHERE {condition}
    ORDER BY distance LIMIT {top}) AS near ORDER BY score DESC"""
_READ = """SELECT id, metadata, {send}(embedding), text FROM {vectors} LEFT JOIN {texts} USING (number)
    WHERE id = ANY(%(ids)s)"""
_IDS = "SELECT id FROM {vectors} WHERE {condition} ORDER BY id LIMIT 1000"


async def nearest(
    connection: Connection,
    namespace: Namespace,
    queries: Sequence[PackedVector],
    *,
    top: int,
    condition: Condition,
    graph: bool,
) -> list[list[VectorMatch]]:
    """Return the best records for each query, by the graph or by comparing all that pass.

    Where a graph gives fewer than ``top``, as for a filter that keeps next to nothing, all are compared after all.
    """
    if not graph:
        answers = await _compared(connection, namespace, queries, top, condition)
    else:
        answers = await _walked(connection, namespace, queries, top, condition)
        short = [number for number, rows in enumerate(answers) if len(rows) < top]
        if short:
            again = await _compared(connection, namespace, [queries[number] for number in short], top, condition)
            for number, rows in zip(short, again, strict=True):
                answers[number] = rows
    return [
        [
            VectorMatch(given(id), score if -1.0 <= score <= 1.0 else _cosine(score), decoded(text))
            for id, text, score in rows
        ]
        for rows in answers
    ]


async def hybrid(
    connection: Connection,
    namespace: Namespace,
    words: str,
    query: PackedVector | None,
    *,
    top: int,
    share: float | None,
    condition: Condition,
    graph: bool,
) -> list[VectorMatch]:
    """Return the best records by words, or by words and vector where there is one.

    Where a graph gives too few, all are compared, as in `nearest`.
    """
    values = {**condition.values, "words": words, "language": namespace.language}
    if query is None:
        statement = namespace.statement(WORDS, condition=condition.sql, top=str(top))
    else:
        values |= {"query": query, "share": share}
        template = BOTH.replace("{order}", "{distance}" if graph else "{product} DESC").replace(
            "{answered}", ALL_ANSWERED if condition is EVERYTHING else SOME_ANSWERED
        )
        statement = namespace.statement(
            template, condition=condition.sql, top=str(top), depth=str(max(_LEAST_DEPTH, 4 * top))
        )
    cursor = await connection.execute(statement, values, prepare=False if condition.values else None)
    rows = await cursor.fetchall()
    if graph and query is not None and len(rows) < top:
        return await hybrid(connection, namespace, words, query, top=top, share=share, condition=condition, graph=False)
    return [
        VectorMatch(given(id), score, decoded(text), lexical, _cosine(cosine))
        for id, text, score, lexical, cosine in rows
    ]


async def read(
    connection: Connection, namespace: Namespace, keys: Sequence[str]
) -> tuple[list[VectorRecord], Vectors | None]:
    """Return the records known among ``keys``, in that order, with their texts, and their vectors."""
    cursor = connection.cursor(binary=True)
    await cursor.execute(namespace.statement(_READ), {"ids": list(keys)})
    known = {row[0]: row for row in await cursor.fetchall()}
    found = [row for id in keys if (row := known.get(id)) is not None]
    if not found:
        return [], None
    records = [
        VectorRecord(given(id), decoded(metadata), None if text is None else given(text))
        for id, metadata, _, text in found
    ]
    return records, unpacked([row[2] for row in found], namespace.dimensions)


async def count(connection: Connection, namespace: Namespace) -> int:
    """Return how many records there are."""
    cursor = await connection.execute(namespace.statement("SELECT count(*) FROM {vectors}"), {})
    [[number]] = await cursor.fetchall()
    return int(number)


async def ids_after(connection: Connection, namespace: Namespace, last: str | None) -> list[str]:
    """Return the next ids, in the form that is stored."""
    condition, values = ("true", {}) if last is None else ("id > %(last)s", {"last": last})
    cursor = await connection.execute(namespace.statement(_IDS, condition=condition), values)
    return [id for (id,) in await cursor.fetchall()]


async def _compared(
    connection: Connection, namespace: Namespace, queries: Sequence[PackedVector], top: int, condition: Condition
) -> list[list[Any]]:
    statement = namespace.statement(_EXACT, condition=condition.sql, top=str(top))
    # What is best depends on how much a filter keeps; a prepared statement is planned for any filter after a while.
    return await _asked(connection, statement, queries, condition.values, prepare=False if condition.values else None)


async def _walked(
    connection: Connection, namespace: Namespace, queries: Sequence[PackedVector], top: int, condition: Condition
) -> list[list[Any]]:
    text = _ALONG_HALF_GRAPH if namespace.in_half else _ALONG_GRAPH
    if not condition.values:
        statement = namespace.statement(text, condition=condition.sql, top=str(top))
        return await _asked(connection, statement, queries, condition.values)
    # Prepared, since planning for each filter is quick beside parsing. That PostgreSQL does plan for each is because
    # a plan for any number of rows wanted costs more than one for few: it takes the cheaper of both.
    statement = namespace.statement(text, condition=condition.sql, top="%(top)s::bigint")
    return await _asked(connection, statement, queries, {**condition.values, "top": top})


async def _asked(
    connection: Connection,
    statement: bytes,
    queries: Sequence[PackedVector],
    values: dict[str, object],
    *,
    prepare: bool | None = None,
) -> list[list[Any]]:
    if len(queries) == 1 or not AsyncPipeline.is_supported():
        return [
            await (await connection.execute(statement, {**values, "query": query}, prepare=prepare)).fetchall()
            for query in queries
        ]
    answers: list[list[Any]] = []
    for start in range(0, len(queries), _QUERIES_AT_ONCE):
        async with connection.pipeline():
            cursors = [
                await connection.execute(statement, {**values, "query": query}, prepare=prepare)
                for query in queries[start : start + _QUERIES_AT_ONCE]
            ]
            answers += [await cursor.fetchall() for cursor in cursors]
    return answers


def _cosine(product: float) -> float:
    # Sums of float32 may go a little beyond.
    return min(1.0, max(-1.0, product))
