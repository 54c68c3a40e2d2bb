"""Updates an index in processes that may be killed: run as a program, it forks one for each line that it reads.

Starting Python and NumPy takes longer than the updates of the tests, so this process does that once. A line holds
the folder, the folder of the index, the folder of the vectors and how long embedding a batch takes, in seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
import traceback
from collections.abc import AsyncIterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from portico.ports import EmbeddingGenerator, VectorStore
from portico.search import FilterSupport, VectorMatch, VectorRecord, Vectors
from portico_documents import scan
from portico_documents.config import DocumentsSettings
from portico_documents.search import DocumentsSearch
from portico_testkit.fakes.embedding_generator import HashingEmbeddings

FILES_AT_ONCE = 2


class SlowEmbeddings(HashingEmbeddings):
    """Takes its time with each batch, so that a kill finds it at work."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.seconds = seconds

    async def embed(self, texts: Sequence[str], **options: Any) -> Vectors:
        await asyncio.sleep(self.seconds)
        return await super().embed(texts, **options)


class SqliteVectors:
    """A vector store in one SQLite file: each write is one transaction, and a kill harms none."""

    name = "sqlite"
    persistent = True
    filter_support = FilterSupport.everything()

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "vectors.sqlite"
        with self._database() as database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS vectors"
                " (space TEXT, id TEXT, metadata TEXT, row BLOB, PRIMARY KEY (space, id))"
            )

    @contextmanager
    def _database(self) -> Any:
        database = sqlite3.connect(self._file, timeout=30)
        try:
            database.execute("PRAGMA synchronous = OFF")
            with database:
                yield database
        finally:
            database.close()

    async def upsert(self, namespace: str, records: Sequence[VectorRecord], vectors: Vectors) -> None:
        with self._database() as database:
            database.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)",
                [
                    (namespace, record.id, json.dumps(dict(record.metadata)), bytes(row.buffer.cast("B")))
                    for record, row in zip(records, vectors, strict=True)
                ],
            )

    async def delete(self, namespace: str, ids: Sequence[str]) -> int:
        with self._database() as database:
            return database.executemany(
                "DELETE FROM vectors WHERE space = ? AND id = ?", [(namespace, id) for id in ids]
            ).rowcount

    def _rows(self, namespace: str) -> dict[str, tuple[dict[str, Any], np.ndarray]]:
        with self._database() as database:
            rows = database.execute("SELECT id, metadata, row FROM vectors WHERE space = ?", (namespace,)).fetchall()
        return {id: (json.loads(metadata), np.frombuffer(row, np.float32)) for id, metadata, row in rows}

    async def get(self, namespace: str, ids: Sequence[str]) -> tuple[list[VectorRecord], Vectors | None]:
        records, rows = [], []
        with self._database() as database:
            for id in ids:
                query = "SELECT metadata, row FROM vectors WHERE space = ? AND id = ?"
                for metadata, row in database.execute(query, (namespace, id)):
                    records.append(VectorRecord(id, json.loads(metadata)))
                    rows.append(np.frombuffer(row, np.float32))
        return records, Vectors(np.stack(rows), len(rows), len(rows[0])) if rows else None

    async def search(
        self, namespace: str, queries: Vectors, *, top: int = 10, filter: Any = None
    ) -> list[list[VectorMatch]]:
        asked = np.asarray(queries.buffer, dtype=np.float32).reshape(queries.rows, queries.dimensions)
        found = [
            [
                VectorMatch(id, float(row @ query), metadata)
                for id, (metadata, row) in self._rows(namespace).items()
                if FilterSupport.matches(filter, metadata)
            ]
            for query in asked
        ]
        return [sorted(matched, key=lambda match: -match.score)[:top] for matched in found]

    async def count(self, namespace: str) -> int:
        with self._database() as database:
            return database.execute("SELECT count(*) FROM vectors WHERE space = ?", (namespace,)).fetchone()[0]

    async def ids(self, namespace: str) -> AsyncIterator[str]:
        with self._database() as database:
            for (id,) in database.execute("SELECT id FROM vectors WHERE space = ?", (namespace,)):
                yield id

    async def drop(self, namespace: str) -> None:
        with self._database() as database:
            database.execute("DELETE FROM vectors WHERE space = ?", (namespace,))


class GivenServices:
    """One embedding generator and one store."""

    def __init__(self, embeddings: Any, store: Any) -> None:
        self._services = {EmbeddingGenerator: embeddings, VectorStore: store}

    def get(self, port: Any, name: str | None = None) -> Any:
        return self._services[port]

    def names(self, port: Any) -> tuple[str, ...]:
        return ()


def make_search(folder: Path, index: Path, store: Any, embeddings: Any) -> DocumentsSearch:
    settings = DocumentsSettings(path=folder, index=index, passage_target=60, passage_maximum=120)
    return DocumentsSearch(settings, GivenServices(embeddings, store))


def measure(folder: str, index: str, vectors: str) -> None:
    """Index a folder twice in this process and print the peak of its memory in bytes."""
    for _ in range(2):
        search = make_search(Path(folder), Path(index), SqliteVectors(Path(vectors)), HashingEmbeddings(16))
        asyncio.run(search.index.update())
    # What `getrusage` tells includes the process that started this one.
    print(int(Path("/proc/self/status").read_text("utf-8").partition("VmHWM:")[2].split()[0]) * 1024)


def main() -> None:
    scan._BATCH_FILES = FILES_AT_ONCE
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)
    for line in sys.stdin:
        folder, index, vectors, seconds = json.loads(line)
        child = os.fork()
        if child:
            print(child, flush=True)
            continue
        try:
            embeddings = SlowEmbeddings(seconds)
            search = make_search(Path(folder), Path(index), SqliteVectors(Path(vectors)), embeddings)
            asyncio.run(search.index.update())
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)


if __name__ == "__main__":
    measure(*sys.argv[1:]) if sys.argv[1:] else main()
