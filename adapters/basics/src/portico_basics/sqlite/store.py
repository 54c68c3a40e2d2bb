"""The run store in SQLite."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from portico.plugins import Rows, Services
from portico.ports import Lease, RunStore
from portico_basics.sqlite._effects import EffectsUnderWay
from portico_basics.sqlite._journal import Journal
from portico_basics.sqlite.config import SqliteSettings

P = ParamSpec("P")
T = TypeVar("T")


class SqliteRunStore(RunStore):
    """The RunStore port in one SQLite file, which several processes may share.

    >>> from tempfile import TemporaryDirectory
    >>> async def write(folder):
    ...     store = SqliteRunStore(SqliteSettings(path=Path(folder) / "runs.sqlite3"))
    ...     lease = await store.acquire("r1", owner="me", seconds=60)
    ...     await store.append(lease, [{"type": "pursuit", "goal": "Shout"}])
    ...     await store.release(lease)
    ...     entries = await store.read("r1")
    ...     await store.aclose()
    ...     return entries
    >>> with TemporaryDirectory() as folder:
    ...     asyncio.run(write(folder))
    [{'type': 'pursuit', 'goal': 'Shout'}]

    One thread of its own does all the work, so that the event loop never waits for the disk; calls are carried out in
    the order in which they were made. Nothing is opened before the first call. A call that is cancelled has happened
    as a whole or not at all. A lease also ends with the process that holds it, however that ended.
    """

    name = "sqlite"
    one_machine = True

    def __init__(
        self,
        settings: SqliteSettings | None = None,
        services: Services | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings or SqliteSettings()
        self._clock = clock
        self._effects = EffectsUnderWay()
        self._starting = threading.Lock()
        self._journal: Journal | None = None
        self._thread: ThreadPoolExecutor | None = None

    async def acquire(self, run: str, *, owner: str, seconds: float) -> Lease:
        """Take the run for ``seconds``; ``StoreBusy`` while another holds it whose process is there."""
        return await self._do(self._opened().acquire, run, owner, seconds)

    async def renew(self, lease: Lease, *, seconds: float) -> None:
        """Lengthen a lease; ``StoreBusy`` when there was a newer one since."""
        await self._do(self._opened().renew, lease, seconds)

    async def release(self, lease: Lease) -> None:
        """Give the run back, unless the lease is stale; when it is finished, a few that are too many are removed."""
        self._effects.forget(lease.run)
        await self._do(self._opened().release, lease)

    async def append(self, lease: Lease, entries: Sequence[Mapping[str, Any]]) -> None:
        """Add entries at the end; ``StoreBusy`` for a stale lease, ``StoreError`` for what is no JSON.

        They outlive this process at once. When they outlive the power too is the setting ``sync``'s to say.
        """
        # Here rather than in the thread: whoever made the entries may change them afterwards.
        texts = [Rows.encode(lease.run, entry) for entry in entries]
        concerned = [self._effects.concerns(lease.run, entry) for entry in entries]
        sync = self._settings.sync
        synchronous = sync == "always" or (sync == "effects" and any(concerned))
        await self._do(self._opened().append, lease, texts, synchronous=synchronous, finished=Rows.ended(entries))

    async def read(self, run: str) -> list[Mapping[str, Any]]:
        """Return the entries in order; none for an unknown run."""
        return await self._do(self._opened().read, run)

    async def held(self, run: str) -> bool:
        """Tell whether a process that is there holds the run."""
        return await self._do(self._opened().held, run)

    async def runs(self) -> list[str]:
        """Return the names of all runs, the oldest first."""
        return await self._do(self._opened().runs)

    async def aclose(self) -> None:
        """Let go of the file and of the thread; the next call opens it again."""
        with self._starting:
            journal, thread = self._journal, self._thread
            self._journal = self._thread = None
        if journal is None or thread is None:
            return
        try:
            await asyncio.get_running_loop().run_in_executor(thread, journal.close)
        finally:
            thread.shutdown(wait=False)

    def _opened(self) -> Journal:
        if self._journal is None:
            with self._starting:
                if self._journal is None:
                    self._thread = ThreadPoolExecutor(1, thread_name_prefix="portico-basics")
                    self._journal = Journal(self._settings.path or _default_path(), self._settings, self._clock)
        return self._journal

    async def _do(self, call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        thread = self._thread
        if thread is None:
            raise RuntimeError("the run store was closed meanwhile")
        return await asyncio.wrap_future(thread.submit(call, *arguments, **options))


def _default_path() -> Path:
    from platformdirs import user_state_path

    return user_state_path("portico", appauthor=False) / "runs.sqlite3"
