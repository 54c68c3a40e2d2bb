"""The vector store on pgvector."""

from __future__ import annotations

import asyncio
import operator
import re
import unicodedata
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeAlias, TypeVar
from weakref import WeakSet

from psycopg import AsyncCopy, errors

from portico.errors import StoreDamaged, StoreError
from portico.plugins import Services
from portico.ports import VectorStore
from portico.search import Filter, FilterSupport, VectorMatch, VectorRecord, Vectors
from portico_postgres import _vector_searching as searching
from portico_postgres._conditions import Condition, condition_of
from portico_postgres._connections import Connections
from portico_postgres._metadata import encoded
from portico_postgres._texts import given, key, stored
from portico_postgres._vector_tables import PART, Connection, Namespace, drop, find, link, make
from portico_postgres._vectors import (
    MOST_DIMENSIONS,
    PackedDumper,
    PackedVector,
    as_rows,
    packed,
    packed_queries,
    row_bytes,
    unit_rows,
)
from portico_postgres.vector_config import PostgresVectorSettings

# PostgreSQL's own parser takes "and/or" for a file and "a.example" for a host; what has only words has none of these.
_WORD = re.compile(r"[^\W_]+")
# aB, 1B, and the last capital of a run before a small letter (HTTPServer), as in PEP 8's mixedCase and CapWords.
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_MOST_CHARACTERS = 200_000
"""A text is known by the words of its first so many characters: what PostgreSQL keeps of them is bounded, at 1 MB."""
_MOST_ASKED = 64


def searched_words(text: str) -> list[str]:
    """Return the words by which a text is found, identifiers also by their parts.

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
"""Records made ready at once; other tasks have their turn after that."""
_MOST_RECORDS = 2**24
"""Records of one write, which have their places in it as the lower half of their numbers."""

# It lasts as long as the connection and is empty between transactions: catalogues do not grow with each write.
_STAGE = """CREATE TEMPORARY TABLE IF NOT EXISTS portico_staged (
    place integer, id text COLLATE "C", metadata text, fields text, embedding {type},
    text text, words text, length integer) ON COMMIT DELETE ROWS"""
_COPY = "COPY pg_temp.portico_staged FROM STDIN (FORMAT BINARY)"
# What COPY sends has no types; pgvector reads its binary form from the same bytes that a bytea has.
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
# The first condition is asked once, and is all that a namespace without texts costs.
_FORGET_TEXTS = """DELETE FROM {texts} WHERE EXISTS (SELECT FROM {texts}) AND number IN (
    SELECT number FROM pg_temp.portico_staged JOIN {vectors} USING (id) WHERE text IS NULL)"""

# Rows are locked in the order of their ids, as writers do, so that two calls do not wait for each other.
_DELETE = """DELETE FROM {vectors} WHERE number IN (
    SELECT number FROM {vectors} WHERE id = ANY(%(ids)s) ORDER BY id FOR UPDATE) RETURNING number"""
# Its own statement: it sees the text that somebody wrote while the first one waited for the record.
_DELETE_TEXTS = "DELETE FROM {texts} WHERE number = ANY(%(numbers)s)"


def keys_of(records: Sequence[VectorRecord], vectors: Vectors) -> list[str]:
    """Return the ids in the form that is stored.

    Raises ``ValueError`` for a number of vectors that is not that of the records, for an id that stands twice, and for
    one that is too long.
    """
    if len(records) != vectors.rows:
        raise ValueError(f"there are {len(records)} records and {vectors.rows} vectors")
    if len(records) > _MOST_RECORDS:
        raise ValueError(f"there are {len(records):,} records in one upsert; it takes {_MOST_RECORDS:,}")
    keys = [key(record.id, "the id") for record in records]
    if len(set(keys)) < len(keys):
        seen: set[str] = set()
        for record in records:
            if record.id in seen:
                raise ValueError(f"the id {record.id!r} stands twice in one upsert")
            seen.add(record.id)
    return keys


async def stage(connection: Connection, namespace: Namespace) -> None:
    """Make the temporary table, where this connection has none yet; ``StoreError`` where that is not allowed."""
    try:
        await connection.execute(namespace.statement(_STAGE), {})
    except errors.InsufficientPrivilege as error:
        raise StoreError(
            "The database's user may not make temporary tables, through which vectors are written. Let an "
            f'administrator run `GRANT TEMPORARY ON DATABASE "{connection.info.dbname}" TO` the user.'
        ) from error


async def upsert(
    connection: Connection, namespace: Namespace, keys: Sequence[str], records: Sequence[VectorRecord], vectors: Vectors
) -> None:
    """Add or replace records, in the transaction that goes on.

    Raises ``ValueError`` for a vector that is not finite, and what `encoded` raises for metadata.
    """
    async with connection.cursor().copy(_COPY) as copy:
        copy.set_types(_TYPES)
        await _send(copy, keys, records, vectors)
    await connection.execute(namespace.statement(_WRITE), {})
    texts = sum(record.text is not None for record in records)
    if texts:
        await connection.execute(namespace.statement(_WRITE_TEXTS), {"language": namespace.language})
    if texts < len(records):
        await connection.execute(namespace.statement(_FORGET_TEXTS), {})


async def _send(copy: AsyncCopy, keys: Sequence[str], records: Sequence[VectorRecord], vectors: Vectors) -> None:
    rows, size = as_rows(vectors), row_bytes(vectors.dimensions)
    # By id: so two writers lock what both replace in one order.
    order = sorted(range(len(keys)), key=keys.__getitem__)
    for start in range(0, len(order), _SLICE):
        places = order[start : start + _SLICE]
        embeddings = packed(unit_rows(rows[places], numbers=places))
        for row, place in enumerate(places):
            record = records[place]
            metadata, fields = encoded(record)
            text = words = length = None
            if record.text is not None:
                found = searched_words(record.text)
                text, words, length = stored(record.text), " ".join(found), len(found)
            embedding = embeddings[row * size : (row + 1) * size]
            await copy.write_row((place, keys[place], metadata, fields, embedding, text, words, length))
        await asyncio.sleep(0)


async def delete(connection: Connection, namespace: Namespace, keys: Sequence[str]) -> int:
    """Remove records, in the transaction that goes on; return how many there were."""
    cursor = await connection.execute(namespace.statement(_DELETE), {"ids": list(keys)})
    numbers = [number for (number,) in await cursor.fetchall()]
    if numbers:
        await connection.execute(namespace.statement(_DELETE_TEXTS), {"numbers": numbers})
    return len(numbers)


T = TypeVar("T")
_Work: TypeAlias = Callable[[Connection, Namespace], Awaitable[T]]

_ATTEMPTS = 10
_LONG_WRITE = 1_000
"""Records from which on a write may take longer than a statement usually may."""
_SECONDS_A_RECORD = 0.05
"""Linking a record in a large graph takes some milliseconds."""
_SECONDS_TO_LINK = 86_400.0

# How a graph is walked. Compiling a statement to machine code takes longer than comparing all vectors. How many records
# a filter keeps is a rough guess of the server's: with a price of disks that turn, a guess too high by half has it read
# all of them, which takes four times as long as those that the index names.
_SESSION = """SELECT set_config('hnsw.ef_search', %(search)s, %(local)s),
    set_config('hnsw.iterative_scan', 'strict_order', %(local)s),
    set_config('hnsw.max_scan_tuples', %(scan)s, %(local)s),
    set_config('jit', 'off', %(local)s),
    set_config('random_page_cost', '1.1', %(local)s)"""


class Access:
    """What there is on the way to the tables: connections, and which namespaces are known.

    What is known of a namespace is its tables' number. It is right or leads to an error, after which it is asked anew.
    """

    def __init__(self, settings: PostgresVectorSettings) -> None:
        self.settings = settings
        self.connections = Connections(settings, PART, table="[vectors.postgres]", configure=self._configure)
        self._known: dict[str, Namespace] = {}
        self._staged: WeakSet[Connection] = WeakSet()

    async def read(self, name: str, work: _Work[T], absent: T, *, dimensions: int | None = None) -> T:
        """Do what is to be done with the namespace; return ``absent`` where there is none.

        Raises ``ValueError`` where its vectors have other ``dimensions`` than those that are given.
        """
        pooler = self.settings.transaction_pooler

        async def done(connection: Connection, namespace: Namespace | None) -> T:
            if namespace is None:
                return absent
            if not pooler:
                return await work(connection, namespace)
            async with connection.transaction():
                await self._settle(connection, local=True)
                return await work(connection, namespace)

        async def reading(connection: Connection) -> T:
            namespace = self._known.get(name)
            if namespace is not None and dimensions in (None, namespace.dimensions) and not pooler:
                # The usual case, in few steps: a search along a graph takes less than a millisecond.
                try:
                    return await work(connection, namespace)
                except errors.UndefinedTable:
                    self._known.pop(name, None)
            return await self._tried(connection, name, dimensions, done)

        return await self.connections.read(reading, absent)

    async def write(self, name: str, dimensions: int, size: int, work: _Work[None]) -> None:
        """Do the work in one transaction, in which the namespace is made where it is not there; then link it.

        ``size`` is how many records it brings, a long text counted as several: so much longer it may take.
        """
        long = size > _LONG_WRITE

        async def written(connection: Connection, namespace: Namespace | None) -> Namespace:
            async with connection.transaction():
                if namespace is None:
                    namespace = await make(connection, self.settings.schema, stored(name), dimensions, self.settings)
                _check(namespace, dimensions)
                if long:
                    await connection.execute("SET LOCAL statement_timeout = 0")
                if connection not in self._staged or self.settings.transaction_pooler:
                    await stage(connection, namespace)
                await work(connection, namespace)
            # Only now: what a transaction made that was taken back is not there.
            self._staged.add(connection)
            return namespace

        async def writing(connection: Connection) -> Namespace:
            return await self._tried(connection, name, dimensions, written)

        seconds = self.settings.statement_timeout + (size * _SECONDS_A_RECORD if long else 0)
        namespace = await self.connections.write(writing, seconds=seconds)
        self._known[name] = namespace
        if self.settings.index == "hnsw" and namespace.takes_graph and not namespace.has_graph:
            await self._link(namespace)

    async def delete(self, name: str, work: _Work[int]) -> int:
        """Do the work in one transaction; return 0 where there is no such namespace.

        It is done again where the connection was lost before the answer came, and counts what was left then.
        """

        async def deleting(connection: Connection, namespace: Namespace) -> int:
            async with connection.transaction():
                return await work(connection, namespace)

        return await self.read(name, deleting, 0)

    async def drop(self, name: str) -> None:
        """Remove the namespace, where there is one."""

        async def dropping(connection: Connection) -> None:
            async with connection.transaction():
                await drop(connection, self.settings.schema, stored(name))

        await self.connections.read(dropping, None)
        self._known.pop(name, None)

    async def _configure(self, connection: Connection) -> None:
        connection.adapters.register_dumper(PackedVector, PackedDumper)
        if not self.settings.transaction_pooler:
            await self._settle(connection, local=False)

    async def _settle(self, connection: Connection, *, local: bool) -> None:
        values = {"search": str(self.settings.hnsw_search), "scan": str(self.settings.hnsw_scan), "local": local}
        await connection.execute(_SESSION, values)

    async def _find(self, connection: Connection, name: str, dimensions: int | None = None) -> Namespace | None:
        namespace = self._known.get(name)
        if namespace is None or dimensions not in (None, namespace.dimensions):
            # Asked anew also for one of other dimensions: it may have been dropped, and be another one now.
            namespace = await find(connection, self.settings.schema, stored(name))
            if namespace is not None:
                _check(namespace, dimensions)
                self._known[name] = namespace
        return namespace

    async def _tried(
        self,
        connection: Connection,
        name: str,
        dimensions: int | None,
        do: Callable[[Connection, Namespace | None], Awaitable[T]],
    ) -> T:
        """Do it with the namespace as it is now; again, where somebody drops it meanwhile."""
        gone: errors.UndefinedTable | None = None
        for _ in range(_ATTEMPTS):
            namespace = await self._find(connection, name, dimensions)
            try:
                return await do(connection, namespace)
            except errors.UndefinedTable as error:
                gone = error
                self._known.pop(name, None)
                # The temporary table may be what is gone: a pooler that clears sessions without a word.
                self._staged.discard(connection)
        raise StoreDamaged(
            f"The tables of the namespace {name!r} are gone from {self.connections.place}, schema "
            f"{self.settings.schema!r}. Drop the namespace, and write it again."
        ) from gone

    async def _link(self, namespace: Namespace) -> None:
        async def linking(connection: Connection) -> None:
            try:
                await link(connection, namespace, self.settings)
            except errors.UndefinedTable:
                # Somebody dropped it meanwhile.
                return

        await self.connections.write(linking, seconds=_SECONDS_TO_LINK)


def _check(namespace: Namespace, dimensions: int | None) -> None:
    if dimensions not in (None, namespace.dimensions):
        raise ValueError(f"the vectors have {dimensions} dimensions, those in the namespace {namespace.dimensions}")


_SUPPORT = FilterSupport.everything()
_SOURCE = "Vector store 'postgres'"
_LONG_TEXT = 2_000
"""Characters of text that take as long to index as a record takes to write."""
_MOST_FOUND = 10**12
"""More than there ever are; a larger ``top`` is that."""


class PostgresVectorStore(VectorStore):
    """The VectorStore port on PostgreSQL with pgvector, with hybrid search.

    >>> from portico.plugins import Secret
    >>> store = PostgresVectorStore(PostgresVectorSettings(uri=Secret("postgresql://ada@db.example/portico")))
    >>> store.persistent
    True

    Nothing is opened before the first call. Vectors are kept at length one, and those that were put in as such come
    back bit for bit. A row of zeros is kept and scores 0. Of equal scores the record that came first comes first. An id
    or a namespace has 2,000 bytes of UTF-8 at most, and a vector 16,000 dimensions.

    Searches compare with every vector that passes the filter; with ``index="hnsw"`` they walk a graph once a namespace
    has enough records, which may miss some. Vectors of more than 4,000 dimensions are always compared. Every write is
    one transaction. Any number of processes may share the tables.
    """

    name = "postgres"
    persistent = True
    filter_support = _SUPPORT

    def __init__(self, settings: PostgresVectorSettings, services: Services | None = None) -> None:
        self._access = Access(settings)
        self.hybrid = PostgresHybridSearch(self._access)
        """`portico.ports.HybridSearch` over the same records."""

    async def upsert(self, namespace: str, records: Sequence[VectorRecord], vectors: Vectors) -> None:
        """Add records or replace those of the same id, all or none; with their texts, for hybrid search."""
        keys = keys_of(records, vectors)
        if not records:
            return
        key(namespace, "the namespace")
        if vectors.dimensions > MOST_DIMENSIONS:
            raise ValueError(f"the vectors have {vectors.dimensions:,} dimensions; pgvector takes {MOST_DIMENSIONS:,}")

        async def work(connection: Connection, place: Namespace) -> None:
            await upsert(connection, place, keys, records, vectors)

        size = len(records) + sum(len(record.text) for record in records if record.text) // _LONG_TEXT
        await self._access.write(namespace, vectors.dimensions, size, work)

    async def delete(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove records; return how many there were."""
        keys = [stored(id) for id in ids]

        async def work(connection: Connection, place: Namespace) -> int:
            return await delete(connection, place, keys)

        return await self._access.delete(namespace, work) if keys else 0

    async def get(self, namespace: str, ids: Sequence[str]) -> tuple[list[VectorRecord], Vectors | None]:
        """Return the records known among ``ids``, in that order, with their texts, and their unit vectors."""
        keys = [stored(id) for id in ids]

        async def work(connection: Connection, place: Namespace) -> tuple[list[VectorRecord], Vectors | None]:
            return await searching.read(connection, place, keys)

        return await self._access.read(namespace, work, ([], None))

    async def search(
        self, namespace: str, queries: Vectors, *, top: int = 10, filter: Filter | None = None
    ) -> list[list[VectorMatch]]:
        """Return the ``top`` best records that pass the filter, best first, one list for each query row."""
        limit, condition = _asked_for(top, filter)
        units = packed_queries(queries)

        async def work(connection: Connection, place: Namespace) -> list[list[VectorMatch]]:
            graph = self._access.settings.index == "hnsw" and place.takes_graph
            return await searching.nearest(connection, place, units, top=limit, condition=condition, graph=graph)

        if not units:
            return []
        return await self._access.read(namespace, work, [[] for _ in units], dimensions=queries.dimensions)

    async def count(self, namespace: str) -> int:
        """Return how many records the namespace has."""
        return await self._access.read(namespace, searching.count, 0)

    async def ids(self, namespace: str) -> AsyncIterator[str]:
        """Yield every id of the namespace; what is written meanwhile may or may not be among them."""
        last: str | None = None
        while True:
            some = await self._ids_after(namespace, last)
            for id in some:
                yield given(id)
            if not some:
                return
            last = some[-1]

    async def drop(self, namespace: str) -> None:
        """Remove a namespace with everything in it."""
        await self._access.drop(namespace)

    async def aclose(self) -> None:
        """Close the connections of this event loop; a later call opens others."""
        await self._access.connections.aclose()

    async def _ids_after(self, namespace: str, last: str | None) -> list[str]:
        async def work(connection: Connection, place: Namespace) -> list[str]:
            return await searching.ids_after(connection, place, last)

        return await self._access.read(namespace, work, [])


class PostgresHybridSearch:
    """The HybridSearch port: one statement ranks by words (BM25) and by the cosine.

    Words are what the text search configuration ``language`` makes of them; a namespace keeps that of its first write.
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
        """Return the ``top`` best records that pass the filter, best first."""
        limit, condition = _asked_for(top, filter)
        if share is not None and not 0 <= share <= 1:
            raise ValueError(f"share is {share}; it is from 0, for the vector alone, to 1, for the words alone")
        if vector is not None and vector.rows != 1:
            raise ValueError(f"there are {vector.rows} vectors; a hybrid search asks for one")
        query = None if vector is None else packed_queries(vector)[0]
        words = " ".join(asked_words(text))

        async def work(connection: Connection, place: Namespace) -> list[VectorMatch]:
            graph = self._access.settings.index == "hnsw" and place.takes_graph
            return await searching.hybrid(
                connection, place, words, query, top=limit, share=share, condition=condition, graph=graph
            )

        dimensions = None if vector is None else vector.dimensions
        return await self._access.read(namespace, work, [], dimensions=dimensions)


def _asked_for(top: int, filter: Filter | None) -> tuple[int, Condition]:
    if top < 1:
        raise ValueError(f"top is {top}; it must be at least 1")
    _SUPPORT.check(filter, _SOURCE)
    return min(operator.index(top), _MOST_FOUND), condition_of(filter)
