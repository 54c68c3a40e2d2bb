"""The tables of the vectors: one lists the namespaces, and each of these has its own two.

A graph of pgvector wants a fixed number of dimensions, and a search should look at one namespace only: hence tables for
each. Their names are made of a number that PostgreSQL gives out, never of the namespace's name, and no number is given
out twice: a process that still knows a dropped table gets an error.
"""

from __future__ import annotations

from psycopg import errors, sql

from portico.errors import ConfigurationError, StoreError
from portico_postgres._connections import Connection, Part
from portico_postgres.config import PostgresVectorSettings

_LEAST_PGVECTOR = (0, 8)
"""From 0.8 on, a search along a graph continues until enough records pass a filter."""
_ADVICE = "https://github.com/pgvector/pgvector#installation"

_PAGE = 8_160
"""Bytes that a row has in a page at most."""
_INLINE_DIMENSIONS = 1_900
"""Vectors of so many dimensions lie in the rows themselves; larger ones beside them, in pieces of 2 kB."""
_GRAPH_DIMENSIONS = 2_000
_HALF_GRAPH_DIMENSIONS = 4_000
"""What pgvector's graphs take in full and in half precision."""

_TABLES = (
    # `number` says when a record came: in which write, and at which place in it. Of equal scores the older comes first.
    """CREATE TABLE {vectors} (
        number bigint PRIMARY KEY,
        id text COLLATE "C" NOT NULL UNIQUE,
        metadata text NOT NULL,
        fields jsonb NOT NULL,
        embedding {type}({dimensions}) NOT NULL) WITH (toast_tuple_target = {target})""",
    "ALTER TABLE {vectors} ALTER embedding SET STORAGE {storage}, ALTER embedding SET STATISTICS 0",
    "CREATE INDEX ON {vectors} USING gin (fields jsonb_path_ops)",
    "CREATE SEQUENCE {writes} OWNED BY {vectors}.number",
    # Apart, so that comparing all vectors reads nothing else. The words lie in the rows: each one found is looked at.
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
    """A namespace in the database: its number, the dimensions of its vectors, its language, its statements.

    In these, ``{vectors}`` and ``{texts}`` are its tables. ``{product}`` is the inner product of the vector asked for
    and that of a record, a function, which no graph answers; ``{distance}`` is what a graph answers.
    """

    __slots__ = ("_names", "dimensions", "has_graph", "in_half", "language", "number")

    def __init__(self, schema: str, number: int, dimensions: int, language: str, extension: str) -> None:
        self.number = number
        self.dimensions = dimensions
        self.language = language
        self.has_graph = False
        self.in_half = dimensions > _GRAPH_DIMENSIONS
        """Whether a graph has the vectors in half precision, too large for one in full."""
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
        """Return a statement about it, to be run with parameters, also with none; ``parts`` are never from outside."""
        return text.format_map({**self._names, **parts}).encode()


def identifier(*names: str) -> str:
    """Return a quoted identifier, in which a % is not taken for the beginning of a parameter."""
    return sql.Identifier(*names).as_string().replace("%", "%%")


def _literal(text: str) -> str:
    return sql.Literal(text).as_string()


async def find(connection: Connection, schema: str, name: str) -> Namespace | None:
    """Return the namespace of a name, in the form that is stored; None where there is none."""
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
    """Make a namespace in the transaction under way; return the one that another process made meanwhile."""
    language = await _language(connection, settings.language)
    cursor = await connection.execute(
        f"INSERT INTO {identifier(schema, 'vector_namespaces')} (name, dimensions, language) VALUES (%s, %s, %s)"
        " ON CONFLICT (name) DO NOTHING RETURNING number".encode(),
        (name, dimensions, language),
    )
    made = await cursor.fetchone()
    namespace = await find(connection, schema, name)
    if namespace is None:
        raise errors.SerializationFailure("the namespace was dropped at the same moment")
    if made is not None:
        for statement in _TABLES:
            await connection.execute(namespace.statement(statement), {})
    return namespace


async def _language(connection: Connection, wanted: str) -> str:
    try:
        async with connection.transaction():
            cursor = await connection.execute("SELECT %s::regconfig::text", (wanted,))
            row = await cursor.fetchone()
            return wanted if row is None else str(row[0])
    except (errors.UndefinedObject, errors.InvalidName, errors.InvalidSchemaName, errors.SyntaxError) as error:
        raise ConfigurationError(
            f"PostgreSQL has no text search configuration {wanted!r}, which `language` in [vectors.postgres] names. "
            "`SELECT cfgname FROM pg_ts_config` lists them."
        ) from error


async def drop(connection: Connection, schema: str, name: str) -> None:
    """Remove a namespace with its tables, in the transaction under way."""
    cursor = await connection.execute(
        f"DELETE FROM {identifier(schema, 'vector_namespaces')} WHERE name = %s RETURNING number".encode(), (name,)
    )
    row = await cursor.fetchone()
    if row is not None:
        tables = ", ".join(identifier(schema, f"{kind}_{row[0]}") for kind in ("vectors", "texts"))
        await connection.execute(f"DROP TABLE IF EXISTS {tables}".encode(), {})


async def link(connection: Connection, namespace: Namespace, settings: PostgresVectorSettings) -> None:
    """Make the graph of a namespace that has enough records for it, and none yet.

    Writers wait meanwhile, readers do not. Of several processes that find it due, one makes it.
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
