"""Keeping the vector store in step with the catalogue."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from portico.databases import reading
from portico.errors import ResponseInvalid
from portico.ports.embedding_generator import EmbeddingGenerator
from portico.ports.vector_store import VectorRecord, VectorStore
from portico.vectors import Vectors
from portico_documents import catalogue
from portico_documents.catalogue import FileEntry
from portico_documents.conditions import metadata_of
from portico_documents.scan import embedded_text
from portico_documents.threads import in_thread

__all__ = ["VectorMirror", "as_rows"]

Rows = npt.NDArray[np.float32]

_PAGE = 512


class VectorMirror:
    """The vectors of one index, made by one embedding model, in one namespace of a store."""

    def __init__(self, store: VectorStore, embeddings: EmbeddingGenerator, namespace: str) -> None:
        self.store = store
        self.embeddings = embeddings
        self.namespace = namespace

    async def write(
        self, connection: sqlite3.Connection, entries: Sequence[FileEntry], run: int
    ) -> tuple[int, list[bool]]:
        """Put files into the store and the catalogue; return how many texts were embedded, and which files are new.

        A vector that any passage of the same text has is copied, so that renamed, moved and doubled text costs no
        embedding.
        """
        texts = {p.hash: embedded_text(p.headings, p.text) for entry in entries for p in entry.passages}
        vectors, present = await self._known(connection, list(texts))
        missing = [hash for hash in texts if hash not in vectors]
        embedded = await self.embed([texts[hash] for hash in missing])
        vectors.update(zip(missing, embedded, strict=True))
        records: list[VectorRecord] = []
        rows: list[Rows] = []
        for entry in entries:
            metadata = metadata_of(entry.shown)
            for passage in entry.passages:
                if passage.id not in present:
                    records.append(VectorRecord(passage.id, metadata))
                    rows.append(vectors[passage.hash])
        if records:
            await in_thread(catalogue.note_pending, connection, self.namespace, [record.id for record in records])
            block = np.stack(rows)
            await self.store.upsert(self.namespace, records, Vectors(block, len(records), block.shape[1]))
        added = await in_thread(catalogue.write, connection, self.namespace, entries, run)
        await self.discard(connection)
        return len(missing), added

    async def discard(self, connection: sqlite3.Connection) -> None:
        """Delete the vectors of passages that are gone or never came to be."""
        ids = await in_thread(catalogue.discarded, connection, self.namespace)
        if ids:
            await self.store.delete(self.namespace, ids)
        await in_thread(catalogue.forget_discarded, connection, self.namespace)

    async def synchronise(
        self, connection: sqlite3.Connection, *, progress: Callable[[int, int], None] | None = None
    ) -> int:
        """Make the store hold the catalogue's passages and no others; return how many texts were embedded.

        Needed when the store has lost its vectors, forgets them with each process, or the model is another. Ids
        are compared in a temporary table, texts embedded page by page, so that memory is bounded. May be called
        without the writer's lock: what another writer has pending is left alone.
        """
        await in_thread(connection.execute, "DROP TABLE IF EXISTS temp.stored")
        await in_thread(connection.execute, "CREATE TEMP TABLE stored (id TEXT PRIMARY KEY) WITHOUT ROWID")
        page: list[tuple[str]] = []
        async for id in self.store.ids(self.namespace):
            page.append((id,))
            if len(page) >= _PAGE:
                await in_thread(_store_ids, connection, page)
                page = []
        await in_thread(_store_ids, connection, page)
        for extra in await in_thread(_extra_ids, connection):
            await self.store.delete(self.namespace, extra)
        return await self._embed_missing(connection, progress)

    async def embed(self, texts: Sequence[str]) -> Rows:
        """Return one row per text, embedded in slices of bounded size."""
        blocks: list[Rows] = []
        for start in range(0, len(texts), _PAGE):
            slice = texts[start : start + _PAGE]
            vectors = await self.embeddings.embed(slice, purpose="document")
            if vectors.rows != len(slice):
                raise ResponseInvalid(
                    f"Embeddings {self.embeddings.name!r} gave {vectors.rows} vectors for {len(slice)} texts."
                )
            blocks.append(as_rows(vectors))
        return np.concatenate(blocks) if blocks else np.zeros((0, 1), dtype=np.float32)

    async def _known(
        self, connection: sqlite3.Connection, hashes: Sequence[bytes]
    ) -> tuple[dict[bytes, Rows], set[str]]:
        """Return the vectors that passages of these texts have, and the ids that they were found under."""
        ids = await in_thread(catalogue.ids_by_hash, connection, hashes)
        hash_of = {id: hash for hash, same in ids.items() for id in same}
        if not hash_of:
            return {}, set()
        records, vectors = await self.store.get(self.namespace, list(hash_of))
        if vectors is None:
            return {}, set()
        rows = as_rows(vectors)
        return (
            {hash_of[record.id]: rows[row] for row, record in enumerate(records)},
            {record.id for record in records},
        )

    async def _embed_missing(self, connection: sqlite3.Connection, progress: Callable[[int, int], None] | None) -> int:
        done = embedded = after = 0
        total = await in_thread(_count_missing, connection)
        while missing := await in_thread(_missing, connection, after):
            after = missing[-1][0]
            texts = {hash: text for _, _, hash, text, _ in missing}
            rows = dict(zip(texts, await self.embed(list(texts.values())), strict=True))
            records = [VectorRecord(id, metadata_of(path)) for _, id, _, _, path in missing]
            block = np.stack([rows[hash] for _, _, hash, _, _ in missing])
            await self.store.upsert(self.namespace, records, Vectors(block, len(records), block.shape[1]))
            embedded += len(texts)
            done += len(missing)
            if progress is not None:
                progress(done, max(done, total))
        return embedded


def as_rows(vectors: Vectors) -> Rows:
    """Return vectors as a NumPy array of shape (rows, dimensions) over the same buffer."""
    return np.asarray(vectors.buffer, dtype=np.float32).reshape(vectors.rows, vectors.dimensions)


def _store_ids(connection: sqlite3.Connection, ids: Sequence[tuple[str]]) -> None:
    with reading(connection):
        connection.executemany("INSERT OR IGNORE INTO temp.stored VALUES (?)", ids)


def _extra_ids(connection: sqlite3.Connection) -> Iterator[list[str]]:
    cursor = connection.execute(
        "SELECT id FROM temp.stored WHERE id NOT IN (SELECT id FROM passages) AND id NOT IN (SELECT id FROM pending)"
    )
    ids = [id for (id,) in cursor]
    return iter([ids[start : start + _PAGE] for start in range(0, len(ids), _PAGE)])


def _count_missing(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT count(*) FROM passages WHERE id NOT IN temp.stored").fetchone()
    return int(row[0])


def _missing(connection: sqlite3.Connection, after: int) -> list[tuple[int, str, bytes, str, str]]:
    rows = connection.execute(
        "SELECT number, passages.id, passages.hash, headings, text, shown FROM passages JOIN files"
        " ON files.id = file WHERE number > ? AND passages.id NOT IN temp.stored ORDER BY number LIMIT ?",
        (after, _PAGE),
    )
    return [
        (number, id, hash, embedded_text(catalogue.headings(headings), text), path)
        for number, id, hash, headings, text, path in rows
    ]
