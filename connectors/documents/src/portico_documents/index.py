"""The index of a folder: brought in step, and safe from kills and from other processes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

from filelock import FileLock, Timeout

from portico.errors import StoreDamaged, StoreError
from portico.plugins import EmbeddingBatch, Sqlite, StoreFilling
from portico.ports import IndexProgress, IndexReport, JobQueue
from portico_documents import catalogue, leftovers
from portico_documents.catalogue import CatalogueDamaged, CatalogueOutdated, store_errors
from portico_documents.config import DocumentsSettings
from portico_documents.place import Place
from portico_documents.scan import Batch, Scan
from portico_documents.threads import in_thread
from portico_documents.vector_mirror import VectorMirror

_COMPLETE = "complete"
_RUN = "run"


class Telling:
    """How far an update is, and whom it waits for, to whoever listens."""

    def __init__(self, listener: Callable[[IndexProgress], None] | None) -> None:
        self._listener = listener
        self._latest = IndexProgress(0, None)

    def tell(self, progress: IndexProgress) -> None:
        """Say how far it is."""
        self._latest = progress
        if self._listener is not None:
            self._listener(progress)

    def wait(self, sentence: str | None) -> None:
        """Say whom it waits for, or that it does no more."""
        if self._listener is not None:
            self._listener(replace(self._latest, waiting=sentence))


class Update:
    """Brings a catalogue and its vectors in step with a folder; the writer's lock is held meanwhile.

    It may be stopped anywhere: a file is in the catalogue when its vectors are in the store, and not before.
    """

    def __init__(
        self, scan: Scan, mirror: VectorMirror, filling: StoreFilling, connection: sqlite3.Connection, telling: Telling
    ) -> None:
        self._scan = scan
        self._mirror = mirror
        self._filling = filling
        self._connection = connection
        self._telling = telling

    async def run(self, problem: str) -> IndexReport:
        """Apply additions, changes and removals; ``problem`` is what the report has to say of the index before."""
        connection, mirror, scan = self._connection, self._mirror, self._scan
        self._telling.tell(IndexProgress(0, None))
        total = await in_thread(scan.count)
        self._telling.tell(IndexProgress(0, total))
        run = await in_thread(_begin, connection)
        if await in_thread(leftovers.has_pending, connection, mirror.namespace):
            await self._filling.cancel_leftovers(mirror.namespace)
        await mirror.clear(connection)
        tally = _Tally(run, total, problems=[problem] if problem else [])
        await self._apply(tally)
        renamed = await in_thread(scan.count_renamed, run)
        removed = await self._remove_gone()
        tally.embedded += await self._complete()
        renamed = min(renamed, tally.added)
        if self._filling.trouble is not None:
            tally.problems.append(self._filling.trouble)
        return IndexReport(
            added=tally.added - renamed,
            changed=tally.changed,
            renamed=renamed,
            removed=removed - renamed,
            unchanged=tally.unchanged,
            passages=await in_thread(catalogue.count_passages, connection),
            embedded=tally.embedded,
            skipped=dict(sorted(tally.skipped.items())),
            problems=tuple(tally.problems),
        )

    async def _apply(self, tally: _Tally) -> None:
        """Write what the scan finds, each batch when its vectors are in the store."""
        connection, mirror = self._connection, self._mirror
        async with aclosing(self._found()) as found, aclosing(self._filling.each(found)) as filled:
            async for batch, embedded in filled:
                if batch.touched:
                    await in_thread(catalogue.touch, connection, batch.touched)
                added: list[bool] = []
                if batch.entries:
                    added = await in_thread(
                        catalogue.write, connection, mirror.namespace, batch.entries, tally.run, words=not mirror.words
                    )
                    await mirror.clear(connection)
                tally.embedded += embedded
                tally.count(batch, added)
                self._tell(tally.looked, max(tally.total, tally.looked), batch.current)

    async def _found(self) -> AsyncGenerator[tuple[Batch, EmbeddingBatch]]:
        """Yield what the scan finds with what is to be embedded for it; the scan is a batch ahead."""
        mirror, scan = self._mirror, self._scan
        look = await mirror.store.count(mirror.namespace) > 0
        reading = asyncio.ensure_future(in_thread(scan.next_batch))
        try:
            last = False
            while not last:
                batch = await reading
                last = batch.last
                if not last:
                    reading = asyncio.ensure_future(in_thread(scan.next_batch))
                yield batch, await mirror.plan(self._connection, batch.entries, look=look)
        finally:
            if not reading.done():
                reading.cancel()
                await asyncio.wait({reading})
            if not reading.cancelled():
                reading.exception()

    async def _remove_gone(self) -> int:
        connection, mirror = self._connection, self._mirror
        removed = after = 0
        while gone := await in_thread(self._scan.gone, after):
            after = gone[-1][0]
            files = [file for file, _ in gone]
            await in_thread(catalogue.delete_files, connection, mirror.namespace, files, words=not mirror.words)
            await mirror.clear(connection)
            removed += sum(document for _, document in gone)
        return removed

    async def _complete(self) -> int:
        """Bring the store in step where it is not, let go of other models' vectors, and note that all is done.

        The ids are compared every time, since a store may be as large as the catalogue and yet lack a passage: when
        an update with another model or another store changed the catalogue and was stopped.
        """
        connection, mirror = self._connection, self._mirror
        await mirror.discard(connection)
        await in_thread(leftovers.note_pending, connection, mirror.namespace, [])
        embedded = await mirror.synchronise(
            connection,
            self._filling,
            progress=lambda done, total: self._tell(done, total, "Embedding what the store lacks"),
        )
        for namespace in await in_thread(_other_namespaces, connection, mirror.namespace):
            await mirror.store.drop(namespace)
            await in_thread(_forget_namespace, connection, namespace)
        await in_thread(_note_complete, connection)
        return embedded

    def _tell(self, done: int, total: int, current: str) -> None:
        self._telling.tell(IndexProgress(done, total, current, workers=self._filling.workers))


@dataclass(slots=True)
class _Tally:
    run: int
    total: int
    problems: list[str]
    looked: int = 0
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    embedded: int = 0
    skipped: Counter[str] = field(default_factory=Counter)

    def count(self, batch: Batch, added: Sequence[bool]) -> None:
        documents = [new for entry, new in zip(batch.entries, added, strict=True) if entry.skipped is None]
        self.added += sum(documents)
        self.changed += len(documents) - sum(documents)
        self.looked += batch.looked
        self.unchanged += batch.unchanged
        self.skipped += batch.skipped
        self.problems += batch.problems


def is_complete(connection: sqlite3.Connection) -> bool:
    """Tell whether an update has ever come to its end."""
    return catalogue.get_meta(connection, _COMPLETE) is not None


def _begin(connection: sqlite3.Connection) -> int:
    run = int(catalogue.get_meta(connection, _RUN) or 0) + 1
    catalogue.set_meta(connection, _RUN, str(run))
    return run


def _note_complete(connection: sqlite3.Connection) -> None:
    catalogue.set_meta(connection, _COMPLETE, "1")


def _other_namespaces(connection: sqlite3.Connection, namespace: str) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM namespaces WHERE name <> ?", (namespace,))]


def _forget_namespace(connection: sqlite3.Connection, namespace: str) -> None:
    with Sqlite.transaction(connection):
        connection.execute("DELETE FROM namespaces WHERE name = ?", (namespace,))
        connection.execute("DELETE FROM pending WHERE namespace = ?", (namespace,))
        connection.execute("DELETE FROM garbage WHERE namespace = ?", (namespace,))
        # Who still searches with that model has to look whether there is anything to search.
        catalogue.bump_revision(connection)


Progress = Callable[[IndexProgress], None]

_POLL_SECONDS = 0.1


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
        self._preparing = asyncio.Lock()
        self._synchronised: int | None = None

    async def update(self, *, progress: Progress | None = None) -> IndexReport:
        """Apply additions, changes and removals, a batch of whole documents at a time."""
        telling = Telling(progress)
        async with self._locked(telling):
            problem = ""
            # Both halves are derived from the documents: each may be made anew once.
            for _ in range(2):
                try:
                    return await self._update(telling, problem)
                except CatalogueDamaged:
                    await in_thread(catalogue.remove, self._place.catalogue)
                    problem = f"The index in {self._place.folder} was damaged or of another version: made anew."
                except StoreDamaged:
                    mirror = self._mirror()
                    await mirror.store.drop(mirror.namespace)
                    problem = f"The vectors of the index in {self._place.folder} were damaged: made anew."
            return await self._update(telling, problem)

    async def prepare(self) -> None:
        """See to it that there is something to search: build what was never built, refill an emptied store."""
        async with self._preparing:
            state = await in_thread(self._state)
            if state is None:
                await self.update()
                return
            revision, passages = state
            mirror = self._mirror()
            if self._synchronised == revision:
                return
            if not mirror.store.persistent:
                await self._synchronise(mirror)
            elif await mirror.store.count(mirror.namespace) < passages:
                # Another process may be at it: what it has done so far can be searched meanwhile.
                with suppress(_Busy):
                    async with self._held_at_once():
                        await self._synchronise(mirror)
            self._synchronised = revision

    def _state(self) -> tuple[int, int] | None:
        """Return the catalogue's revision and size; None when this version never built it to the end."""
        if not self._place.catalogue.exists():
            return None
        try:
            connection = catalogue.connect(self._place.catalogue)
        except CatalogueOutdated:
            return None
        try:
            with store_errors(self._place.catalogue):
                if not is_complete(connection):
                    return None
                return catalogue.revision(connection), catalogue.count_passages(connection)
        finally:
            connection.close()

    async def _synchronise(self, mirror: VectorMirror) -> None:
        async with self._connection() as connection, self._filling(mirror) as filling:
            await mirror.synchronise(connection, filling)

    def _filling(self, mirror: VectorMirror, say: Callable[[str | None], None] | None = None) -> StoreFilling:
        return StoreFilling(mirror.embeddings, mirror.store, queue=self._queue, say=say)

    async def _update(self, telling: Telling, problem: str) -> IndexReport:
        mirror = self._mirror()
        async with (
            self._connection(create=True) as connection,
            self._connection() as reading,
            self._filling(mirror, telling.wait) as filling,
        ):
            scan = await in_thread(Scan, self._settings, self._place, reading)
            report = await Update(scan, mirror, filling, connection, telling).run(problem)
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
    async def _locked(self, telling: Telling) -> AsyncIterator[None]:
        """Wait for the lock without holding up the event loop; a killed holder's lock is free."""
        while True:
            try:
                async with self._held_at_once():
                    yield
                    return
            except _Busy:
                telling.wait(f"Another process is indexing {self._place.root}.")
                await asyncio.sleep(_POLL_SECONDS)

    @asynccontextmanager
    async def _held_at_once(self) -> AsyncIterator[None]:
        lock = FileLock(self._place.lock, thread_local=False)
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
