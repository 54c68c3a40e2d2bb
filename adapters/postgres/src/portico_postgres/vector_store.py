"""The vector store on pgvector."""

from __future__ import annotations

import asyncio
import operator
import re
import unicodedata
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeAlias, TypeVar

from psycopg import errors

from portico.errors import StoreDamaged
from portico.plugins import Services
from portico.ports import VectorStore
from portico.search import Filter, FilterSupport, VectorMatch, VectorRecord, Vectors
from portico_postgres import _vector_searching as searching
from portico_postgres._connections import Connection, Connections
from portico_postgres._metadata import Condition, condition_of, decode, encode, escape, key, unescape
from portico_postgres._vector_searching import (
    MOST_DIMENSIONS,
    PART,
    Namespace,
    PackedDumper,
    PackedVector,
    drop,
    find,
    link,
    make,
    pack,
    pack_queries,
    row_bytes,
    unit_rows,
    unpack,
)
from portico_postgres.config import PostgresVectorSettings

# PostgreSQL's own parser takes "and/or" for a file and "a.example" for a host; what has only words has none of these.
_WORD = re.compile(r"[^\W_]+")
# aB, 1B, and the last capital of a run before a small letter (HTTPServer), as in PEP 8's mixedCase and CapWords.
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_MOST_CHARACTERS = 200_000
"""Only so many characters of a text are indexed: PostgreSQL keeps at most 1 MB of its words."""
_MOST_ASKED = 64


def searched_words(text: str) -> list[str]:
    """Return the words of a text, and also the parts of identifiers.

    >>> searched_words("Call getUser() and/or load_all.")
    ['Call', 'getUser', 'and', 'or', 'load', 'all', 'get', 'User']
    """
    words = _WORD.findall(unicodedata.normalize("NFC", text[:_MOST_CHARACTERS]))
    parts = [part for word in words if not word.islower() and (split := _HUMP.split(word))[1:] for part in split]
    return words + parts


def asked_words(query: str) -> list[str]:
    """Return the distinct words of a question, at most 64.

    >>> asked_words("What is it? It is 'this' & !that.")
    ['What', 'is', 'it', 'It', 'this', 'that']
    """
    return list(dict.fromkeys(searched_words(query)))[:_MOST_ASKED]


_SLICE = 256
"""Records prepared at once, before other tasks may run."""

# The table lasts as long as the connection and is empty between transactions, so catalogues do not grow.
_STAGE = """CREATE TEMPORARY TABLE IF NOT EXISTS portico_staged (
    place integer, id text COLLATE "C", metadata text, fields text, embedding {type},
    text text, words text, length integer) ON COMMIT DELETE ROWS"""
_COPY = "COPY pg_temp.portico_staged FROM STDIN (FORMAT BINARY)"
# COPY sends no types; pgvector's binary form is sent like a bytea.
_TYPES = ("int4", "text", "text", "text", "bytea", "text", "text", "int4")

_WRITE = """INSERT INTO {vectors} (number, id, metadata, fields, embedding)
    SELECT (SELECT nextval({writes_name})) * 16777216 + place, id, metadata, fields::jsonb, embedding
    FROM pg_temp.portico_staged
    ON CONFLICT (id) DO UPDATE
    SET metadata = EXCLUDED.metadata, fields = EXCLUDED.fields, embedding = EXCLUDED.embedding"""
_WRITE_TEXTS = """INSERT INTO {texts} (number, text, words, length)
    SELECT number, text, to_tsvector(%(language)s::regconfig, words), length
    FROM pg_temp.portico_staged JOIN {vectors} USING (id) WHERE text IS NOT NULL
    ON CONFLICT (number) DO UPDATE SET text = EXCLUDED.text, words = EXCLUDED.words, length = EXCLUDED.length"""
# The first condition makes it cheap in a namespace without texts.
_FORGET_TEXTS = """DELETE FROM {texts} WHERE EXISTS (SELECT FROM {texts}) AND number IN (
    SELECT number FROM pg_temp.portico_staged JOIN {vectors} USING (id) WHERE text IS NULL)"""

_READ = """SELECT id, metadata, {send}(embedding), text FROM {vectors} LEFT JOIN {texts} USING (number)
    WHERE id = ANY(%(ids)s)"""
# Rows are locked in the order of their ids, as in a write, so that two calls never deadlock.
_DELETE = """DELETE FROM {vectors} WHERE number IN (
    SELECT number FROM {vectors} WHERE id = ANY(%(ids)s) ORDER BY id FOR UPDATE) RETURNING number"""
# A separate statement, so that it sees a text that another process wrote during the first one.
_DELETE_TEXTS = "DELETE FROM {texts} WHERE number = ANY(%(numbers)s)"


async def upsert(
    connection: Connection, namespace: Namespace, keys: Sequence[str], records: Sequence[VectorRecord], vectors: Vectors
) -> None:
    """Add or replace records, in the transaction under way.

    Raises ``ValueError`` for a vector that is not finite, and what `encode` raises for metadata.
    """
    rows, size = unit_rows(vectors), row_bytes(vectors.dimensions)
    # Ordered by id, so that two writers lock the same records in one order.
    order = sorted(range(len(keys)), key=keys.__getitem__)
    async with connection.cursor().copy(_COPY) as copy:
        copy.set_types(_TYPES)
        for start in range(0, len(order), _SLICE):
            places = order[start : start + _SLICE]
            embeddings = pack(rows[places])
            for row, place in enumerate(places):
                record = records[place]
                metadata, fields = encode(record)
                text = words = length = None
                if record.text is not None:
                    found = searched_words(record.text)
                    text, words, length = escape(record.text), " ".join(found), len(found)
                embedding = embeddings[row * size : (row + 1) * size]
                await copy.write_row((place, keys[place], metadata, fields, embedding, text, words, length))
            await asyncio.sleep(0)
    await connection.execute(namespace.statement(_WRITE), {})
    texts = sum(record.text is not None for record in records)
    if texts:
        await connection.execute(namespace.statement(_WRITE_TEXTS), {"language": namespace.language})
    if texts < len(records):
        await connection.execute(namespace.statement(_FORGET_TEXTS), {})


T = TypeVar("T")
_Work: TypeAlias = Callable[[Connection, Namespace], Awaitable[T]]

_ATTEMPTS = 10
_LONG_WRITE = 1_000
"""A write of more records may take longer than `statement_timeout`."""
_SECONDS_A_RECORD = 0.05
"""Linking a record in a large graph takes some milliseconds."""
_SECONDS_TO_LINK = 86_400.0
_MOST_SCANNED = 20_000
"""Records that a search along a graph tries for a filter, before all are compared."""

# How a graph is walked. Compiling a statement (jit) takes longer than comparing all vectors. The page cost is that of
# an SSD: with the default the server often reads all records instead of those that the index names.
_SESSION = """SELECT set_config('hnsw.ef_search', %(search)s, %(local)s),
    set_config('hnsw.iterative_scan', 'strict_order', %(local)s),
    set_config('hnsw.max_scan_tuples', %(scan)s, %(local)s),
    set_config('jit', 'off', %(local)s),
    set_config('random_page_cost', '1.1', %(local)s)"""


class Access:
    """The connections and the known namespaces.

    The number of a namespace's tables is cached. An old number causes an error, and then it is read again.
    """

    def __init__(self, settings: PostgresVectorSettings) -> None:
        self.settings = settings
        self.connections = Connections(settings, PART, table="[vectors.postgres]", configure=self._configure)
        self._known: dict[str, Namespace] = {}

    async def read(self, name: str, work: _Work[T], absent: T, *, dimensions: int | None = None) -> T:
        """Do the work on the namespace; return ``absent`` if there is none.

        Raises ``ValueError`` if its vectors have other ``dimensions``.
        """

        async def do(connection: Connection, namespace: Namespace | None) -> T:
            if namespace is None:
                return absent
            if not self.settings.transaction_pooler:
                return await work(connection, namespace)
            async with connection.transaction():
                await self._settle(connection, local=True)
                return await work(connection, namespace)

        return await self.connections.read(lambda connection: self._try(connection, name, dimensions, do), absent)

    async def write(self, name: str, dimensions: int, size: int, work: _Work[None]) -> None:
        """Do the work in one transaction, which also makes the namespace if needed; then make its graph if it is due.

        ``size`` is the number of records: a large write may take longer than `statement_timeout`.
        """
        long = size > _LONG_WRITE

        async def write(connection: Connection, namespace: Namespace | None) -> Namespace:
            async with connection.transaction():
                if namespace is None:
                    namespace = await make(connection, self.settings.schema, escape(name), dimensions, self.settings)
                _check(namespace, dimensions)
                if long:
                    await connection.execute("SET LOCAL statement_timeout = 0")
                await connection.execute(namespace.statement(_STAGE), {})
                await work(connection, namespace)
            return namespace

        namespace = await self.connections.write(
            lambda connection: self._try(connection, name, dimensions, write),
            seconds=self.settings.statement_timeout + (size * _SECONDS_A_RECORD if long else 0),
        )
        self._known[name] = namespace
        if self.settings.index == "hnsw" and namespace.takes_graph and not namespace.has_graph:
            await self._link(namespace)

    async def drop(self, name: str) -> None:
        """Remove the namespace, where there is one."""

        async def dropping(connection: Connection) -> None:
            async with connection.transaction():
                await drop(connection, self.settings.schema, escape(name))

        await self.connections.read(dropping, None)
        self._known.pop(name, None)

    async def _configure(self, connection: Connection) -> None:
        connection.adapters.register_dumper(PackedVector, PackedDumper)
        if not self.settings.transaction_pooler:
            await self._settle(connection, local=False)

    async def _settle(self, connection: Connection, *, local: bool) -> None:
        values = {"search": str(self.settings.hnsw_search), "scan": str(_MOST_SCANNED), "local": local}
        await connection.execute(_SESSION, values)

    async def _find(self, connection: Connection, name: str, dimensions: int | None = None) -> Namespace | None:
        namespace = self._known.get(name)
        if namespace is None or dimensions not in (None, namespace.dimensions):
            # Also read again for other dimensions: it may have been dropped and made again.
            namespace = await find(connection, self.settings.schema, escape(name))
            if namespace is not None:
                _check(namespace, dimensions)
                self._known[name] = namespace
        return namespace

    async def _try(
        self,
        connection: Connection,
        name: str,
        dimensions: int | None,
        do: Callable[[Connection, Namespace | None], Awaitable[T]],
    ) -> T:
        """Do the work on the current namespace, and again if another process drops it meanwhile."""
        gone: errors.UndefinedTable | None = None
        for _ in range(_ATTEMPTS):
            namespace = await self._find(connection, name, dimensions)
            try:
                return await do(connection, namespace)
            except errors.UndefinedTable as error:
                gone = error
                self._known.pop(name, None)
        raise StoreDamaged(
            f"The tables of the namespace {name!r} are gone from {self.connections.place}, schema "
            f"{self.settings.schema!r}. Drop the namespace, and write it again."
        ) from gone

    async def _link(self, namespace: Namespace) -> None:
        async def linking(connection: Connection) -> None:
            try:
                await link(connection, namespace, self.settings)
            except errors.UndefinedTable:
                return  # it was dropped meanwhile

        await self.connections.write(linking, seconds=_SECONDS_TO_LINK)


def _check(namespace: Namespace, dimensions: int | None) -> None:
    if dimensions not in (None, namespace.dimensions):
        raise ValueError(f"the vectors have {dimensions} dimensions, those in the namespace {namespace.dimensions}")


_SUPPORT = FilterSupport.everything()
_SOURCE = "Vector store 'postgres'"
_MOST_FOUND = 10**12
"""More than any namespace has: the limit of ``top``."""


class PostgresVectorStore(VectorStore):
    """The VectorStore port on PostgreSQL with pgvector, with hybrid search.

    >>> from portico.plugins import Secret
    >>> store = PostgresVectorStore(PostgresVectorSettings(uri=Secret("postgresql://ada@db.example/portico")))
    >>> store.persistent
    True

    Nothing is opened before the first call. Vectors are stored at length one, and unit vectors come back bit for bit. A
    row of zeros stays zeros and scores 0. Of equal scores the oldest record comes first. An id or a namespace has at
    most 2,000 bytes of UTF-8, and a vector at most 16,000 dimensions.

    A search compares with every vector that matches the filter. With ``index="hnsw"`` a namespace with enough records
    is searched along a graph, which may miss some; vectors of more than 4,000 dimensions are always compared. Every
    write is one transaction. Any number of processes may share the tables.
    """

    name = "postgres"
    persistent = True
    filter_support = _SUPPORT

    def __init__(self, settings: PostgresVectorSettings, services: Services | None = None) -> None:
        self._access = Access(settings)
        self.hybrid = PostgresHybridSearch(self._access)
        """`portico.ports.HybridSearch` over the same records."""

    async def upsert(self, namespace: str, records: Sequence[VectorRecord], vectors: Vectors) -> None:
        """Add records or replace those with the same id, all or none. Texts are stored for hybrid search."""
        vectors.check_records(records)
        keys = [key(record.id, "the id") for record in records]
        if not records:
            return
        key(namespace, "the namespace")
        if vectors.dimensions > MOST_DIMENSIONS:
            raise ValueError(f"the vectors have {vectors.dimensions:,} dimensions; pgvector takes {MOST_DIMENSIONS:,}")

        async def work(connection: Connection, place: Namespace) -> None:
            await upsert(connection, place, keys, records, vectors)

        await self._access.write(namespace, vectors.dimensions, len(records), work)

    async def delete(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove records; return how many there were. After a lost connection the number may be too small."""
        keys = [escape(id) for id in ids]

        async def work(connection: Connection, place: Namespace) -> int:
            async with connection.transaction():
                cursor = await connection.execute(place.statement(_DELETE), {"ids": keys})
                numbers = [number for (number,) in await cursor.fetchall()]
                if numbers:
                    await connection.execute(place.statement(_DELETE_TEXTS), {"numbers": numbers})
                return len(numbers)

        return await self._access.read(namespace, work, 0) if keys else 0

    async def get(self, namespace: str, ids: Sequence[str]) -> tuple[list[VectorRecord], Vectors | None]:
        """Return the known records among ``ids``, in that order, with their texts, and their unit vectors."""
        keys = [escape(id) for id in ids]

        async def work(connection: Connection, place: Namespace) -> tuple[list[VectorRecord], Vectors | None]:
            cursor = connection.cursor(binary=True)
            await cursor.execute(place.statement(_READ), {"ids": keys})
            known = {row[0]: row for row in await cursor.fetchall()}
            found = [row for id in keys if (row := known.get(id)) is not None]
            if not found:
                return [], None
            records = [
                VectorRecord(unescape(id), decode(metadata), None if text is None else unescape(text))
                for id, metadata, _, text in found
            ]
            return records, unpack([row[2] for row in found], place.dimensions)

        return await self._access.read(namespace, work, ([], None))

    async def search(
        self, namespace: str, queries: Vectors, *, top: int = 10, filter: Filter | None = None
    ) -> list[list[VectorMatch]]:
        """Return the ``top`` best records that match the filter, best first, one list for each query row."""
        limit, condition = _check_search(top, filter)
        units = pack_queries(queries)

        async def work(connection: Connection, place: Namespace) -> list[list[VectorMatch]]:
            graph = self._access.settings.index == "hnsw" and place.takes_graph
            return await searching.nearest(connection, place, units, top=limit, condition=condition, graph=graph)

        if not units:
            return []
        return await self._access.read(namespace, work, [[] for _ in units], dimensions=queries.dimensions)

    async def count(self, namespace: str) -> int:
        """Return how many records the namespace has."""

        async def work(connection: Connection, place: Namespace) -> int:
            cursor = await connection.execute(place.statement("SELECT count(*) FROM {vectors}"), {})
            [[number]] = await cursor.fetchall()
            return int(number)

        return await self._access.read(namespace, work, 0)

    async def ids(self, namespace: str) -> AsyncIterator[str]:
        """Yield every id that the namespace has when the first one is read."""

        async def work(connection: Connection, place: Namespace) -> list[str]:
            cursor = await connection.execute(place.statement("SELECT id FROM {vectors}"), {})
            return [unescape(id) for (id,) in await cursor.fetchall()]

        none: list[str] = []
        for id in await self._access.read(namespace, work, none):
            yield id

    async def drop(self, namespace: str) -> None:
        """Remove a namespace and all its records."""
        await self._access.drop(namespace)

    async def aclose(self) -> None:
        """Close the connections of this event loop; a later call opens others."""
        await self._access.connections.aclose()


class PostgresHybridSearch:
    """The HybridSearch port: one statement ranks by words (BM25) and by the cosine.

    The text search configuration ``language`` decides what a word is. A namespace keeps that of its first write.
    """

    def __init__(self, access: Access) -> None:
        self._access = access

    async def search(
        self,
        namespace: str,
        text: str,
        vector: Vectors | None = None,
        *,
        top: int = 10,
        share: float | None = None,
        filter: Filter | None = None,
    ) -> list[VectorMatch]:
        """Return the ``top`` best records that match the filter, best first."""
        limit, condition = _check_search(top, filter)
        if share is not None and not 0 <= share <= 1:
            raise ValueError(f"share is {share}; it is from 0, for the vector alone, to 1, for the words alone")
        if vector is not None and vector.rows != 1:
            raise ValueError(f"there are {vector.rows} vectors; a hybrid search asks for one")
        query = None if vector is None else pack_queries(vector)[0]
        words = " ".join(asked_words(text))

        async def work(connection: Connection, place: Namespace) -> list[VectorMatch]:
            graph = self._access.settings.index == "hnsw" and place.takes_graph
            return await searching.hybrid(
                connection, place, words, query, top=limit, share=share, condition=condition, graph=graph
            )

        dimensions = None if vector is None else vector.dimensions
        return await self._access.read(namespace, work, [], dimensions=dimensions)


def _check_search(top: int, filter: Filter | None) -> tuple[int, Condition]:
    if top < 1:
        raise ValueError(f"top is {top}; it must be at least 1")
    _SUPPORT.check(filter, _SOURCE)
    return min(operator.index(top), _MOST_FOUND), condition_of(filter)
