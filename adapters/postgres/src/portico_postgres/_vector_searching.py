"""Searching a namespace, by vectors, by words and by both, and reading what is in it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from psycopg import AsyncPipeline
from psycopg.adapt import Dumper
from psycopg.pq import Format

from portico.search import VectorMatch, Vectors
from portico_postgres._connections import Connection
from portico_postgres._metadata import EVERYTHING, Condition, decoded, given
from portico_postgres._vector_tables import Namespace

Rows: TypeAlias = npt.NDArray[np.float32]

MOST_DIMENSIONS = 16_000
"""What pgvector's type holds."""

_HEADER = 4
_NEARLY_ONE = 2e-6
"""How far a squared length may be from 1 for a vector to be kept bit for bit."""


class PackedVector(bytes):
    """A vector in pgvector's binary form, as a parameter of a statement.

    It is two big-endian uint16, of which the first is the number of dimensions, then each number as a big-endian
    float32 (`vector_send` in pgvector's src/vector.c).
    """


class PackedDumper(Dumper):
    """Sends a `PackedVector` as it is; the statement says that it is a vector."""

    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:
        return bytes(obj)


def as_rows(vectors: Vectors) -> Rows:
    return np.frombuffer(vectors.buffer.cast("B"), dtype=np.float32).reshape(vectors.rows, vectors.dimensions)


def unit_rows(rows: Rows, *, numbers: Sequence[int] | None = None) -> Rows:
    """Return the rows at length one; rows of zeros stay zeros, unit rows keep every bit.

    Raises ``ValueError`` for one that is not finite; ``numbers`` are those by which it names them.
    """
    # float64 holds the square of any float32, so only a number that is not finite gives a square that is not.
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    finite = np.isfinite(squares)
    if not finite.all():
        row = int(finite.argmin())
        raise ValueError(f"vector {row if numbers is None else numbers[row]} holds a number that is not finite")
    other = ((np.abs(squares - 1.0) > _NEARLY_ONE) & (squares > 0)).nonzero()[0]
    if len(other):
        rows = rows.copy()
        rows[other] = rows[other] / np.sqrt(squares[other])[:, None]
    return rows


def row_bytes(dimensions: int) -> int:
    return _HEADER + 4 * dimensions


def packed(rows: Rows) -> memoryview:
    """Return the binary forms of rows one after another, turned round and copied in one go."""
    form: Any = np.empty(len(rows), dtype=_form(rows.shape[1]))
    form["dimensions"] = rows.shape[1]
    form["unused"] = 0
    form["numbers"] = rows
    return memoryview(form).cast("B")


def packed_queries(queries: Vectors) -> list[PackedVector]:
    """Return queries at length one, each in binary form. Raises ``ValueError`` for one that is not finite."""
    if queries.rows == 1:
        # The usual case, which has to be quick.
        row = np.asarray(queries.buffer, dtype=np.float32)
        # float64 holds the square of any float32.
        exact = row.astype(np.float64)
        if abs(exact.dot(exact) - 1.0) <= _NEARLY_ONE:
            return [PackedVector(struct.pack(">HH", queries.dimensions, 0) + row.astype(">f4").tobytes())]
    forms, size = packed(unit_rows(as_rows(queries))), row_bytes(queries.dimensions)
    return [PackedVector(forms[start : start + size]) for start in range(0, len(forms), size)]


def unpacked(vectors: Sequence[bytes], dimensions: int) -> Vectors:
    form = np.frombuffer(b"".join(vectors), dtype=_form(dimensions))
    return Vectors(np.ascontiguousarray(form["numbers"], dtype=np.float32), len(vectors), dimensions)


def _form(dimensions: int) -> np.dtype[Any]:
    return np.dtype([("dimensions", ">u2"), ("unused", ">u2"), ("numbers", ">f4", (dimensions,))])


# BM25 (Robertson and Zaragoza 2009) with k1 = 1.2 and b = 0.75, and Lucene's idf, which is positive also for a word
# that most texts have. Divided by what a perfect text would reach, which is all the idf times k1 + 1, a score says
# which part of the question a text answers, and so compares with a cosine. Where there are many texts, their number is
# an estimate; their mean length is that of the texts found. As in the documents connector, a word that more than 30% of
# many texts have is left out when there are others: it says next to nothing, and each text that has it costs time.
_ANSWERED = """WITH known AS MATERIALIZED (
    SELECT texts, greatest(5000, 0.3 * texts)::bigint AS most FROM (
        SELECT CASE WHEN reltuples >= 20000 THEN reltuples::float8 ELSE (SELECT count(*) FROM {texts}) END AS texts
        FROM pg_class WHERE oid = {texts_name}::regclass) AS counted
), asked AS MATERIALIZED (
    SELECT lexeme, array_to_tsvector(ARRAY[lexeme])::text::tsquery AS term
    FROM unnest(to_tsvector(%(language)s::regconfig, %(words)s))
), found AS MATERIALIZED (
    SELECT lexeme, number, length, times FROM asked CROSS JOIN LATERAL (
        SELECT number, length, ts_rank_cd(ARRAY[1, 1, 1, 1]::real[], words, term)::float8 AS times
        FROM {texts} WHERE words @@ term LIMIT (SELECT most + 1 FROM known)) AS with_it
), rarity AS MATERIALIZED (
    SELECT lexeme, count(number) AS had FROM asked LEFT JOIN found USING (lexeme) GROUP BY lexeme
), weighed AS MATERIALIZED (
    SELECT lexeme, ln(1 + greatest(texts - had + 0.5, 0.5) / (had + 0.5)) AS idf FROM rarity CROSS JOIN known
    WHERE had <= most OR NOT EXISTS (SELECT FROM rarity CROSS JOIN known WHERE had BETWEEN 1 AND most)
), whole AS MATERIALIZED (
    SELECT sum(idf) AS idf, (SELECT greatest(avg(length), 1)::float8 FROM found) AS length FROM weighed
), answered AS MATERIALIZED (
    SELECT number,
        sum(weighed.idf * times / (times + 1.2 * (0.25 + 0.75 * found.length / whole.length))) / whole.idf AS lexical
    FROM found JOIN weighed USING (lexeme) CROSS JOIN whole GROUP BY number, whole.idf
)"""

WORDS = (
    _ANSWERED
    + """SELECT id, metadata, lexical, lexical, 0.0::float8 FROM answered JOIN {vectors} USING (number)
    WHERE {condition} ORDER BY lexical DESC, number LIMIT {top}"""
)
"""The best by words alone."""

# Candidates are the best of each half. Without a `share`, the words count by what they weigh: a BM25 of
# 25 counts as much as a cosine of 1, and BM25 is at most 2.2 times the idf (0.088 = 2.2 / 25). A long question, or one
# of rare words, says much by them; a short one of common words little, and then the vector decides. The documents
# connector weighs in the same way, and says by what measurements.
BOTH = (
    _ANSWERED
    + """, near AS MATERIALIZED (
    SELECT number FROM {vectors} WHERE {condition} ORDER BY {order} LIMIT {depth}
), worded AS MATERIALIZED (
    SELECT number FROM {answered} ORDER BY lexical DESC, number LIMIT {depth}
), share AS MATERIALIZED (
    SELECT CASE WHEN idf IS NULL THEN 0 ELSE coalesce(%(share)s::float8, 0.088 * idf / (0.088 * idf + 1)) END AS words
    FROM whole
), candidates AS MATERIALIZED (
    SELECT number, id, metadata, coalesce(lexical, 0) AS lexical, {product} AS cosine
    FROM (SELECT number FROM near UNION SELECT number FROM worded) AS chosen
    JOIN {vectors} USING (number) LEFT JOIN answered USING (number)
), fused AS MATERIALIZED (
    SELECT *, words * lexical + (1 - words) * greatest(cosine, 0) AS score FROM candidates CROSS JOIN share
)
SELECT id, metadata, score, lexical, cosine FROM fused WHERE score > 0 ORDER BY score DESC, number LIMIT {top}"""
)
"""The best by words and vector; ``{answered}`` is `ALL_ANSWERED`, or with a condition `SOME_ANSWERED`."""

ALL_ANSWERED = "answered"
SOME_ANSWERED = "answered JOIN {vectors} USING (number) WHERE {condition}"


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


async def _compared(
    connection: Connection, namespace: Namespace, queries: Sequence[PackedVector], top: int, condition: Condition
) -> list[list[Any]]:
    statement = namespace.statement(_EXACT, condition=condition.sql, top=str(top))
    # What is best depends on how much a filter keeps; a prepared statement is planned for any filter after a while.
    return await _answers(connection, statement, queries, condition.values, prepare=False if condition.values else None)


async def _walked(
    connection: Connection, namespace: Namespace, queries: Sequence[PackedVector], top: int, condition: Condition
) -> list[list[Any]]:
    # Prepared, since planning for each filter is quick beside parsing. That PostgreSQL does plan for each is because
    # a plan for any number of rows wanted costs more than one for few: it takes the cheaper of both.
    limit = "%(top)s::bigint" if condition.values else str(top)
    text = _ALONG_HALF_GRAPH if namespace.in_half else _ALONG_GRAPH
    statement = namespace.statement(text, condition=condition.sql, top=limit)
    values = {**condition.values, "top": top} if condition.values else {}
    return await _answers(connection, statement, queries, values)


async def _answers(
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
