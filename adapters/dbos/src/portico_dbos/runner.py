"""The runner on DBOS."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from portico.errors import StoreError
from portico.plugins import Services
from portico.ports import Job, JobStatus, Runner, Worker
from portico_dbos._database import Database
from portico_dbos._errors import map_errors
from portico_dbos._names import attempt_id, id_of, json_text, queue_of, status_of, statuses_of, workflow_of
from portico_dbos._process import PROCESS, Begun, RunningDbos
from portico_dbos._recording import Recorded, Recording, Recordings, read_recorded
from portico_dbos._worker import Worker as _Worker, remove_ended
from portico_dbos.config import DbosSettings

if TYPE_CHECKING:
    from dbos import EnqueueOptions

    from portico_dbos._opened import Opened


T = TypeVar("T")

_AT_ONCE = 500
"""Names that are asked for with one query."""


class DbosJobs:
    """The JobQueue port on DBOS: a job is a workflow, its name the workflow's identifier.

    There is a queue for each kind, so that a worker takes only what it can carry out. Made by `DbosRunner`.
    """

    name = "dbos"

    def __init__(self, owner: object, database: Database, recordings: Recordings) -> None:
        self._owner = owner
        self._database = database
        self._recordings = recordings
        self._working: dict[asyncio.Task[None], asyncio.Event] = {}

    @property
    def place(self) -> str:
        """The address of the queue for messages, without user and password."""
        return self._database.place

    async def submit(self, jobs: Sequence[Job]) -> None:
        """Put jobs into the queue, all or none. Jobs that are there already stay as they are."""
        version = f"portico-{self._database.settings.version}"
        rows: list[tuple[EnqueueOptions, str]] = []
        for job in jobs:
            options: EnqueueOptions = {
                "workflow_name": workflow_of(job.kind),
                "queue_name": queue_of(job.kind),
                "workflow_id": id_of(job.name),
                "app_version": version,
            }
            rows.append((options, json_text(dict(job.body), f"the body of the job {job.name!r}")))
        if rows:
            await self._call(lambda opened: opened.enqueue(rows))

    async def work(
        self,
        carry_out: Mapping[str, Callable[[Job], Awaitable[Any]]],
        *,
        emit: Callable[[JobStatus], None] | None = None,
    ) -> None:
        """Carry out jobs of these kinds until cancelled. Running jobs are then cancelled and wait again."""
        if not carry_out:
            raise ValueError("a worker carries out jobs of one kind at least")
        for kind in carry_out:
            queue_of(kind)
        self._database.hold(self._owner)
        worker = _Worker(carry_out, emit, self._database, self._recordings)
        stop = asyncio.Event()
        # A separate task, since a caller that is cancelled must not interrupt the end.
        working = asyncio.ensure_future(self._work(worker, stop))
        self._working[working] = stop
        working.add_done_callback(self._remove_working)
        try:
            await asyncio.shield(working)
        finally:
            stop.set()
            await asyncio.wait([working])

    async def status(self, names: Sequence[str], *, body: bool = False) -> list[JobStatus | None]:
        """Return the status of each job, in that order; None for an unknown one."""
        ids = {name: id for name in dict.fromkeys(names) if (id := _id_or_none(name)) is not None}
        asked = list(ids.values())

        def read(opened: Opened) -> dict[str, JobStatus | None]:
            found: dict[str, JobStatus | None] = {}
            for at in range(0, len(asked), _AT_ONCE):
                rows = opened.client.list_workflows(workflow_ids=asked[at : at + _AT_ONCE], load_input=body)
                found |= {row.workflow_id: status_of(row) for row in rows}
            return found

        known = await self._call(read)
        return [known.get(ids.get(name, "")) for name in names]

    async def jobs(
        self, kind: str, *, states: Collection[str] = ("waiting", "running"), limit: int = 100, body: bool = False
    ) -> list[JobStatus]:
        """Return the newest jobs of a kind in one of these states, newest first."""
        theirs = statuses_of(states)
        if not theirs or limit < 1 or _id_or_none(kind) is None:
            return []

        def read(opened: Opened) -> list[JobStatus]:
            rows = opened.client.list_workflows(
                name=workflow_of(kind), status=theirs, limit=limit, sort_desc=True, load_input=body
            )
            return [status for row in rows if (status := status_of(row)) is not None]

        return await self._call(read)

    async def cancel(self, names: Sequence[str]) -> None:
        """Cancel jobs that wait or run; jobs that have ended stay as they are."""
        ids = [id for name in names if (id := _id_or_none(name)) is not None]
        if ids:
            await self._call(lambda opened: opened.client.cancel_workflows(ids))

    async def forget(self, names: Sequence[str]) -> None:
        """Remove jobs that have ended, with their records; jobs that wait or run stay."""
        ids = [id for name in names if (id := _id_or_none(name)) is not None]
        if ids:
            await self._call(lambda opened: remove_ended(opened, ids))

    async def workers(self) -> list[Worker]:
        """Return the workers whose last heartbeat is newer than ``worker_timeout``, oldest worker first."""
        return await self._call(lambda opened: opened.workers.living()[0])

    async def stop(self) -> None:
        """Stop the workers of this queue in this process, as cancelling them does."""
        for working, stop in list(self._working.items()):
            stop.set()
            await asyncio.wait([working])

    def _remove_working(self, working: asyncio.Task[None]) -> None:
        del self._working[working]
        if not working.cancelled():
            working.exception()  # read it, so that asyncio does not report it

    async def _call(self, function: Callable[[Opened], T]) -> T:
        self._database.hold(self._owner)
        return await self._database.call(function)

    async def _work(self, worker: _Worker, stop: asyncio.Event) -> None:
        database = self._database
        running = await database.run(PROCESS.use, self._owner, database, worker)
        try:
            await database.call(lambda opened: self._register_queues(opened, worker.kinds))
            await worker.register(running.executor)
            try:
                await self._take(running, worker, stop)
            finally:
                await worker.leave()
        finally:
            running.uses.discard(worker)

    async def _take(self, running: RunningDbos, worker: _Worker, stop: asyncio.Event) -> None:
        await self._database.call(lambda opened: running.take(worker.carry_out, worker.kinds))
        living = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(worker.live(), running.loop))
        stopping = asyncio.ensure_future(stop.wait())
        try:
            both: list[asyncio.Future[Any]] = [stopping, living]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            running.take_no_more()
            try:
                await worker.end()
                await self._database.run(running.join)
            finally:
                # Also if that was interrupted: a worker that has left sends no heartbeats.
                living.cancel()
        if not living.cancelled():
            living.result()

    def _register_queues(self, opened: Opened, kinds: list[str]) -> None:
        settings = self._database.settings
        for kind in kinds:
            opened.client.register_queue(
                queue_of(kind),
                worker_concurrency=settings.concurrency,
                limiter=None
                if settings.rate is None
                else {"limit": settings.rate.jobs, "period": settings.rate.seconds},
                polling_interval_sec=settings.poll,
                on_conflict="always_update",
            )


def _id_or_none(name: str) -> str | None:
    """Return the identifier of a name; None if no job can have it."""
    try:
        return id_of(name)
    except ValueError:
        return None


class DbosRuns:
    """The DurableRuns port on DBOS: each attempt at a run is a workflow, each action a step of it.

    An attempt begins with what all attempts before it recorded. Made by `DbosRunner`.
    """

    def __init__(self, owner: object, database: Database, recordings: Recordings) -> None:
        self._owner = owner
        self._database = database
        self._recordings = recordings

    async def run(self, run: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do the work of a run and record its actions. In a job of that name, continue the job's record."""
        id_of(run, "name of a run")
        if self._recordings.get(run) is not None:
            return await work()
        self._database.hold(self._owner)
        ended = object()
        running = await self._running(ended)
        try:
            recorded, number = await self._database.call(lambda opened: read_recorded(opened, run))
            begun = await self._begin(running, run, number)

            async def load() -> Recorded:
                return recorded

            recording = Recording(run, self._database.place, running.loop, begun.context, load)
            failure: str | None = "it was cancelled"
            try:
                with self._recordings.open(recording):
                    result = await work()
                failure = None
                return result
            except Exception as error:
                failure = type(error).__name__
                raise
            finally:
                with suppress(StoreError):  # the runner was closed, so the workflow has no end
                    await running.call(begun.end_and_wait(failure))
        finally:
            running.uses.discard(ended)

    async def recorded(self, run: str) -> Mapping[str, Any]:
        """Return the recorded results of the run's actions by name; none for an unknown run."""
        id_of(run, "name of a run")
        self._database.hold(self._owner)
        recorded, _ = await self._database.call(lambda opened: read_recorded(opened, run))
        return {name: json.loads(text) for name, text in recorded.results.items()}

    async def _running(self, run: object) -> RunningDbos:
        """Return DBOS, launched. A caller that is cancelled meanwhile does not keep it in use."""
        launching = self._database.submit(PROCESS.use, self._owner, self._database, run)
        try:
            return await asyncio.shield(asyncio.wrap_future(launching))
        except asyncio.CancelledError:
            launching.add_done_callback(
                lambda done: None if done.cancelled() or done.exception() else done.result().uses.discard(run)
            )
            raise

    async def _begin(self, running: RunningDbos, run: str, number: int) -> Begun:
        from dbos import error as dbos_errors

        while True:
            with map_errors(self._database.place):
                try:
                    return await running.call(running.begin(attempt_id(run, number), run))
                except dbos_errors.DBOSWorkflowIDInUseError:
                    number += 1  # another process began one at the same moment; the journal's lease decides


class DbosRunner(Runner):
    """Execute actions in this process, and record their results while their run is durable.

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

    ``jobs`` is the queue of the workers, and ``durable`` records what was executed. Nothing is opened before one of
    them is used. `aclose` ends everything; after that the runner may be used again. Outside of a durable run and of a
    job, an action is executed without a record.
    """

    name = "dbos"
    durable: DbosRuns
    jobs: DbosJobs

    def __init__(self, settings: DbosSettings | None = None, services: Services | None = None) -> None:
        self._database = Database(settings or DbosSettings())
        self._recordings = Recordings()
        self.durable = DbosRuns(self, self._database, self._recordings)
        self.jobs = DbosJobs(self, self._database, self._recordings)

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        """Execute ``action``, or return the recorded result of ``name`` if the run is durable."""
        recording = self._recordings.get(run)
        return await (action() if recording is None else recording.execute(name, action))

    async def aclose(self) -> None:
        """End everything: a worker puts its jobs back, and connections and threads are closed."""
        await self.jobs.stop()
        if self._database.held(self):
            await self._database.run(self._leave)

    def _leave(self) -> None:
        PROCESS.leave(self)
        self._database.let_go(self)
