"""Cancel a piece of work at every place where it, or a task that it has begun, waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any

MOST_PLACES = 5_000
PATIENCE = 30


class _Watched(Coroutine[Any, Any, Any]):
    """A coroutine that says when it waits."""

    def __init__(self, work: Coroutine[Any, Any, Any], waits: Callable[[], None]) -> None:
        self._work, self._waits = work, waits

    def send(self, value: Any) -> Any:
        waits_for = self._work.send(value)
        self._waits()
        return waits_for

    def throw(self, *given: Any) -> Any:
        return self._work.throw(*given)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return repr(self._work)


async def cancelled_everywhere(make: Callable[[], Awaitable[Any]], check: Callable[[int], Awaitable[Any]]) -> int:
    """Do the work again and again, cancelled at its first wait, its second, and so on, until it comes to its end.

    Waits of tasks that the work begins count too. After each time no task is left, and ``check`` is awaited with the
    number of the place. Returns how many places there are. What the work raises besides the cancellation is raised.
    """
    for place in range(1, MOST_PLACES):
        before = _tasks()
        cancelled = await cancelled_at(make, place)
        for _ in range(200):
            if not (left := _tasks() - before):
                break
            await asyncio.sleep(0.001)
        assert not left, f"cancelled at wait {place}, it leaves {left}"
        await check(place)
        if not cancelled:
            return place - 1
    raise AssertionError(f"it waits more than {MOST_PLACES} times")


async def cancelled_at(make: Callable[[], Awaitable[Any]], place: int) -> bool:
    """Do the work, cancelled at that wait of it or of a task of it; tell whether it came so far."""
    waits = 0

    async def work() -> Any:
        return await make()

    def wait() -> None:
        nonlocal waits
        waits += 1
        if waits == place:
            task.cancel()

    with _watching(wait):
        task = asyncio.create_task(work())
        await asyncio.wait([task], timeout=PATIENCE)
    assert task.done(), f"cancelled at wait {place}, it does not end: {task}"
    if task.cancelled():
        return True
    task.result()
    assert waits < place, f"cancelled at wait {place}, it goes on"
    return False


@contextmanager
def _watching(waits: Callable[[], None]) -> Generator[None]:
    loop = asyncio.get_running_loop()

    def begin(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        if not _is_of_a_server(work):
            work = _Watched(work, waits)
        return asyncio.Task(work, loop=loop, **options)

    loop.set_task_factory(begin)
    try:
        yield
    finally:
        loop.set_task_factory(None)


def _tasks() -> set[asyncio.Task[Any]]:
    return {task for task in asyncio.all_tasks() if not _is_of_a_server(task.get_coro())}


def _is_of_a_server(work: object) -> bool:
    """Tell whether a test's own server in this loop does this."""
    return "_serve" in repr(work)
