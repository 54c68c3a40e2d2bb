"""Durable runs on DBOS."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from portico_dbos._database import Database
from portico_dbos._errors import closed, mapped_errors
from portico_dbos._names import attempt_id, id_of
from portico_dbos._process import PROCESS, Begun, RunningDbos
from portico_dbos._recording import Recorded, Recording
from portico_dbos._recordings import Recordings, read_recorded

T = TypeVar("T")


class DbosRuns:
    """The DurableRuns port on DBOS: each attempt at a run is a workflow, each action a step of it.

    An attempt begins with what all attempts before it recorded. Made by `DbosRunner`.
    """

    def __init__(self, owner: object, database: Database, recordings: Recordings) -> None:
        self._owner = owner
        self._database = database
        self._recordings = recordings

    async def run(self, run: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do all the work of a run, and record what it executes meanwhile; in a job of that name, go on in it."""
        id_of(run, "name of a run")
        if self._recordings.get(run) is not None:
            return await work()
        self._database.hold(self._owner)
        ended = object()
        running = await self._running(ended)
        try:
            recorded, number = await self._database.call(lambda opened: read_recorded(opened, run))
            begun = await self._begin(running, run, number)
            failure: str | None = "it was cancelled"
            try:
                with self._recordings.open(self._recording(run, running, begun, recorded)):
                    result = await work()
                failure = None
                return result
            except Exception as error:
                failure = type(error).__name__
                raise
            finally:
                await self._end(running, begun, failure)
        finally:
            running.uses.discard(ended)

    async def recorded(self, run: str) -> Mapping[str, Any]:
        """Return the results of the run's actions that are recorded, by name; none for an unknown run."""
        id_of(run, "name of a run")
        self._database.hold(self._owner)
        recorded, _ = await self._database.call(lambda opened: read_recorded(opened, run))
        return {name: json.loads(text) for name, text in recorded.results.items()}

    async def _running(self, run: object) -> RunningDbos:
        """Return DBOS, launched; a caller that gives up meanwhile holds nothing of it."""
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
            begin = running.begin(attempt_id(run, number), run)
            try:
                with mapped_errors(self._database.place):
                    try:
                        return await self._there(running, begin)
                    except dbos_errors.DBOSWorkflowIDInUseError:
                        number += 1  # another process began one at this moment; the journal's lease decides
            except RuntimeError as error:
                begin.close()
                raise closed(self._database.place) from error

    async def _end(self, running: RunningDbos, begun: Begun, failure: str | None) -> None:
        end = begun.ended(failure)
        try:
            await self._there(running, end)
        except RuntimeError:
            end.close()  # the runner was closed; the workflow is left without an end, and nobody begins it again

    async def _there(self, running: RunningDbos, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, running.loop))

    def _recording(self, run: str, running: RunningDbos, begun: Begun, recorded: Recorded) -> Recording:
        async def load() -> Recorded:
            return Recorded(recorded.results)

        return Recording(run, self._database.place, running.loop, begun.context, load)
