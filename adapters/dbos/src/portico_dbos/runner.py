"""The runner on DBOS."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from portico.plugins import Services
from portico.ports import Runner
from portico_dbos._database import Database
from portico_dbos._process import PROCESS
from portico_dbos._recordings import Recordings
from portico_dbos.config import DbosSettings
from portico_dbos.durable import DbosRuns
from portico_dbos.jobs import DbosJobs


class DbosRunner(Runner):
    """Execute actions in this process, and record what they give while their run is run durably.

    >>> import asyncio
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> async def work():
    ...     print("working")
    ...     return "done"
    >>> async def twice(folder):
    ...     runner = DbosRunner(DbosSettings(path=Path(folder) / "dbos.sqlite3"))
    ...     for _ in range(2):
    ...         print(await runner.durable.run("r1", lambda: runner.execute("r1", "s1", work)))
    ...     await runner.aclose()
    >>> with TemporaryDirectory() as folder:
    ...     asyncio.run(twice(folder))
    working
    done
    done

    ``jobs`` is the queue of the workers, ``durable`` the record of what was executed. Nothing is opened before one of
    them is used, and `aclose` ends all that was; then it may be used again. Outside of a durable run and of a job
    an action is executed as if there were no runner.
    """

    name = "dbos"
    durable: DbosRuns
    jobs: DbosJobs

    def __init__(self, settings: DbosSettings | None = None, services: Services | None = None) -> None:
        self._database = Database(settings or DbosSettings())
        self._recordings = Recordings(self._database)
        self.durable = DbosRuns(self, self._database, self._recordings)
        self.jobs = DbosJobs(self, self._database, self._recordings)

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        """Execute ``action``, or return what is recorded of ``name`` where the run is run durably."""
        recording = self._recordings.get(run)
        return await (action() if recording is None else recording.execute(name, action))

    async def aclose(self) -> None:
        """End everything that was started: a worker puts its jobs back, and connections and threads are let go of."""
        await self.jobs.stop()
        if self._database.held(self):
            await self._database.run(self._leave)

    def _leave(self) -> None:
        PROCESS.leave(self)
        self._database.let_go(self)
