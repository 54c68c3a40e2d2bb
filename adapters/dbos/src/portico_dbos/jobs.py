"""The queue of jobs on DBOS."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from portico.ports import Job, JobStatus, Worker
from portico_dbos._database import Database, Opened
from portico_dbos._heartbeat import remove_ended
from portico_dbos._json import json_text
from portico_dbos._names import id_of, queue_of, workflow_of
from portico_dbos._process import PROCESS, RunningDbos
from portico_dbos._recordings import Recordings
from portico_dbos._statuses import status_of, statuses_of
from portico_dbos._worker import Worker as _Worker

if TYPE_CHECKING:
    from dbos import EnqueueOptions


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
        self.one_machine = database.settings.uri is None
        self._database = database
        self._recordings = recordings
        self._working: dict[asyncio.Task[None], asyncio.Event] = {}

    @property
    def place(self) -> str:
        """Where the jobs are, for people: without user and password."""
        return self._database.place

    async def submit(self, jobs: Sequence[Job]) -> None:
        """Put jobs into the queue, all of them or, where one is refused, none; those that are there already stay."""
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
        """Be a worker for these kinds of jobs until cancelled; jobs under way are then cancelled and wait again."""
        if not carry_out:
            raise ValueError("a worker carries out jobs of one kind at least")
        for kind in carry_out:
            queue_of(kind)
        self._database.hold(self._owner)
        worker = _Worker(carry_out, emit, self._database, self._recordings)
        stop = asyncio.Event()
        # A task of its own: ending takes a moment, and is not cut short by who waits for it no longer.
        working = asyncio.ensure_future(self._work(worker, stop))
        self._working[working] = stop
        working.add_done_callback(self._ended)
        try:
            await asyncio.shield(working)
        finally:
            stop.set()
            await asyncio.wait([working])

    async def status(self, names: Sequence[str], *, body: bool = False) -> list[JobStatus | None]:
        """Return how each job is, in that order; None for one that is not known."""
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
        """Return the newest jobs of a kind that are in one of these states, the newest first."""
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
        """Take jobs that wait out of the queue, and stop those that run; what has ended stays as it is."""
        ids = [id for name in names if (id := _id_or_none(name)) is not None]
        if ids:
            await self._call(lambda opened: opened.client.cancel_workflows(ids))

    async def forget(self, names: Sequence[str]) -> None:
        """Remove jobs that have ended, with all that is recorded of them; what waits or runs stays."""
        ids = [id for name in names if (id := _id_or_none(name)) is not None]
        if ids:
            await self._call(lambda opened: remove_ended(opened, ids))

    async def workers(self) -> list[Worker]:
        """Return the workers that were heard of within the setting ``worker_timeout``, the longest at work first."""
        return await self._call(lambda opened: opened.workers.living())

    async def stop(self) -> None:
        """End the workers of this queue that are in this process, as cancelling them would."""
        for working, stop in list(self._working.items()):
            stop.set()
            await asyncio.wait([working])

    def _ended(self, working: asyncio.Task[None]) -> None:
        del self._working[working]
        if not working.cancelled():
            working.exception()  # looked at, also where whoever waited for it was cancelled

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
                await self._database.run(running.joined)
            finally:
                # Also where that is cut short, as when the loop ends: who has left must not be heard of again.
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
    """Return the identifier of a name; None for one that no job can have."""
    try:
        return id_of(name)
    except ValueError:
        return None
