"""The index of a folder: brought in step, and safe from kills and from other processes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from filelock import FileLock, Timeout

from portico.errors import StoreDamaged, StoreError
from portico.plugins import StoreFilling
from portico.ports import IndexProgress, IndexReport, JobQueue
from portico_documents import catalogue
from portico_documents.catalogue import CatalogueDamaged, CatalogueOutdated, store_errors
from portico_documents.config import DocumentsSettings
from portico_documents.place import Place
from portico_documents.scan import Scan
from portico_documents.threads import in_thread
from portico_documents.update import Telling, Update, is_complete
from portico_documents.vector_mirror import VectorMirror

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
