"""The tables of the namespaces, and searches of one by vectors, by words and by both.

Each namespace has its own tables: a graph of pgvector has a fixed number of dimensions, and a search reads one
namespace only. Their names contain a number from PostgreSQL, never the namespace's name. No number is used twice, so a
process that still knows a dropped table gets an error.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from psycopg import AsyncPipeline, errors, sql
from psycopg.adapt import Dumper
from psycopg.pq import Format

from portico.errors import ConfigurationError, StoreError
from portico.search import VectorMatch, Vectors
from portico_postgres._connections import Connection, Part
from portico_postgres._metadata import EVERYTHING, Condition, decode, unescape
from portico_postgres.config import PostgresVectorSettings

_LEAST_PGVECTOR = (0, 8)
"""From 0.8 on, a search along a graph continues until enough records pass a filter."""
_ADVICE = "https://github.com/pgvector/pgvector#installation"

_PAGE = 8_160
"""Bytes that a row has in a page at most."""
_INLINE_DIMENSIONS = 1_900
"""Vectors of up to so many dimensions are stored in the rows, larger ones in pieces of 2 kB beside them."""
_GRAPH_DIMENSIONS = 2_000
_HALF_GRAPH_DIMENSIONS = 4_000
"""What pgvector's graphs take in full and in half precision."""

_TABLES = (
    # `number` orders records by age: the write, and the place in it. Of equal scores the oldest comes first.
    """CREATE TABLE {vectors} (
        number bigint PRIMARY KEY,
        id text COLLATE "C" NOT NULL UNIQUE,
        metadata text NOT NULL,
        fields jsonb NOT NULL,
        embedding {type}({dimensions}) NOT NULL) WITH (toast_tuple_target = {target})""",
    "ALTER TABLE {vectors} ALTER embedding SET STORAGE {storage}, ALTER embedding SET STATISTICS 0",
    "CREATE INDEX ON {vectors} USING gin (fields jsonb_path_ops)",
    "CREATE SEQUENCE {writes} OWNED BY {vectors}.number",
    # A table apart, so that a comparison of all vectors reads nothing else.
    """CREATE TABLE {texts} (
        number bigint PRIMARY KEY,
        text text NOT NULL,
        words tsvector NOT NULL,
        length integer NOT NULL) WITH (toast_tuple_target = 8160)""",
    "ALTER TABLE {texts} ALTER words SET STORAGE EXTERNAL",
    "CREATE INDEX ON {texts} USING gin (words)",
)


async def _first(connection: Connection, schema: sql.Identifier) -> None:
    try:
        async with connection.transaction():
            await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        cursor = await connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        row = await cursor.fetchone()
        version = tuple(int(part) for part in str(row and row[0]).split(".")[:2] if part.isdigit())
        if version < _LEAST_PGVECTOR:
            raise errors.FeatureNotSupported(f"it has pgvector {row and row[0]}")
    except (errors.FeatureNotSupported, errors.UndefinedFile, errors.InsufficientPrivilege) as error:
        raise StoreError(
            f"The database needs pgvector 0.8 or later: {error}. Install it at the server ({_ADVICE}), and let an "
            "administrator run `CREATE EXTENSION vector` or `ALTER EXTENSION vector UPDATE` in the database."
        ) from error
    await connection.execute(
        sql.SQL(
            """CREATE TABLE {}.vector_namespaces (
                number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                name text COLLATE "C" NOT NULL UNIQUE,
                dimensions integer NOT NULL,
                language text NOT NULL,
                made timestamptz NOT NULL DEFAULT now())"""
        ).format(schema)
    )


PART = Part("vectors", (_first,))


class Namespace:
    """A namespace in the database: its number, its dimensions, its language, and its statements.

    In these, ``{vectors}`` and ``{texts}`` are its tables. ``{product}`` is the inner product of the query and a
    record's vector, which is always exact; ``{distance}`` is computed along the graph where there is one.
    """

    __slots__ = ("_names", "dimensions", "has_graph", "in_half", "language", "number")

    def __init__(self, schema: str, number: int, dimensions: int, language: str, extension: str) -> None:
        self.number = number
        self.dimensions = dimensions
        self.language = language
        self.has_graph = False
        self.in_half = dimensions > _GRAPH_DIMENSIONS
        """Whether the graph has the vectors in half precision: they are too large for full precision."""
        type, graph = identifier(extension, "vector"), f"vectors_{number}_graph"
        query = f"%(query)b::{type}"
        column, asked, opclass = "embedding", query, "vector_ip_ops"
        if self.in_half:
            half = f"{identifier(extension, 'halfvec')}({dimensions})"
            column, asked, opclass = f"(embedding::{half})", f"({query})::{half}", "halfvec_ip_ops"
        self._names = {
            "vectors": identifier(schema, f"vectors_{number}"),
            "texts": identifier(schema, f"texts_{number}"),
            "writes": identifier(schema, f"writes_{number}"),
            "writes_name": _literal(identifier(schema, f"writes_{number}")),
            "texts_name": _literal(identifier(schema, f"texts_{number}")),
            "type": type,
            "dimensions": str(dimensions),
            "storage": "PLAIN" if dimensions <= _INLINE_DIMENSIONS else "EXTERNAL",
            "target": str(min(_PAGE, 2_000 + 4 * dimensions)),
            "send": identifier(extension, "vector_send"),
            "product": f"{identifier(extension, 'inner_product')}(embedding, {query})",
            "distance": f"{column} OPERATOR({identifier(extension)}.<#>) {asked}",
            "graph": identifier(graph),
            "graph_name": _literal(identifier(schema, graph)),
            "graph_of": f"({column}) {identifier(extension, opclass)}",
        }

    @property
    def takes_graph(self) -> bool:
        """Whether pgvector can make a graph of vectors with so many dimensions."""
        return self.dimensions <= _HALF_GRAPH_DIMENSIONS

    def statement(self, text: str, **parts: str) -> bytes:
        """Return a statement with its names filled in; pass parameters with it, at least ``{}``.

        ``parts`` become SQL, so they never come from outside.
        """
        return text.format_map({**self._names, **parts}).encode()


def identifier(*names: str) -> str:
    """Return a quoted identifier, with % escaped for psycopg."""
    return sql.Identifier(*names).as_string().replace("%", "%%")


def _literal(text: str) -> str:
    return sql.Literal(text).as_string()


async def find(connection: Connection, schema: str, name: str) -> Namespace | None:
    """Return the namespace with this stored name, or None."""
    cursor = await connection.execute(
        f"""SELECT number, dimensions, language,
            (SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
             WHERE extname = 'vector')
            FROM {identifier(schema, "vector_namespaces")} WHERE name = %s""".encode(),
        (name,),
    )
    row = await cursor.fetchone()
    if row is None:
        return None
    if row[3] is None:
        raise StoreError("The database has lost pgvector. Let an administrator run `CREATE EXTENSION vector` in it.")
    return Namespace(schema, *row)


async def make(
    connection: Connection, schema: str, name: str, dimensions: int, settings: PostgresVectorSettings
) -> Namespace:
    """Make a namespace in the current transaction, or return the one that another process made."""
    try:
        cursor = await connection.execute(
            f"INSERT INTO {identifier(schema, 'vector_namespaces')} (name, dimensions, language)"
            " VALUES (%s, %s, %s::regconfig::text) ON CONFLICT (name) DO NOTHING RETURNING number".encode(),
            (name, dimensions, settings.language),
        )
    except (errors.UndefinedObject, errors.InvalidName, errors.InvalidSchemaName, errors.SyntaxError) as error:
        raise ConfigurationError(
            f"PostgreSQL has no text search configuration {settings.language!r}, which `language` in "
            "[vectors.postgres] names. `SELECT cfgname FROM pg_ts_config` lists them."
        ) from error
    made = await cursor.fetchone()
    namespace = await find(connection, schema, name)
    if namespace is None:
        raise errors.SerializationFailure("the namespace was dropped at the same moment")
    if made is not None:
        for statement in _TABLES:
            await connection.execute(namespace.statement(statement), {})
    return namespace


async def drop(connection: Connection, schema: str, name: str) -> None:
    """Remove a namespace and its tables, in the current transaction."""
    cursor = await connection.execute(
        f"DELETE FROM {identifier(schema, 'vector_namespaces')} WHERE name = %s RETURNING number".encode(), (name,)
    )
    row = await cursor.fetchone()
    if row is not None:
        tables = ", ".join(identifier(schema, f"{kind}_{row[0]}") for kind in ("vectors", "texts"))
        await connection.execute(f"DROP TABLE IF EXISTS {tables}".encode(), {})


async def link(connection: Connection, namespace: Namespace, settings: PostgresVectorSettings) -> None:
    """Make the graph of a namespace if it has enough records and no graph yet.

    Writers wait meanwhile, readers do not. One process makes it, others wait.
    """
    enough = namespace.statement(_HAS_ENOUGH, limit=str(settings.hnsw_from))
    cursor = await connection.execute(enough, {})
    linked, count = await cursor.fetchone() or (False, 0)
    if not linked and count >= settings.hnsw_from:
        async with connection.transaction():
            await connection.execute("SET LOCAL statement_timeout = 0")
            await connection.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))", ("portico graph", namespace.number)
            )
            await connection.execute(
                namespace.statement(
                    _LINK, neighbours=str(settings.hnsw_neighbours), construction=str(settings.hnsw_construction)
                ),
                {},
            )
            await connection.execute(namespace.statement("ANALYZE {vectors}"), {})
        linked = True
    namespace.has_graph = linked


_HAS_ENOUGH = """SELECT to_regclass({graph_name}) IS NOT NULL,
    (SELECT count(*) FROM (SELECT FROM {vectors} LIMIT {limit}) AS first)"""
_LINK = """CREATE INDEX IF NOT EXISTS {graph} ON {vectors} USING hnsw ({graph_of})
    WITH (m = {neighbours}, ef_construction = {construction})"""


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


def unit_rows(vectors: Vectors) -> Rows:
    """Return the rows at length one. Rows of zeros stay zeros, and unit rows stay bit for bit.

    Raises ``ValueError`` for a number that is not finite.
    """
    rows = np.frombuffer(vectors.buffer.cast("B"), dtype=np.float32).reshape(vectors.rows, vectors.dimensions)
    # float64 holds the square of any float32.
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    finite = np.isfinite(squares)
    if not finite.all():
        raise ValueError(f"vector {int(finite.argmin())} holds a number that is not finite")
    other = ((np.abs(squares - 1.0) > _NEARLY_ONE) & (squares > 0)).nonzero()[0]
    if len(other):
        rows = rows.copy()
        rows[other] = rows[other] / np.sqrt(squares[other])[:, None]
    return rows


def row_bytes(dimensions: int) -> int:
    return _HEADER + 4 * dimensions


def pack(rows: Rows) -> memoryview:
    """Return the binary forms of all rows in one buffer."""
    form: Any = np.empty(len(rows), dtype=_form(rows.shape[1]))
    form["dimensions"] = rows.shape[1]
    form["unused"] = 0
    form["numbers"] = rows
    return memoryview(form).cast("B")


def pack_queries(queries: Vectors) -> list[PackedVector]:
    """Return queries at length one, each in binary form. Raises ``ValueError`` for one that is not finite."""
    if queries.rows == 1:
        # The usual case, which has to be quick.
        row = np.asarray(queries.buffer, dtype=np.float32)
        exact = row.astype(np.float64)
        if abs(exact.dot(exact) - 1.0) <= _NEARLY_ONE:
            return [PackedVector(struct.pack(">HH", queries.dimensions, 0) + row.astype(">f4").tobytes())]
    forms, size = pack(unit_rows(queries)), row_bytes(queries.dimensions)
    return [PackedVector(forms[start : start + size]) for start in range(0, len(forms), size)]


def unpack(vectors: Sequence[bytes], dimensions: int) -> Vectors:
    form = np.frombuffer(b"".join(vectors), dtype=_form(dimensions))
    return Vectors(np.ascontiguousarray(form["numbers"], dtype=np.float32), len(vectors), dimensions)


def _form(dimensions: int) -> np.dtype[Any]:
    return np.dtype([("dimensions", ">u2"), ("unused", ">u2"), ("numbers", ">f4", (dimensions,))])


# BM25 (Robertson and Zaragoza 2009) with k1 = 1.2 and b = 0.75, and Lucene's idf, which is never negative. The score is
# divided by that of a perfect text, all the idf times k1 + 1, so that it compares with a cosine. The number of many
# texts is an estimate; the mean length is that of the texts found. As in the documents connector, a word in more than
# 30% of many texts is left out if there are others: it says little and takes time.
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

# Candidates are the best of each half. Without a `share`, words count by their weight: a BM25 of 25 counts as much as a
# cosine of 1, and BM25 is at most 2.2 times the idf (0.088 = 2.2 / 25). So words decide a long question or one of rare
# words, and the vector a short one of common words. The documents connector uses the same weights; see its
# measurements.
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
# A graph in half precision finds what is nearly nearest; the scores are those of the full vectors.
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
    """Return the best records for each query, along the graph or by comparing all that match.

    If the graph finds fewer than ``top``, all are compared.
    """
    if not graph:
        answers = await _compare(connection, namespace, queries, top, condition)
    else:
        answers = await _walk(connection, namespace, queries, top, condition)
        short = [number for number, rows in enumerate(answers) if len(rows) < top]
        if short:
            again = await _compare(connection, namespace, [queries[number] for number in short], top, condition)
            for number, rows in zip(short, again, strict=True):
                answers[number] = rows
    return [[VectorMatch(unescape(id), _cosine(score), decode(text)) for id, text, score in rows] for rows in answers]


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
    """Return the best records by words, or by words and vector if there is one.

    If the graph finds fewer than ``top``, all are compared.
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
        VectorMatch(unescape(id), score, decode(text), lexical, _cosine(cosine))
        for id, text, score, lexical, cosine in rows
    ]


async def _compare(
    connection: Connection, namespace: Namespace, queries: Sequence[PackedVector], top: int, condition: Condition
) -> list[list[Any]]:
    statement = namespace.statement(_EXACT, condition=condition.sql, top=str(top))
    # The best plan depends on the filter; a prepared statement would get one plan for all filters.
    return await _answers(connection, statement, queries, condition.values, prepare=False if condition.values else None)


async def _walk(
    connection: Connection, namespace: Namespace, queries: Sequence[PackedVector], top: int, condition: Condition
) -> list[list[Any]]:
    # Prepared, since parsing takes longer than planning. The limit is a parameter so that PostgreSQL still plans for
    # each filter: a general plan for an unknown limit costs more.
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
    # Rounding may exceed the bounds.
    return min(1.0, max(-1.0, product))
