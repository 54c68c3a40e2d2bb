"""A worker: carries out the jobs that DBOS takes from the queues, as long as its heartbeats arrive."""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from portico.errors import StoreError
from portico.ports import Job, JobStatus
from portico_dbos._database import Database
from portico_dbos._names import PUT_BACK, RUN_KIND, body_of, json_text, name_of, status_of
from portico_dbos._recording import Recorded, Recording, Recordings, read_recorded

if TYPE_CHECKING:
    from portico_dbos._opened import Opened

T = TypeVar("T")
Why = Literal["cancelled", "lost", "put back"]


class JobFailed(Exception):
    """A job failed. DBOS stores the text and nothing else."""


class Stopped(Exception):
    """The job was stopped; `Carrying.why` has the reason."""


class Carrying:
    """Carries out one job in the application's loop, and gives the result to DBOS's loop."""

    def __init__(
        self, action: Callable[[], Coroutine[Any, Any, str]], home: asyncio.AbstractEventLoop, context: Context
    ) -> None:
        self.runs = True
        self.why: Why | None = None
        """Why it was stopped."""
        self._action = action
        self._home = home
        self._context = context
        self._task: asyncio.Task[str] | None = None

    async def result(self) -> str:
        """Carry it out and return its result as JSON. Raises `JobFailed` or `Stopped`. In DBOS's loop."""
        run = self._run()
        try:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(run, self._home))
        except asyncio.CancelledError:
            self.stop("put back")
            raise
        except RuntimeError as error:  # the application's loop has ended
            run.close()
            self.why = "put back"
            raise Stopped from error
        finally:
            self.runs = False

    def stop(self, why: Why) -> None:
        """Cancel the job; from any loop."""
        with suppress(RuntimeError):  # the application's loop has ended, and all that ran in it
            self._home.call_soon_threadsafe(self._cancel, why)

    async def stop_and_wait(self, why: Why) -> None:
        """Cancel the job and wait until it has ended. In the application's loop."""
        self._cancel(why)
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> str:
        if self.why is not None:
            raise Stopped
        self._task = task = self._home.create_task(self._action(), context=self._context.copy())
        await asyncio.wait([task])
        error = None if task.cancelled() else task.exception()
        if error is not None:
            raise error if isinstance(error, JobFailed) else JobFailed(str(error) or type(error).__name__)
        if self.why is not None:
            raise Stopped
        if task.cancelled():
            raise JobFailed("it was cancelled from inside")
        return task.result()

    def _cancel(self, why: Why) -> None:
        self.why = self.why or why
        if self._task is not None:
            self._task.cancel()


_REMOVED_AT_ONCE = 500
_ENDED = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]


def beat(opened: Opened, worker: str, carrying: Collection[str]) -> tuple[frozenset[str], dict[str, str]]:
    """Send a heartbeat; return the worker's jobs in the database, and the states of those that it lost."""
    opened.workers.beat(worker, len(carrying))
    mine = frozenset(each.workflow_id for each in _running(opened, executor_id=worker))
    gone = [id for id in carrying if id not in mine]
    # What is not there any more was cancelled and removed.
    others: dict[str, str] = dict.fromkeys(gone, "cancelled")
    if gone:
        for each in opened.client.list_workflows(workflow_ids=gone, load_input=False, load_output=False):
            status = status_of(each)
            if status is not None:
                others[each.workflow_id] = status.state
    return mine, others


def take_over(opened: Opened, timeout: float) -> list[str]:
    """Put the jobs of workers that are gone back into their queues, and return their names.

    A job that began a moment ago stays: its worker may have been away and be back soon.
    """
    workers, now = opened.workers.living()
    living = {worker.name for worker in workers}
    taken = []
    for each in _running(opened):
        executor, queue, since = each.executor_id, each.queue_name, each.dequeued_at
        if executor is None or queue is None or executor in living or since is None:
            continue
        if since < (now - timeout) * 1000 and opened.requeue(each.workflow_id, executor, queue):
            taken.append(each.workflow_id)
    return taken


def put_back(opened: Opened, worker: str, ids: Collection[str] | None = None) -> None:
    """Put the jobs of this worker back into the queues. That does not count as a death of the worker."""
    for each in _running(opened, executor_id=worker):
        if each.queue_name is None or (ids is not None and each.workflow_id not in ids):
            continue
        count = (each.attributes or {}).get(PUT_BACK, 0) + 1
        opened.client.update_workflow_attributes(each.workflow_id, {PUT_BACK: count}, merge=True)
        opened.requeue(each.workflow_id, worker, each.queue_name)


def tidy(opened: Opened, keep_days: float) -> int:
    """Remove Portico's workflows that ended long ago, some at a time; return how many."""
    _, now = opened.workers.living()
    before = datetime.fromtimestamp(now - keep_days * 86_400, UTC).isoformat()
    options: dict[str, Any] = {"limit": _REMOVED_AT_ONCE, "load_input": False, "load_output": False}
    found = opened.client.list_workflows(status=_ENDED, completed_before=before, **options)
    # A run whose process was killed has no end; another attempt at the run is another workflow.
    found += opened.client.list_workflows(status="PENDING", name=RUN_KIND, end_time=before, **options)
    ids = [each.workflow_id for each in found if each.name.startswith("portico.")]
    if ids:
        opened.client.delete_workflows(ids)
    opened.workers.sweep()
    return len(ids)


def remove_ended(opened: Opened, ids: Sequence[str]) -> None:
    for at in range(0, len(ids), _REMOVED_AT_ONCE):
        some = opened.client.list_workflows(
            workflow_ids=list(ids[at : at + _REMOVED_AT_ONCE]), status=_ENDED, load_input=False, load_output=False
        )
        if some:
            opened.client.delete_workflows([each.workflow_id for each in some])


def _running(opened: Opened, **filters: Any) -> list[Any]:
    return opened.client.list_workflows(
        status="PENDING", queues_only=True, load_input=False, load_output=False, **filters
    )


_log = logging.getLogger("portico_dbos")
_BEATS = 5
"""Heartbeats within the time after which a worker is gone."""
_TIDY_SECONDS = 3_600.0
_TURN = 0.005
"""Seconds between two checks of the jobs in DBOS's loop."""
_LOOKS = 1_000
"""Checks until DBOS must have written how a job ended."""
_PAUSE = 0.5
"""Seconds between two attempts to read from a database that is away."""


class Worker:
    """One worker of a queue. Methods run in the application's loop, or in DBOS's where their docstrings say so."""

    def __init__(
        self,
        carry_out: Mapping[str, Callable[[Job], Awaitable[Any]]],
        emit: Callable[[JobStatus], None] | None,
        database: Database,
        recordings: Recordings,
    ) -> None:
        self.name = ""
        self.kinds = list(carry_out)
        self._carry_out = dict(carry_out)
        self._emit = emit
        self._database = database
        self._recordings = recordings
        self._home = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._begun: set[str] = set()
        self._carrying: dict[str, Carrying] = {}
        self._lost: set[str] = set()
        self._strays: dict[str, float] = {}
        self._heard = time.monotonic()
        self._away = False
        self._lock = threading.Lock()
        self._ending = False

    @property
    def _settings(self) -> Any:
        return self._database.settings

    async def register(self, name: str) -> None:
        """Announce the worker before it takes jobs; ``name`` is that of DBOS's executor."""
        self.name = name
        await self._database.call(lambda opened: opened.workers.beat(self.name, 0))
        self._heard = time.monotonic()

    async def end(self) -> None:
        """Stop all jobs and wait until they have ended; nothing is put back yet."""
        with self._lock:
            self._ending = True
        while running := [each for each in list(self._carrying.values()) if each.runs]:
            await asyncio.gather(*(each.stop_and_wait("put back") for each in running))
            await asyncio.sleep(_TURN)
        # A job that ended by itself a moment ago may still be written as done.
        for _ in range(_LOOKS):
            if not self._carrying:
                break
            await asyncio.sleep(_TURN)

    async def leave(self) -> None:
        """Put back the worker's jobs and remove the worker."""

        def call(opened: Opened) -> None:
            put_back(opened, self.name)
            opened.workers.remove(self.name)

        try:
            await self._database.call(call)
        except StoreError as error:
            _log.warning("%s Others take the jobs of this worker when it has been silent for long enough.", error)

    async def carry_out(self, kind: str, body: str) -> str:
        """Carry out a job, inside of its workflow, and return its result. In DBOS's loop."""
        from dbos import DBOS

        task, id = asyncio.current_task(), DBOS.workflow_id
        if task is None or id is None:
            raise RuntimeError("a job is carried out inside of its workflow")
        self._begun.add(id)
        task.add_done_callback(lambda _: self._begun.discard(id))
        query: dict[str, Any] = {"workflow_ids": [id], "load_input": False, "load_output": False}
        found = await self._patiently(lambda opened: opened.client.list_workflows(**query))
        read = status_of(found[0]) if found else None
        if read is None or read.state == "cancelled":
            raise asyncio.CancelledError  # removed or cancelled since it was taken
        status = replace(read, state="running", worker=self.name)
        deaths = status.attempts - 1 - (found[0].attributes or {}).get(PUT_BACK, 0)
        given, failure = body_of(body), ""
        if given is None:
            failure = "The body of the job is not a JSON object, so it was not written by Portico."
        elif deaths >= self._settings.attempts:
            failure = f"It was given up: {deaths} workers were gone while they had it (`attempts` in [runner.dbos])."
        if given is None or failure:
            failed = replace(status, state="failed", error=failure)
            task.add_done_callback(lambda _: self._tell(failed))
            raise JobFailed(failure)
        job = Job(name_of(id), kind, given)

        async def load() -> Recorded:
            recorded, _ = await self._patiently(lambda opened: read_recorded(opened, job.name, into=id))
            return recorded

        recording = Recording(
            job.name, self._database.place, asyncio.get_running_loop(), contextvars.copy_context(), load
        )

        async def action() -> str:
            self._tell(status)
            with self._recordings.open(recording):
                result = await self._carry_out[kind](job)
            return json_text(result, "its result")

        carrying = Carrying(action, self._home, self._context)
        with self._lock:
            if self._ending:
                raise asyncio.CancelledError
            self._carrying[id] = carrying
        ended = replace(status, state="waiting")
        try:
            text = await carrying.result()
            ended = replace(status, state="done", result=json.loads(text))
        except JobFailed as error:
            ended = replace(status, state="failed", error=str(error))
            raise
        except Stopped as error:
            ended = replace(status, state="cancelled" if carrying.why == "cancelled" else "waiting")
            if carrying.why == "lost":
                self._lost.add(id)
            raise asyncio.CancelledError from error  # DBOS writes nothing then
        else:
            return text
        finally:
            # DBOS writes the outcome after this, in the same task.
            task.add_done_callback(lambda _: self._finish(id, carrying, ended))

    async def live(self) -> None:
        """Send heartbeats and look after the jobs, until cancelled. In DBOS's loop."""
        interval = min(1.0, self._settings.worker_timeout / _BEATS)
        watching = asyncio.ensure_future(self._watch(interval))
        next_look = next_tidy = 0.0
        try:
            while True:
                sent = time.monotonic()
                before = set(self._begun)
                try:
                    mine, others = await self._database.call(
                        lambda opened: beat(opened, self.name, list(self._carrying))
                    )
                    self._note_answer(sent)
                    await self._look_after(mine - before, others)
                    if sent >= next_look:
                        next_look = sent + self._settings.worker_timeout / 4
                        await self._take_over()
                    if sent >= next_tidy:
                        removed = await self._database.call(lambda opened: tidy(opened, self._settings.keep_days))
                        next_tidy = sent + (1.0 if removed else _TIDY_SECONDS)
                except StoreError as error:
                    self._note_silence(error)
                await asyncio.sleep(interval)
        finally:
            watching.cancel()

    async def _watch(self, interval: float) -> None:
        """Stop all jobs if the database was silent for too long: other workers take them."""
        while True:
            await asyncio.sleep(interval / 2)
            if time.monotonic() - self._heard > self._settings.worker_timeout:
                self._note_silence(None)
                for carrying in list(self._carrying.values()):
                    carrying.stop("lost")

    def _note_answer(self, sent: float) -> None:
        # The moment before it was sent: the database notes a later one, so other workers wait longer than this one.
        self._heard = sent
        if self._away:
            self._away = False
            _log.warning("%s answers again; the worker continues.", self._database.place)

    def _note_silence(self, error: StoreError | None) -> None:
        if not self._away:
            self._away = True
            said = error or f"{self._database.place} does not answer."
            _log.warning("%s The worker waits, and stops its jobs if that lasts.", said)

    async def _look_after(self, mine: frozenset[str], others: dict[str, str]) -> None:
        for id, state in others.items():
            carrying = self._carrying.get(id)
            if carrying is not None and carrying.runs:
                carrying.stop("cancelled" if state == "cancelled" else "lost")
        # Jobs stopped while the database was away, or taken by DBOS when the answer was lost.
        strays = mine - self._begun
        now = time.monotonic()
        self._strays = {id: self._strays.get(id, now) for id in strays}
        late = {id for id, since in self._strays.items() if now - since > self._settings.worker_timeout / 2}
        if back := late | (self._lost & strays):
            await self._database.call(lambda opened: put_back(opened, self.name, back))
        self._lost.clear()

    async def _take_over(self) -> None:
        timeout = self._settings.worker_timeout
        for id in await self._database.call(lambda opened: take_over(opened, timeout)):
            _log.warning("The worker of the job %r is gone; it waits for another.", name_of(id))

    async def _patiently(self, read: Callable[[Opened], T]) -> T:
        """Read from the database. While it is away, the job waits and does not fail."""
        while True:
            try:
                return await self._database.call(read)
            except StoreError as error:
                self._note_silence(error)
                await asyncio.sleep(_PAUSE)

    def _finish(self, id: str, carrying: Carrying, status: JobStatus) -> None:
        if self._carrying.get(id) is carrying:
            del self._carrying[id]
        self._tell(replace(status, updated_at=datetime.now(UTC).isoformat(timespec="milliseconds")))

    def _tell(self, status: JobStatus) -> None:
        """Call `emit` in the application's loop; from any loop."""
        if self._emit is None:
            return
        if asyncio.get_running_loop() is self._home:
            self._call_emit(self._emit, status)
        else:
            with suppress(RuntimeError):  # the application's loop has ended
                self._home.call_soon_threadsafe(self._call_emit, self._emit, status, context=self._context)

    def _call_emit(self, emit: Callable[[JobStatus], None], status: JobStatus) -> None:
        try:
            emit(status)
        except Exception:  # noqa: BLE001 - a failing screen must not fail the job
            _log.exception("`emit` failed for the job %r.", status.name)
