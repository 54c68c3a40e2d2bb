"""A queue of jobs that forgets everything with the process."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from portico.ports import Job, JobQueue, JobStatus, Worker

__all__ = ["MemoryJobQueue"]


class MemoryJobQueue(JobQueue):
    """Hand jobs to workers of this process; each call of `work` is one, with ``concurrency`` jobs at a time.

    >>> async def shout(job):
    ...     return job.body["text"].upper()
    >>> async def submitted():
    ...     queue = MemoryJobQueue()
    ...     await queue.submit([Job("j1", "shout", {"text": "hello"})])
    ...     working = asyncio.create_task(queue.work({"shout": shout}))
    ...     await queue.ended(["j1"])
    ...     working.cancel()
    ...     return (await queue.status(["j1"]))[0].result
    >>> asyncio.run(submitted())
    'HELLO'

    `silence` takes a worker for gone, as that of a process that was killed or cut off. ``clock`` gives seconds since
    1970 for the times that are told. Each call gives way to other tasks first, as one to a server would.
    """

    name = "memory"

    def __init__(self, *, concurrency: int = 4, clock: Callable[[], float] = time.time) -> None:
        self._concurrency = concurrency
        self._clock = clock
        self._entries: dict[str, _Entry] = {}
        self._workers: dict[str, _Worker] = {}
        self._waiting: list[_Waiter] = []

    async def submit(self, jobs: Sequence[Job]) -> None:
        """Put jobs into the queue, those that are not there yet; ``ValueError`` for a body that is not JSON."""
        bodies = [(job, _written(dict(job.body), f"The body of the job {job.name!r}")) for job in jobs]
        await asyncio.sleep(0)
        now = self._now()
        for job, body in bodies:
            status = JobStatus(job.name, job.kind, "waiting", submitted_at=now, updated_at=now)
            self._entries.setdefault(job.name, _Entry(status, body))
        self._changed()

    async def work(
        self,
        carry_out: Mapping[str, Callable[[Job], Awaitable[Any]]],
        *,
        emit: Callable[[JobStatus], None] | None = None,
    ) -> None:
        """Carry out jobs of these kinds until cancelled; those under way wait again then."""
        await asyncio.sleep(0)
        worker = _Worker(f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}", self._now())
        self._workers[worker.name] = worker
        try:
            while True:
                changed = self._waiter()
                for entry in self._taken(worker, carry_out):
                    task = asyncio.create_task(self._carried_out(worker, entry, carry_out[entry.status.kind], emit))
                    worker.tasks[entry.status.name] = task
                    task.add_done_callback(partial(self._left, worker, entry.status.name))
                await changed.wait()
                if worker.broken is not None:
                    raise worker.broken
        finally:
            for task in (ending := list(worker.tasks.values())):
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)
            if not worker.silent:
                self._give_back(worker)
            del self._workers[worker.name]

    async def status(self, names: Sequence[str], *, body: bool = False) -> list[JobStatus | None]:
        """Return how each job is; None for an unknown one."""
        await asyncio.sleep(0)
        return [self._entries[name].told(body=body) if name in self._entries else None for name in names]

    async def jobs(
        self, kind: str, *, states: Collection[str] = ("waiting", "running"), limit: int = 100, body: bool = False
    ) -> list[JobStatus]:
        """Return the newest jobs of a kind that are in one of these states, the newest first."""
        await asyncio.sleep(0)
        found = [each for each in self._entries.values() if each.status.kind == kind and each.status.state in states]
        return [each.told(body=body) for each in found[::-1][:limit]]

    async def cancel(self, names: Sequence[str]) -> None:
        """Take jobs that wait out of the queue, and stop those that run."""
        await asyncio.sleep(0)
        for name in names:
            entry = self._entries.get(name)
            if entry is None or entry.status.state not in ("waiting", "running"):
                continue
            worker = self._workers.get(entry.status.worker)
            self._note(entry, state="cancelled")
            if worker is not None and not worker.silent and name in worker.tasks:
                worker.tasks[name].cancel()
        self._changed()

    async def workers(self) -> list[Worker]:
        """Return those at work that are not silent."""
        await asyncio.sleep(0)
        heard = [worker for worker in self._workers.values() if not worker.silent]
        return [Worker(worker.name, worker.since, self._now(), len(worker.tasks)) for worker in heard]

    async def ended(self, names: Sequence[str]) -> list[JobStatus]:
        """Wait until these jobs have ended in any way, and return how they are; for tests."""
        while True:
            changed = self._waiter()
            told = [each for each in await self.status(names) if each is not None]
            if len(told) == len(names) and all(each.state not in ("waiting", "running") for each in told):
                return told
            await changed.wait()

    def silence(self, worker: str) -> None:
        """Hear no more of a worker, as of a process that was killed or cut off: its jobs wait for another one.

        What it has under way goes on all the same, and what comes of that is nobody's any more.
        """
        self._workers[worker].silent = True
        self._give_back(self._workers[worker])

    def hear(self, worker: str) -> None:
        """Hear of a worker again: it stops what it had under way, which may be another's now, and goes on."""
        for task in self._workers[worker].tasks.values():
            task.cancel()
        self._workers[worker].silent = False
        self._changed()

    def _taken(self, worker: _Worker, kinds: Collection[str]) -> list[_Entry]:
        """Return the jobs that a worker begins now, the oldest first."""
        if worker.silent:
            return []
        free = self._concurrency - len(worker.tasks)
        able = [
            entry
            for name, entry in self._entries.items()
            if entry.status.state == "waiting" and entry.status.kind in kinds and name not in worker.tasks
        ]
        for entry in able[: max(free, 0)]:
            self._note(entry, state="running", worker=worker.name, attempts=entry.status.attempts + 1)
        return able[: max(free, 0)]

    async def _carried_out(
        self,
        worker: _Worker,
        entry: _Entry,
        carry_out: Callable[[Job], Awaitable[Any]],
        emit: Callable[[JobStatus], None] | None,
    ) -> None:
        attempt = entry.status.attempts
        self._tell(entry, emit)
        job = Job(entry.status.name, entry.status.kind, json.loads(entry.body))
        ended: dict[str, Any] = {"state": "done"}
        result = "null"
        try:
            result = _written(await carry_out(job), f"The result of the job {job.name!r}")
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            ended = {"state": "waiting"} if task and task.cancelling() else _failure(error)
        except Exception as error:
            ended = _failure(error)
        if worker.silent or (entry.status.worker, entry.status.attempts) != (worker.name, attempt):
            return  # it is another worker's now, or will be
        if entry.status.state == "running":  # nobody has cancelled it
            entry.result = result
            self._note(entry, **ended)
            self._changed()
        self._tell(entry, emit)

    def _give_back(self, worker: _Worker) -> None:
        for entry in self._entries.values():
            if entry.status.state == "running" and entry.status.worker == worker.name:
                self._note(entry, state="waiting")
        self._changed()

    def _left(self, worker: _Worker, name: str, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and worker.broken is None:
            worker.broken = task.exception()  # of `emit`: what carries out jobs may fail
        worker.tasks.pop(name, None)
        self._changed()

    def _tell(self, entry: _Entry, emit: Callable[[JobStatus], None] | None) -> None:
        if emit is not None:
            emit(entry.told())

    def _note(self, entry: _Entry, **changes: Any) -> None:
        entry.status = replace(entry.status, updated_at=self._now(), **changes)

    def _now(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).isoformat()

    def _waiter(self) -> _Waiter:
        self._waiting.append(_Waiter())
        return self._waiting[-1]

    def _changed(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.wake()


@dataclass(slots=True)
class _Entry:
    status: JobStatus
    body: str
    result: str = "null"

    def told(self, *, body: bool = False) -> JobStatus:
        return replace(self.status, result=json.loads(self.result), body=json.loads(self.body) if body else None)


@dataclass(slots=True)
class _Worker:
    name: str
    since: str
    silent: bool = False
    broken: BaseException | None = None
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)


class _Waiter:
    """Somebody who waits for a change, maybe in the loop of another thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()

    async def wait(self) -> None:
        await self._woken.wait()

    def wake(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._woken.set)


def _written(value: Any, what: str) -> str:
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{what} is not JSON: {error}.") from error
    return text


def _failure(error: BaseException) -> dict[str, Any]:
    return {"state": "failed", "error": str(error) or type(error).__name__}
