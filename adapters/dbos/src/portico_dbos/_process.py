"""DBOS in this process, in its own thread.

DBOS is a singleton, hence the global state of this module. Runners on the same database share it. A runner on another
database gets ``StoreBusy`` until it is free.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import socket
import threading
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from portico.errors import StoreBusy, StoreError
from portico_dbos._database import Database
from portico_dbos._errors import closed_error, map_errors
from portico_dbos._names import APPLICATION, RUN_KIND, queue_of, workflow_of

T = TypeVar("T")
CarryOut = Callable[[str, str], Awaitable[str]]
"""Carries out a job in DBOS's loop: takes its kind and its body, returns its result. Both are JSON."""

_SECONDS_TO_STOP = 10.0


class Begun:
    """The running workflow of a run. In DBOS's loop."""

    def __init__(
        self, context: contextvars.Context, ended: asyncio.Future[str | None], task: asyncio.Task[Any] | None
    ) -> None:
        self.context = context
        self._ended = ended
        self._task = task

    def end(self, failure: str | None) -> None:
        """End the workflow; ``failure`` is the reason if the run did not end itself."""
        if not self._ended.done():
            self._ended.set_result(failure)

    async def end_and_wait(self, failure: str | None) -> None:
        """End the workflow and wait until that is written."""
        self.end(failure)
        if self._task is not None:
            await asyncio.wait([self._task])


class RunningDbos:
    """DBOS, launched on one database. It runs in ``loop``, which is not the application's.

    ``uses`` has a token for each run and for the worker: DBOS is not stopped while there is one.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.executor = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self.uses: set[object] = set()
        self.users: set[object] = set()
        self.loop = asyncio.new_event_loop()
        self._waiting: dict[str, asyncio.Future[Begun]] = {}
        self._carry_out: CarryOut | None = None
        self._no_more = threading.Event()
        self._takers: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._live, name="portico-dbos-loop", daemon=True)
        self._level = logging.getLogger("dbos").level

    def start(self) -> None:
        self.database.hold(self)
        self._thread.start()
        try:
            self._do(self._launch())
        except BaseException:
            self._end_loop()
            self.database.let_go(self)
            raise

    def stop(self) -> None:
        """Stop DBOS and cancel its tasks; blocks. What is recorded stays recorded."""
        from dbos import DBOS

        self.take_no_more()
        self._do(self._cancel_tasks())
        DBOS.destroy()
        self.join()
        self._end_loop()
        logging.getLogger("dbos").setLevel(self._level)
        self.database.let_go(self)

    def take(self, carry_out: CarryOut, kinds: Sequence[str]) -> None:
        """Take jobs of these kinds from now on; blocks. Raises ``StoreBusy`` if this process already is a worker."""
        from dbos import DBOS
        from dbos._queue import queue_worker_thread

        if self._carry_out is not None:
            raise StoreBusy(
                f"This process is a worker on {self.database.place} already. Begin another in its own process."
            )
        self._carry_out, self._no_more = carry_out, threading.Event()
        for kind in kinds:
            # Without DBOS's own bound: a job that a stopping worker puts back has not failed.
            DBOS.workflow(name=workflow_of(kind), max_recovery_attempts=None)(self._job(kind))
        for kind in kinds:
            # DBOS itself takes jobs from its launch to its end. A process may run DBOS before and after it is a worker.
            queue = DBOS.retrieve_queue(queue_of(kind))
            taker = threading.Thread(target=queue_worker_thread, args=(self._no_more, self._dbos, queue), daemon=True)
            taker.start()
            self._takers.append(taker)

    def take_no_more(self) -> None:
        """Take no more jobs; those under way continue."""
        self._no_more.set()
        self._carry_out = None

    def join(self) -> None:
        """Wait until no more jobs are taken; blocks."""
        while self._takers:
            self._takers.pop().join(_SECONDS_TO_STOP)

    async def begin(self, id: str, run: str) -> Begun:
        """Begin the workflow of a run. Raises ``DBOSWorkflowIDInUseError`` if there is one already. In its loop."""
        from dbos import DBOS, SetWorkflowID

        begun: asyncio.Future[Begun] = self.loop.create_future()
        self._waiting[id] = begun
        try:
            with SetWorkflowID(id, workflow_id_reuse_policy="reject"):
                await DBOS.start_workflow_async(self._run_goal, run)
            return await begun
        except asyncio.CancelledError:
            if begun.done() and not begun.cancelled():
                begun.result().end("it was cancelled")
            raise
        finally:
            self._waiting.pop(id, None)

    async def _launch(self) -> None:
        from dbos import DBOS, DBOSPortableJSONSerializer

        settings, opened = self.database.settings, self.database.open()
        self._dbos = DBOS(
            config={
                "name": APPLICATION,
                "system_database_engine": opened.engine,
                "dbos_system_schema": opened.schema,
                "serializer": DBOSPortableJSONSerializer(),
                "executor_id": self.executor,
                "application_version": f"portico-{settings.version}",
                "run_migrations": False,
                "use_listen_notify": False,
                "notification_listener_polling_interval_sec": 0.2,
                "scheduler_polling_interval_sec": 3_600.0,
                "enable_otlp": False,
                # Its errors are raised to the caller or logged here.
                "log_level": "CRITICAL",
            }
        )
        if DBOS.executor_id != self.executor:
            raise StoreError(
                "This process runs its own DBOS, and DBOS is there once in a process. Call `DBOS.destroy()` before "
                "the runner is used, or let another process run and work."
            )
        try:
            DBOS.listen_queues([])
            self._run_goal = DBOS.workflow(name=RUN_KIND, max_recovery_attempts=None)(self._make_run())
            DBOS.launch()
        except BaseException:
            DBOS.destroy()
            raise

    def _make_run(self) -> Callable[[str], Coroutine[Any, Any, None]]:
        async def run(run: str) -> None:
            """Wait until the run ends, as its workflow."""
            from dbos import DBOS

            begun = self._waiting.pop(DBOS.workflow_id or "", None)
            if begun is None or begun.done():
                raise asyncio.CancelledError  # the caller is in another process, or has given up
            ended: asyncio.Future[str | None] = self.loop.create_future()
            begun.set_result(Begun(contextvars.copy_context(), ended, asyncio.current_task()))
            failure = await ended
            if failure is not None:
                raise RuntimeError(failure)

        return run

    def _job(self, kind: str) -> Callable[[str], Coroutine[Any, Any, str]]:
        async def job(body: str) -> str:
            if self._carry_out is None:
                raise asyncio.CancelledError  # taken in the moment in which the worker ended, which puts it back
            return await self._carry_out(kind, body)

        return job

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in DBOS's loop. Raises ``StoreError`` if DBOS was stopped."""
        try:
            done = asyncio.run_coroutine_threadsafe(work, self.loop)
        except RuntimeError as error:
            work.close()
            raise closed_error(self.database.place) from error
        try:
            return await asyncio.wrap_future(done)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise closed_error(self.database.place) from error
        except Exception as error:
            if PROCESS.running is self:
                raise
            raise closed_error(self.database.place) from error

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    async def _cancel_tasks(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_SECONDS_TO_STOP)

    def _live(self) -> None:
        self.loop.run_forever()
        # Callers wait for what has begun meanwhile.
        self.loop.run_until_complete(self._cancel_tasks())
        self.loop.close()

    def _end_loop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_SECONDS_TO_STOP)


class Process:
    """Gives DBOS to the runners of this process. All calls block, so they are made in a thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: RunningDbos | None = None

    @property
    def running(self) -> RunningDbos | None:
        return self._running

    def use(self, user: object, database: Database, token: object) -> RunningDbos:
        """Return DBOS on a database, to be used until the token is removed from ``uses``.

        Raises ``StoreBusy`` while it is used on another database.
        """
        with self._lock, map_errors(database.place):
            running = self._running
            if running is not None and not running.database.same_as(database):
                if running.uses:
                    raise StoreBusy(
                        f"Another runner of this process is running or working on {running.database.place}, and DBOS "
                        f"is there once in a process. Use {database.place} when that has ended, or in another process."
                    )
                self._stop(running)
                running = None
            if running is None:
                # DBOS would wait for ever for a database that is away, so it is tried here first.
                with database.open().engine.connect():
                    pass
                running = RunningDbos(database)
                running.start()
                self._running = running
            running.users.add(user)
            running.uses.add(token)
            return running

    def leave(self, user: object) -> None:
        """Remove a runner; the last one stops DBOS."""
        with self._lock:
            running = self._running
            if running is not None and user in running.users:
                running.users.discard(user)
                if not running.users:
                    self._stop(running)

    def _stop(self, running: RunningDbos) -> None:
        self._running = None
        running.stop()


PROCESS = Process()
"""The one of this process; it opens nothing by itself."""
