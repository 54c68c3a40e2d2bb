"""Writing records: by binary COPY into a temporary table, and from there by one statement for each table."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from psycopg import AsyncCopy, errors

from portico.errors import StoreError
from portico.search import VectorRecord, Vectors
from portico_postgres._metadata import encoded
from portico_postgres._texts import key, stored
from portico_postgres._vector_tables import Connection, Namespace
from portico_postgres._vectors import as_rows, packed, row_bytes, unit_rows
from portico_postgres._words import searched_words

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
# A statement of its own: it sees the text that somebody wrote while the first one waited for the record.
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
