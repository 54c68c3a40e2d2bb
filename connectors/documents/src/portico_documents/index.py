"""The index of a folder: brought in step, and safe from kills and from other processes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from filelock import FileLock, Timeout

from portico.errors import StoreDamaged, StoreError
from portico.plugins import EmbeddingBatch, Sqlite, StoreFilling
from portico.ports import IndexProgress, IndexReport, JobQueue, VectorStore
from portico_documents import catalogue
from portico_documents.catalogue import CatalogueDamaged, CatalogueOutdated, in_thread, store_errors
from portico_documents.config import DocumentsSettings, Place
from portico_documents.scan import Batch, Scan, check
from portico_documents.vector_mirror import VectorMirror

_POLL_SECONDS = 0.1
_PATIENCE = 2.0

Progress = Callable[[IndexProgress], None]


class FolderIndex:
    """The SearchIndex of a documents source.

    ``mirror`` gives the vector side when it is first needed, ``queue`` that of the workers who may help, None where
    there is none. Searches read beside an update and never wait for one; an update waits while another process
    updates the same index.
    """

    def __init__(
        self,
        settings: DocumentsSettings,
        place: Place,
        mirror: Callable[[], VectorMirror],
        queue: Callable[[], JobQueue | None],
    ) -> None:
        self._settings = settings
        self._place = place
        self._mirror = mirror
        self._queue = queue
        self.readers = catalogue.Readers(place.catalogue)
        self._preparing = asyncio.Lock()
        self._synchronised: int | None = None

    async def update(self, *, progress: Progress | None = None) -> IndexReport:
        """Apply additions, changes and removals, a batch of whole documents at a time."""
        reporter = _Reporter(progress)
        async with self._lock(reporter):
            repaired: list[str] = []
            folder = self._place.folder
            # Damage is healed here: both halves are derived from the documents, and each may be made anew once.
            for _ in range(2):
                try:
                    return replace(await self._update(reporter), repaired=tuple(repaired))
                except CatalogueDamaged as error:
                    self.readers.close()
                    await in_thread(catalogue.remove, self._place.catalogue)
                    why = "was of another version" if isinstance(error, CatalogueOutdated) else "was damaged"
                    repaired.append(f"The index in {folder} {why}: it is made anew.")
                except StoreDamaged:
                    mirror = self._mirror()
                    await mirror.store.drop(mirror.namespace)
                    repaired.append(f"The vectors of the index in {folder} were damaged: they are made anew.")
            return replace(await self._update(reporter), repaired=tuple(repaired))

    async def prepare(self) -> None:
        """Make sure that there is something to search: build what was never built, refill an emptied store."""
        async with self._preparing:
            revision = await in_thread(self._revision)
            if revision is None:
                await self.update()
                return
            if self._synchronised == revision:
                return
            mirror = self._mirror()
            if not mirror.store.persistent:
                await self._synchronise(mirror, remove=False)
            else:
                async with self._connection() as connection:
                    passages = await in_thread(catalogue.count_passages, connection)
                if await mirror.store.count(mirror.namespace) < passages:
                    # Another process may be at work: what it has done so far can be searched.
                    with suppress(_Busy):
                        async with self._lock_at_once():
                            await self._synchronise(mirror, remove=True)
            self._synchronised = revision

    def _revision(self) -> int | None:
        """Return the catalogue's revision; None when this version never built it to the end."""
        catalogue.is_sealed(self._place.catalogue)
        if not self._place.catalogue.exists():
            return None
        try:
            with self.readers.lend() as connection:
                built = catalogue.get_meta(connection, "complete") is not None
                return catalogue.revision(connection) if built else None
        except CatalogueOutdated:
            return None

    async def _synchronise(self, mirror: VectorMirror, *, remove: bool) -> None:
        async with self._connection() as connection, self._filling(mirror) as filling:
            await mirror.synchronise(connection, filling, remove=remove)

    def _filling(self, mirror: VectorMirror, say: Callable[[str | None], None] | None = None) -> StoreFilling:
        return StoreFilling(mirror.embeddings, mirror.store, queue=self._queue, say=say)

    async def _update(self, reporter: _Reporter) -> IndexReport:
        mirror, file = self._mirror(), self._place.catalogue
        sealed = await in_thread(catalogue.is_sealed, file)
        async with (
            self._connection(create=True) as connection,
            self._connection() as reading,
            self._filling(mirror, reporter.wait) as filling,
        ):
            if not sealed:
                await in_thread(check, connection, file)
            scan = await in_thread(Scan, self._settings, self._place, reading)
            watching = asyncio.ensure_future(reporter.watch(mirror.store))
            try:
                report = await _Update(scan, mirror, filling, connection, file, reporter).run()
            finally:
                watching.cancel()
                if not await in_thread(catalogue.is_sealed, file):
                    # Where searches go on, the next update looks through the whole catalogue.
                    await in_thread(Sqlite.seal, connection, file, _PATIENCE)
            self._synchronised = await in_thread(catalogue.revision, connection)
            return report

    @asynccontextmanager
    async def _connection(self, *, create: bool = False) -> AsyncIterator[sqlite3.Connection]:
        file = self._place.catalogue
        connection = await in_thread(catalogue.connect, file, create=create)
        try:
            with store_errors(file):
                yield connection
        finally:
            await in_thread(connection.close)

    @asynccontextmanager
    async def _lock(self, reporter: _Reporter) -> AsyncIterator[None]:
        """Wait for the lock without blocking the event loop; the lock of a killed holder is free."""
        while True:
            try:
                async with self._lock_at_once():
                    yield
                    return
            except _Busy:
                reporter.wait(f"Another process is indexing {self._place.root}.")
                await asyncio.sleep(_POLL_SECONDS)

    @asynccontextmanager
    async def _lock_at_once(self) -> AsyncIterator[None]:
        lock = FileLock(self._place.folder / "lock", thread_local=False)
        try:
            self._place.folder.mkdir(parents=True, exist_ok=True)
            lock.acquire(blocking=False)
        except Timeout as error:
            raise _Busy from error
        except OSError as error:
            raise StoreError(
                f"The index folder {self._place.folder} cannot be written: {error.strerror or error}. "
                "Set `index` of the source to a folder that can."
            ) from error
        try:
            yield
        finally:
            lock.release()


class _Busy(Exception):
    """Another process, or another index object of this one, holds the lock."""


class _Reporter:
    """Reports to a listener how far an update is, and what it waits for."""

    def __init__(self, listener: Progress | None) -> None:
        self._listener = listener or (lambda progress: None)
        self._latest = IndexProgress(0, None)

    def report(self, done: int, total: int | None, current: str = "", workers: int = 0) -> None:
        self._latest = IndexProgress(done, total, current, workers=workers)
        self._listener(self._latest)

    def wait(self, sentence: str | None) -> None:
        """Report what it waits for, or that it waits no more."""
        self._listener(replace(self._latest, waiting=sentence))

    async def watch(self, store: VectorStore) -> None:
        """Report, until cancelled, how far the store's own index is while it is trained or extended."""
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            if activity := store.activity:
                self._listener(activity)


@dataclass(slots=True)
class _Update:
    """Brings a catalogue and its vectors in step with a folder; the writer's lock is held meanwhile.

    It may be stopped anywhere: a file enters the catalogue when its vectors are in the store, and not before.
    """

    scan: Scan
    mirror: VectorMirror
    filling: StoreFilling
    connection: sqlite3.Connection
    file: Path
    reporter: _Reporter
    problems: list[str] = field(default_factory=list)
    number: int = 0
    looked: int = 0
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    embedded: int = 0
    skipped: Counter[str] = field(default_factory=Counter)

    async def run(self) -> IndexReport:
        """Apply additions, changes and removals."""
        self.reporter.report(0, None)
        total = None
        # Where an update has ended, mostly little is left to do: a second walk would take as long as that.
        if not await in_thread(_is_complete, self.connection, self.mirror.namespace):
            total = await in_thread(self.scan.count)
            await self._begin()
        self.reporter.report(0, total)
        await self._apply(total)
        renamed = min(await in_thread(self.scan.count_renamed, self.number), self.added)
        removed = await self._remove_gone()
        await self._complete()
        if self.filling.trouble is not None:
            self.problems.append(self.filling.trouble)
        return IndexReport(
            added=self.added - renamed,
            changed=self.changed,
            renamed=renamed,
            removed=removed - renamed,
            unchanged=self.unchanged,
            passages=await in_thread(catalogue.count_passages, self.connection),
            embedded=self.embedded,
            skipped=dict(sorted(self.skipped.items())),
            problems=tuple(self.problems),
            revision="{}-{}".format(*await in_thread(catalogue.state, self.connection)),
        )

    async def _begin(self) -> None:
        """Note, before the first change, that an update is at work; one that changes nothing leaves the file alone."""
        if not self.number:
            self.number, interrupted = await in_thread(_begin, self.connection, self.file, self.mirror.namespace)
            if interrupted:
                await self.filling.cancel_leftovers(self.mirror.namespace)

    async def _apply(self, total: int | None) -> None:
        """Write what the scan finds, each batch when its vectors are in the store."""
        connection, mirror = self.connection, self.mirror
        async with aclosing(self._batches()) as batches, aclosing(self.filling.each(batches)) as filled:
            async for batch, embedded in filled:
                if batch.touched:
                    await in_thread(catalogue.touch, connection, batch.touched)
                if batch.entries:
                    added, gone = await in_thread(
                        catalogue.write, connection, batch.entries, self.number, words=not mirror.words
                    )
                    await mirror.store.delete(mirror.namespace, gone)
                    documents = [new for entry, new in zip(batch.entries, added, strict=True) if entry.skipped is None]
                    self.added += sum(documents)
                    self.changed += len(documents) - sum(documents)
                self.embedded += embedded
                self.looked += batch.looked
                self.unchanged += batch.unchanged
                self.skipped += batch.skipped
                self.problems += batch.problems
                self._report(self.looked, total and max(total, self.looked), batch.current)

    async def _batches(self) -> AsyncGenerator[tuple[Batch, EmbeddingBatch]]:
        """Yield what the scan finds with what is to be embedded for it; the scan is a batch ahead."""
        mirror, scan = self.mirror, self.scan
        look = await mirror.store.count(mirror.namespace) > 0
        reading = asyncio.ensure_future(in_thread(scan.next_batch))
        try:
            last = False
            while not last:
                batch = await reading
                last = batch.last
                if not last:
                    reading = asyncio.ensure_future(in_thread(scan.next_batch))
                if batch.entries or batch.touched:
                    await self._begin()
                yield batch, await mirror.plan(self.connection, batch.entries, look=look)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _remove_gone(self) -> int:
        connection, mirror = self.connection, self.mirror
        removed = after = 0
        while files := await in_thread(self.scan.find_gone, after):
            after = files[-1][0]
            await self._begin()
            gone = await in_thread(
                catalogue.delete_files, connection, [file for file, _ in files], words=not mirror.words
            )
            await mirror.store.delete(mirror.namespace, gone)
            removed += sum(document for _, document in files)
        return removed

    async def _complete(self) -> None:
        """Bring the store in step where it is not, remove other models' vectors, and note that all is done.

        The ids are compared every time, since a store may be as large as the catalogue and yet lack a passage: when
        an update with another model or another store changed the catalogue and was stopped.
        """
        connection, mirror = self.connection, self.mirror
        if await mirror.store.count(mirror.namespace) != await in_thread(catalogue.count_passages, connection):
            await self._begin()
        self.embedded += await mirror.synchronise(
            connection,
            self.filling,
            remove=True,
            progress=lambda done, total: self._report(done, total, "Embedding what the store lacks"),
        )
        for namespace in await in_thread(_other_namespaces, connection, mirror.namespace):
            await mirror.store.drop(namespace)
        if self.number:
            await in_thread(_end, connection, mirror.namespace)

    def _report(self, done: int, total: int | None, current: str) -> None:
        self.reporter.report(done, total, current, self.filling.workers)


def _is_complete(connection: sqlite3.Connection, namespace: str) -> bool:
    """Tell whether the last update came to its end, with vectors of this namespace and no other."""
    finished = catalogue.get_meta(connection, "complete") and catalogue.get_meta(connection, "at work") != "yes"
    return bool(finished) and connection.execute("SELECT name FROM namespaces").fetchall() == [(namespace,)]


def _begin(connection: sqlite3.Connection, file: Path, namespace: str) -> tuple[int, bool]:
    """Return the number of this update, and whether the one before was stopped."""
    Sqlite.unseal(file)
    with Sqlite.transaction(connection):
        number = int(catalogue.get_meta(connection, "run") or 0) + 1
        interrupted = catalogue.get_meta(connection, "at work") == "yes"
        catalogue.set_meta(connection, "run", str(number))
        catalogue.set_meta(connection, "at work", "yes")
        connection.execute("INSERT OR IGNORE INTO namespaces VALUES (?)", (namespace,))
    return number, interrupted


def _other_namespaces(connection: sqlite3.Connection, namespace: str) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM namespaces WHERE name <> ?", (namespace,))]


def _end(connection: sqlite3.Connection, namespace: str) -> None:
    with Sqlite.transaction(connection):
        # Whoever still searches with another model has to look whether there is anything to search.
        if connection.execute("DELETE FROM namespaces WHERE name <> ?", (namespace,)).rowcount:
            catalogue.bump_revision(connection)
        catalogue.set_meta(connection, "complete", "1")
        catalogue.set_meta(connection, "at work", "no")
