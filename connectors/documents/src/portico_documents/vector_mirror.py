"""Keeping the vector store in step with the catalogue."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from portico.plugins import EmbeddingBatch, Sqlite, StoreFilling
from portico.ports import EmbeddingGenerator, VectorStore
from portico.search import VectorRecord, Vectors
from portico_documents import catalogue
from portico_documents.catalogue import FileEntry, in_thread
from portico_documents.conditions import metadata_of
from portico_documents.scan import embedded_text, hash_of_text

Rows = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]

_PAGE = 512
_PAGE_OF_IDS = 8_192
_SAMPLE = 256


@dataclass(slots=True)
class VectorMirror:
    """The vectors of one index, made by one embedding model, in one namespace of a store.

    ``words`` says that the store finds passages by their words too, so that records carry them.
    """

    store: VectorStore
    embeddings: EmbeddingGenerator
    namespace: str
    words: bool = False
    _sample: tuple[int, Numbers, Rows] | None = field(default=None, init=False)

    async def sample(self, connection: sqlite3.Connection) -> tuple[Numbers, Rows]:
        """Return some passages' numbers and vectors, which are kept for the revision once the store has them all.

        Ids begin with hashes of texts: those that come first are taken at random. Of a doubled text there is one, as
        its passages lie together and could be all there is.
        """
        revision = catalogue.revision(connection)
        if (sample := self._sample) is None or sample[0] != revision:
            numbers = await in_thread(_first_ids, connection)
            records, vectors = await self.store.get(self.namespace, list(numbers))
            rows = np.zeros((0, 1), dtype=np.float32) if vectors is None else as_rows(vectors)
            sample = revision, np.array([numbers[record.id] for record in records], dtype=np.int64), rows
            self._sample = sample if len(records) == len(numbers) else None
        return sample[1:]

    async def plan(self, connection: sqlite3.Connection, entries: Sequence[FileEntry], *, look: bool) -> EmbeddingBatch:
        """Return what is to be embedded for the store to have these files.

        A vector that a passage of the same text has is copied at once, so that renamed, moved and doubled text costs
        no embedding. With ``look`` the store is asked for the passages themselves: an update that was stopped may have
        left them there, or another host with the same folder.
        """
        own = [passage.id for entry in entries for passage in entry.passages]
        same = await in_thread(catalogue.ids_of_texts, connection, list(dict.fromkeys(map(hash_of_text, own))))
        vectors, present = await self._find_known(list(dict.fromkeys([*same, *own])) if look else same)
        copies: list[VectorRecord] = []
        rows: list[Rows] = []
        missing: list[VectorRecord] = []
        texts: dict[str, str] = {}
        for entry in entries:
            metadata = metadata_of(entry.shown)
            for passage in entry.passages:
                if passage.id in present:
                    continue
                words = _words(passage.trail, passage.text, passage.parts) if self.words else None
                record = VectorRecord(passage.id, metadata, words)
                if (text := hash_of_text(passage.id)) in vectors:
                    copies.append(record)
                    rows.append(vectors[text])
                else:
                    missing.append(record)
                    texts[text] = embedded_text(passage.headings, passage.text)
        if copies:
            block = np.stack(rows)
            await self.store.upsert(self.namespace, copies, Vectors(block, len(copies), block.shape[1]))
        return _batch(self.namespace, missing, texts)

    async def synchronise(
        self,
        connection: sqlite3.Connection,
        filling: StoreFilling,
        *,
        remove: bool,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """Make the store hold the catalogue's passages; return how many texts were embedded.

        Needed when the store has lost its vectors, forgets them with each process, or the model is another. With
        ``remove`` all other vectors go, which needs the writer's lock: an update under way writes vectors first.
        Ids are compared in a temporary table, texts embedded page by page, so that memory is bounded. Mostly nothing is
        to be done, which the sums of the ids' hashes show in a fifth of the time.
        """
        stored = 0
        async for id in self.store.ids(self.namespace):
            stored += hash(id)
        if stored == await in_thread(_sum_of_ids, connection):
            return 0
        await in_thread(connection.execute, "DROP TABLE IF EXISTS temp.stored")
        await in_thread(connection.execute, "CREATE TEMP TABLE stored (id TEXT PRIMARY KEY) WITHOUT ROWID")
        page: list[tuple[str]] = []
        async for id in self.store.ids(self.namespace):
            page.append((id,))
            if len(page) >= _PAGE_OF_IDS:
                await in_thread(_store_ids, connection, page)
                page = []
        await in_thread(_store_ids, connection, page)
        while remove and (extra := await in_thread(_extra_ids, connection)):
            await self.store.delete(self.namespace, extra)
        done = embedded = 0
        total = await in_thread(catalogue.count_passages, connection)
        async with aclosing(filling.each(self._missing_batches(connection))) as filled:
            async for passages, texts in filled:
                done += passages
                embedded += texts
                if progress is not None:
                    progress(done, total)
        return embedded

    async def _find_known(self, ids: Sequence[str]) -> tuple[dict[str, Rows], set[str]]:
        """Return the vectors that the store has of these passages by the hashes of their texts, and which it has."""
        if not ids:
            return {}, set()
        records, vectors = await self.store.get(self.namespace, ids)
        if vectors is None:
            return {}, set()
        found = [record.id for record in records]
        return dict(zip(map(hash_of_text, found), as_rows(vectors), strict=True)), set(found)

    async def _missing_batches(self, connection: sqlite3.Connection) -> AsyncIterator[tuple[int, EmbeddingBatch]]:
        """Yield, page by page, the passages that the store lacks, with their number."""
        after = 0
        while page := await in_thread(_load_missing, connection, after, self.words):
            after = page[-1][0]
            texts = {hash_of_text(record.id): text for _, record, text in page}
            yield len(page), _batch(self.namespace, [record for _, record, _ in page], texts)


def as_rows(vectors: Vectors) -> Rows:
    """Return vectors as a NumPy array of shape (rows, dimensions) over the same buffer."""
    return np.asarray(vectors.buffer, dtype=np.float32).reshape(vectors.rows, vectors.dimensions)


def _batch(namespace: str, records: Sequence[VectorRecord], texts: dict[str, str]) -> EmbeddingBatch:
    places = {hash: place for place, hash in enumerate(texts)}
    rows = tuple(places[hash_of_text(record.id)] for record in records)
    return EmbeddingBatch(namespace, records, tuple(texts.values()), rows)


def _words(trail: str, text: str, parts: str) -> str:
    """Return what a passage is found by in a store that finds by words: the same as in the catalogue."""
    return "\n".join(filter(None, (trail, text, parts)))


def _first_ids(connection: sqlite3.Connection) -> dict[str, int]:
    after = "SELECT min(id) FROM passages WHERE id > substr(firsts.id, 1, 20) || '~'"
    firsts = f"SELECT min(id) FROM passages UNION ALL SELECT ({after}) FROM firsts WHERE firsts.id IS NOT NULL LIMIT ?"
    query = f"WITH RECURSIVE firsts (id) AS ({firsts}) SELECT id, number FROM passages WHERE id IN firsts ORDER BY id"
    return dict(connection.execute(query, (_SAMPLE,)))


def _sum_of_ids(connection: sqlite3.Connection) -> int:
    return sum(hash(id) for (id,) in connection.execute("SELECT id FROM passages"))


def _store_ids(connection: sqlite3.Connection, ids: Sequence[tuple[str]]) -> None:
    with Sqlite.transaction(connection, write=False):
        connection.executemany("INSERT OR IGNORE INTO temp.stored VALUES (?)", ids)


def _extra_ids(connection: sqlite3.Connection) -> list[str]:
    """Return some ids that the store has and the catalogue has not, and forget them here."""
    query = "SELECT id FROM temp.stored WHERE id NOT IN (SELECT id FROM passages) LIMIT ?"
    rows = connection.execute(query, (_PAGE,)).fetchall()
    connection.executemany("DELETE FROM temp.stored WHERE id = ?", rows)
    return [id for (id,) in rows]


_Missing: TypeAlias = tuple[int, VectorRecord, str]
"""A passage's number, its record, and the text that is embedded."""


def _load_missing(connection: sqlite3.Connection, after: int, words: bool) -> list[_Missing]:
    rows = connection.execute(
        "SELECT number, passages.id, shown, headings, text, trail, parts FROM passages JOIN files"
        " ON files.id = file WHERE number > ? AND passages.id NOT IN temp.stored ORDER BY number LIMIT ?",
        (after, _PAGE),
    )
    found: list[_Missing] = []
    for number, id, path, headings, text, trail, parts in rows:
        record = VectorRecord(id, metadata_of(path), _words(trail, text, parts) if words else None)
        found.append((number, record, embedded_text(tuple(json.loads(headings)), text)))
    return found
