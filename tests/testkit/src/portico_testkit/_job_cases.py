"""Jobs with which queues are tried, and what tests do with them: be a worker, and wait until they are so far."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import pytest

from portico.ports import Job, JobQueue, JobStatus
from portico_testkit.tasks import in_time

__all__ = [
    "ENDED",
    "NOT_JSON",
    "ODD_TEXTS",
    "CarryOut",
    "Paused",
    "at_work",
    "echo",
    "filled",
    "is_moment",
    "known",
    "there_are_workers",
    "until",
]

CarryOut: TypeAlias = Callable[[Job], Awaitable[Any]]

ENDED: Collection[str] = ("done", "failed", "cancelled")

ODD_TEXTS = (
    "a b",
    " a",
    "a ",
    "a",
    "A",
    "ключ",
    "e\u0301",
    "\u00e9",
    "🧦",
    "it's",
    "'; DROP TABLE jobs; --",
    '"quoted" \\ %s $1 :name {x} ?',
    "../up",
    "a/b",
    "a:b",
    "a-b",
    "line\nline",
    "\x00",
    "\ud800",
    "",
    ".",
    "x" * 1_000,
)

NOT_JSON: tuple[Any, ...] = ({"a": object()}, {"a": float("nan")}, {"a": {1, 2}}, {"a": [{"b": b"bytes"}]})

_PAUSE = 0.01
"""Seconds between two looks."""

_LONGEST = 60.0
"""Seconds in which a worker that is cancelled has to end."""


async def echo(job: Job) -> Any:
    """Give the body of a job as its result."""
    return dict(job.body)


class Paused:
    """Carries out jobs that go on until they are let go, and notes what becomes of each."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.ended: list[str] = []
        self.cancelled: list[str] = []
        self.go = asyncio.Event()

    async def __call__(self, job: Job) -> str:
        """Hold a job until ``go`` is set, and give its name."""
        self.began.append(job.name)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.append(job.name)
            raise
        self.ended.append(job.name)
        return job.name

    async def holds(self, names: Collection[str], seconds: float) -> None:
        """Wait until each of these has begun."""

        async def begun() -> None:
            while not set(names) <= set(self.began):
                await asyncio.sleep(_PAUSE)

        try:
            await in_time(begun(), "jobs were not begun", seconds=seconds)
        except pytest.fail.Exception as error:
            pytest.fail(f"{error}: of {sorted(names)}, {sorted(self.began)} were")


async def filled(noted: Sequence[object], count: int = 1) -> None:
    """Wait until so many things are noted."""
    while len(noted) < count:
        await asyncio.sleep(_PAUSE)


@asynccontextmanager
async def at_work(
    queue: JobQueue, carry_out: Mapping[str, CarryOut], *, emit: Callable[[JobStatus], None] | None = None
) -> AsyncIterator[asyncio.Task[None]]:
    """Have a worker at work within the block; fail unless it goes on until it is cancelled, and ends then."""
    working: asyncio.Task[None] = asyncio.ensure_future(queue.work(carry_out, emit=emit))
    try:
        yield working
    except pytest.fail.Exception:
        if working.done():
            _stopped(working)  # which is why the test waited in vain
        raise
    else:
        if working.done():
            _stopped(working)
    finally:
        working.cancel()
        await asyncio.wait([working], timeout=_LONGEST)
    assert working.done(), "a worker that was cancelled goes on"
    if not working.cancelled():
        _stopped(working)


async def until(
    queue: JobQueue,
    names: Sequence[str],
    states: Collection[str] = ENDED,
    *,
    seconds: float,
    worker: asyncio.Task[None] | None = None,
) -> list[JobStatus]:
    """Return how jobs are when each is in one of these states; fail when it takes longer, or the worker has stopped."""
    seen: list[JobStatus | None] = []

    async def look() -> None:
        while True:
            seen[:] = await queue.status(names)
            if all(each is not None and each.state in states for each in seen):
                return
            if worker is not None and worker.done():
                _stopped(worker)
            await asyncio.sleep(_PAUSE)

    try:
        await in_time(look(), f"not all jobs were {' or '.join(states)}", seconds=seconds)
    except pytest.fail.Exception as error:
        are = ", ".join("None" if each is None else f"{each.name!r} {each.state}" for each in seen[:10])
        pytest.fail(f"{error}: they are {are or 'not told'}")
    return [each for each in seen if each is not None]


async def known(queue: JobQueue, name: str) -> JobStatus:
    """Return how a job is that the queue must know."""
    told = await queue.status([name])
    assert len(told) == 1, f"of one name, `status` told {len(told)}"
    assert told[0] is not None, f"the job {name!r} that was submitted is not known"
    return told[0]


async def there_are_workers(
    queue: JobQueue, count: int, *, seconds: float, complaint: Callable[[], str | None] = lambda: None
) -> None:
    """Wait until the queue tells of so many workers; fail when one that is elsewhere has a ``complaint``."""
    seen: list[str] = []

    async def look() -> None:
        while True:
            seen[:] = [worker.name for worker in await queue.workers()]
            if len(seen) == count:
                return
            said = complaint()
            assert said is None, f"the worker that is elsewhere stopped: {said}"
            await asyncio.sleep(_PAUSE)

    try:
        await in_time(look(), f"there were not {count} workers", seconds=seconds)
    except pytest.fail.Exception as error:
        pytest.fail(f"{error}, but {seen}")


def is_moment(text: str) -> bool:
    """Tell whether a text is a moment in UTC, in ISO 8601."""
    try:
        return datetime.fromisoformat(text).utcoffset() == timedelta(0)
    except ValueError:
        return False


def _stopped(worker: asyncio.Task[None]) -> None:
    error = None if worker.cancelled() else worker.exception()
    why = "returned" if error is None else f"raised {type(error).__name__}: {error}"
    raise AssertionError(f"a worker stopped that nobody cancelled: `work` {why}") from error
