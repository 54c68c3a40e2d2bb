"""A runner that records what it executes, as long as the process is there."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from portico.ports import JobQueue, Runner

__all__ = ["MemoryDurableRunner", "MemoryDurableRuns"]

T = TypeVar("T")


class MemoryDurableRuns:
    """Keep the results of a run's actions; `MemoryDurableRunner` puts them here.

    ``record`` is what is kept, as JSON texts by run and name: give one to two of them, and the second is to the first
    as a process that comes after another one.
    """

    def __init__(self, record: dict[str, dict[str, str]] | None = None) -> None:
        self.record: dict[str, dict[str, str]] = {} if record is None else record
        self._run: Counter[str] = Counter()

    async def run(self, run: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do the work of a run, and record what is executed of it meanwhile."""
        await asyncio.sleep(0)
        self._run[run] += 1
        try:
            return await work()
        finally:
            self._run[run] -= 1

    async def recorded(self, run: str) -> Mapping[str, Any]:
        """Return the results that are recorded of a run, by the names of its actions."""
        await asyncio.sleep(0)
        return {name: json.loads(text) for name, text in self.record.get(run, {}).items()}

    def is_run(self, run: str) -> bool:
        """Tell whether what is executed of a run is recorded now."""
        return self._run[run] > 0


class MemoryDurableRunner(Runner):
    """Execute actions here; within `durable.run` of their run, record them and execute none a second time.

    >>> async def run():
    ...     runner, calls = MemoryDurableRunner(), []
    ...     async def action():
    ...         calls.append("s1")
    ...         return {"at": len(calls)}
    ...     for _ in range(2):
    ...         await runner.durable.run("r", lambda: runner.execute("r", "s1", action))
    ...     return calls, await runner.durable.recorded("r")
    >>> asyncio.run(run())
    (['s1'], {'s1': {'at': 1}})

    ``jobs`` is the queue that it has, if any, such as a `portico_testkit.fakes.job_queue.MemoryJobQueue`.
    """

    name = "memory"
    durable: MemoryDurableRuns

    def __init__(self, *, record: dict[str, dict[str, str]] | None = None, jobs: JobQueue | None = None) -> None:
        self.durable = MemoryDurableRuns(record)
        self.jobs = jobs

    async def execute(self, run: str, name: str, action: Callable[[], Awaitable[Any]]) -> Any:
        """Return what is recorded of the action, or execute it; ``ValueError`` for a result that is not JSON."""
        if not self.durable.is_run(run):
            return await action()
        await asyncio.sleep(0)
        done = self.durable.record.get(run, {})
        if name not in done:
            result = await action()
            done = self.durable.record.setdefault(run, {})
            try:
                done[name] = json.dumps(result, allow_nan=False)
            except (TypeError, ValueError, RecursionError) as error:
                raise ValueError(f"The result of {name} of the run {run} is not JSON: {error}.") from error
        return json.loads(done[name])
