"""The database of the runner: opened at first use, asked in threads, closed at the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from portico_dbos._errors import closed_error, map_errors
from portico_dbos.config import DbosSettings

if TYPE_CHECKING:
    from portico_dbos._opened import Opened

P = ParamSpec("P")
T = TypeVar("T")

_THREADS = 6


class Database:
    """The database of a runner. Nothing is opened before the first call.

    It is opened once for all holders, and closed when the last one releases it.
    """

    def __init__(self, settings: DbosSettings) -> None:
        self.settings = settings
        # Event loops take `_lock`, so it is held for moments only. A thread that needs both takes `_opening` first.
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._opened: Opened | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._holders: set[int] = set()

    @property
    def place(self) -> str:
        """The database's address for messages, without user and password."""
        if self.settings.uri is not None:
            return self.settings.uri.database_place()
        return f"sqlite {self._file()}"

    def same_as(self, other: Database) -> bool:
        mine, its = self.settings, other.settings
        alike = (mine.uri, mine.schema, mine.version) == (its.uri, its.schema, its.version)
        return alike and (mine.uri is not None or self._file() == other._file())

    async def call(self, function: Callable[[Opened], T]) -> T:
        """Use the database in a thread. Raises ``StoreError``. A cancelled call still happens."""
        return await asyncio.wrap_future(self._pool().submit(self._use, function))

    def submit(self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> Future[T]:
        """Call a slow function in a thread of the database."""
        return self._pool().submit(function, *arguments, **options)

    async def run(self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        return await asyncio.wrap_future(self.submit(function, *arguments, **options))

    def open(self) -> Opened:
        """Return the open database; open it if needed. Blocks, and does not map errors."""
        with self._opening:
            with self._lock:
                opened, held = self._opened, bool(self._holders)
            if opened is None:
                if not held:
                    raise closed_error(self.place)
                from portico_dbos._opened import Opened

                opened = Opened(self.settings, self._file())
                with self._lock:
                    self._opened = opened
            return opened

    def hold(self, holder: object) -> None:
        """Keep the database open until `let_go`; once for each holder."""
        with self._lock:
            self._holders.add(id(holder))

    def held(self, holder: object) -> bool:
        return id(holder) in self._holders

    def let_go(self, holder: object) -> None:
        """Undo `hold`; the last holder closes the database. Blocks. Another `hold` opens it again."""
        with self._opening, self._lock:
            self._holders.discard(id(holder))
            if self._holders:
                return
            opened, threads = self._opened, self._threads
            self._opened = self._threads = None
        if opened is not None:
            opened.close()
        if threads is not None:
            threads.shutdown(wait=False)

    def _use(self, function: Callable[[Opened], T]) -> T:
        with map_errors(self.place):
            return function(self.open())

    def _pool(self) -> ThreadPoolExecutor:
        with self._lock:
            if not self._holders:
                raise closed_error(self.place)
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="portico-dbos")
            return self._threads

    def _file(self) -> Path:
        if self.settings.path is not None:
            return self.settings.path.absolute()
        from platformdirs import user_state_path

        return user_state_path("portico", appauthor=False) / "dbos.sqlite3"
