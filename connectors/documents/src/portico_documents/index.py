"""The index of a folder: brought in step, and safe from kills and from other processes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from filelock import FileLock, Timeout

from portico.databases import writing
from portico.errors import StoreDamaged, StoreError
from portico.ports.search_index import IndexProgress, IndexReport
from portico_documents import catalogue
from portico_documents.catalogue import CatalogueDamaged, CatalogueOutdated, store_errors
from portico_documents.config import DocumentsSettings
from portico_documents.place import Place
from portico_documents.scan import Batch, Scan
from portico_documents.threads import in_thread
from portico_documents.vector_mirror import VectorMirror

__all__ = ["FolderIndex"]

Progress = Callable[[IndexProgress], None]

_POLL_SECONDS = 0.1
_COMPLETE = "complete"
_RUN = "run"


class FolderIndex:
    """The SearchIndex of a documents source.

    ``mirror`` gives the vector side when it is first needed. Searches read beside an update and never wait for
    one; an update waits while another process updates the same index.
    """

    def __init__(self, settings: DocumentsSettings, place: Place, mirror: Callable[[], VectorMirror]) -> None:
        self._settings = settings
        self._place = place
        self._mirror = mirror
        self._preparing = asyncio.Lock()
        self._synchronised: int | None = None

    async def update(self, *, progress: Progress | None = None) -> IndexReport:
        """Apply additions, changes and removals, a batch of whole documents at a time."""
        report = progress or _ignore
        async with self._locked(report):
            problem = ""
            # Both halves are derived from the documents: each may be made anew once.
            for _ in range(2):
                try:
                    return await self._update(report, problem)
                except CatalogueDamaged:
                    await in_thread(catalogue.remove, self._place.catalogue)
                    problem = f"The index in {self._place.folder} was damaged or of another version: made anew."
                except StoreDamaged:
                    mirror = self._mirror()
                    await mirror.store.drop(mirror.namespace)
                    problem = f"The vectors of the index in {self._place.folder} were damaged: made anew."
            return await self._update(report, problem)

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
                if catalogue.get_meta(connection, _COMPLETE) is None:
                    return None
                return catalogue.revision(connection), catalogue.count_passages(connection)
        finally:
            connection.close()

    async def _synchronise(self, mirror: VectorMirror) -> None:
        async with self._connection() as connection:
            await mirror.synchronise(connection)

    async def _update(self, progress: Progress, problem: str) -> IndexReport:
        mirror = self._mirror()
        async with self._connection(create=True) as connection, self._connection() as reading:
            scan = await in_thread(Scan, self._settings, self._place, reading)
            progress(IndexProgress(0, None))
            total = await in_thread(scan.count)
            progress(IndexProgress(0, total))
            run = await in_thread(_begin, connection)
            await mirror.discard(connection)
            tally = _Tally(run, total, problems=[problem] if problem else [])
            await self._apply(scan, mirror, connection, tally, progress)
            renamed = await in_thread(scan.count_renamed, run)
            removed = await self._remove_gone(scan, mirror, connection)
            tally.embedded += await self._complete(mirror, connection, progress)
            self._synchronised = await in_thread(catalogue.revision, connection)
            renamed = min(renamed, tally.added)
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

    async def _apply(
        self,
        scan: Scan,
        mirror: VectorMirror,
        connection: sqlite3.Connection,
        tally: _Tally,
        progress: Progress,
    ) -> None:
        """Write what the scan finds; the next batch is read while the present one is embedded and written."""
        reading = asyncio.ensure_future(in_thread(scan.next_batch))
        try:
            last = False
            while not last:
                batch = await reading
                last = batch.last
                if not last:
                    reading = asyncio.ensure_future(in_thread(scan.next_batch))
                if batch.touched:
                    await in_thread(catalogue.touch, connection, batch.touched)
                added: list[bool] = []
                if batch.entries:
                    embedded, added = await mirror.write(connection, batch.entries, tally.run)
                    tally.embedded += embedded
                tally.count(batch, added)
                progress(IndexProgress(tally.looked, max(tally.total, tally.looked), batch.current))
        finally:
            if not reading.done():
                reading.cancel()
                await asyncio.wait({reading})
            if not reading.cancelled():
                reading.exception()

    async def _remove_gone(self, scan: Scan, mirror: VectorMirror, connection: sqlite3.Connection) -> int:
        removed = after = 0
        while gone := await in_thread(scan.gone, after):
            after = gone[-1][0]
            await in_thread(catalogue.delete_files, connection, mirror.namespace, [file for file, _ in gone])
            await mirror.discard(connection)
            removed += sum(document for _, document in gone)
        return removed

    async def _complete(self, mirror: VectorMirror, connection: sqlite3.Connection, progress: Progress) -> int:
        """Bring the store in step where it is not, let go of other models' vectors, and note that all is done.

        The ids are compared every time, since a store may be as large as the catalogue and yet lack a passage: when
        an update with another model or another store changed the catalogue and was stopped.
        """
        await in_thread(catalogue.note_pending, connection, mirror.namespace, [])
        embedded = await mirror.synchronise(
            connection,
            progress=lambda done, total: progress(IndexProgress(done, total, "Embedding what the store lacks")),
        )
        for namespace in await in_thread(_other_namespaces, connection, mirror.namespace):
            await mirror.store.drop(namespace)
            await in_thread(_forget_namespace, connection, namespace)
        await in_thread(_note_complete, connection)
        return embedded

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
    async def _locked(self, progress: Progress) -> AsyncIterator[None]:
        """Wait for the lock without holding up the event loop; a killed holder's lock is free."""
        while True:
            try:
                async with self._held_at_once():
                    yield
                    return
            except _Busy:
                waiting = f"Another process is indexing {self._place.root}."
                progress(IndexProgress(0, None, waiting=waiting))
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


def _ignore(progress: IndexProgress) -> None:
    """Stand in for the progress that nobody asked for."""


def _begin(connection: sqlite3.Connection) -> int:
    run = int(catalogue.get_meta(connection, _RUN) or 0) + 1
    catalogue.set_meta(connection, _RUN, str(run))
    return run


def _note_complete(connection: sqlite3.Connection) -> None:
    catalogue.set_meta(connection, _COMPLETE, "1")


def _other_namespaces(connection: sqlite3.Connection, namespace: str) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM namespaces WHERE name <> ?", (namespace,))]


def _forget_namespace(connection: sqlite3.Connection, namespace: str) -> None:
    with writing(connection):
        connection.execute("DELETE FROM namespaces WHERE name = ?", (namespace,))
        connection.execute("DELETE FROM pending WHERE namespace = ?", (namespace,))
        connection.execute("DELETE FROM garbage WHERE namespace = ?", (namespace,))
        # Who still searches with that model has to look whether there is anything to search.
        catalogue.bump_revision(connection)
