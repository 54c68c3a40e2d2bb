"""A job while this process carries it out: a task in the application's loop, for a workflow in DBOS's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Context
from typing import Literal

from portico.ports import Job

Why = Literal["cancelled", "lost", "put back"]
_AFTER: dict[Why, str] = {"cancelled": "cancelled", "lost": "waiting", "put back": "waiting"}


class JobFailed(Exception):
    """What DBOS is told of a job that failed: the text of the failure, and nothing else of it."""


class Stopped(Exception):
    """The job was stopped; ``state`` is how it is from now on."""

    def __init__(self, why: Why) -> None:
        super().__init__(why)
        self.why = why
        self.state = _AFTER[why]


class Carrying:
    """Carries out one job in the application's loop, and tells DBOS's loop what came of it."""

    def __init__(
        self, job: Job, action: Callable[[], Awaitable[str]], home: asyncio.AbstractEventLoop, context: Context
    ) -> None:
        self.job = job
        self._action = action
        self._home = home
        self._context = context
        self._there = asyncio.get_running_loop()
        self._ended: asyncio.Future[str] = self._there.create_future()
        self._task: asyncio.Task[str] | None = None
        self._why: Why | None = None

    async def result(self) -> str:
        """Carry it out and return its result as JSON; raises `JobFailed` or `Stopped`. In DBOS's loop."""
        self._home.call_soon_threadsafe(self._begin)
        try:
            return await self._ended
        except asyncio.CancelledError:
            self.stop("put back")
            raise

    @property
    def runs(self) -> bool:
        """Whether it has not ended yet."""
        return not self._ended.done()

    def stop(self, why: Why) -> None:
        """Cancel what it is at; from any loop."""
        with suppress(RuntimeError):  # the application's loop has ended, and all that ran in it
            self._home.call_soon_threadsafe(self._cancel, why)

    async def stopped(self, why: Why) -> None:
        """Cancel what it is at, and wait until it has ended. In the application's loop."""
        self._cancel(why)
        if self._task is not None:
            await asyncio.wait([self._task])

    def _begin(self) -> None:
        if self._why is not None:
            self._tell(Stopped(self._why))
            return
        self._task = self._home.create_task(self._run(), context=self._context.copy())
        self._task.add_done_callback(self._told)

    async def _run(self) -> str:
        return await self._action()

    def _cancel(self, why: Why) -> None:
        if self._why is None:
            self._why = why
        if self._task is not None:
            self._task.cancel()

    def _told(self, task: asyncio.Task[str]) -> None:
        if task.cancelled():
            # Nobody wanted it to end: it awaited something that was cancelled, and that is its failure.
            self._tell(JobFailed("it was cancelled from inside") if self._why is None else Stopped(self._why))
        elif (error := task.exception()) is not None:
            self._tell(error if isinstance(error, JobFailed) else JobFailed(_text(error)))
        elif self._why is not None:
            self._tell(Stopped(self._why))
        else:
            self._tell(task.result())

    def _tell(self, outcome: str | Exception) -> None:
        def settle() -> None:
            if self._ended.done():
                return
            if isinstance(outcome, Exception):
                self._ended.set_exception(outcome)
            else:
                self._ended.set_result(outcome)

        with suppress(RuntimeError):  # DBOS's loop has ended; the job is put back
            self._there.call_soon_threadsafe(settle)


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
