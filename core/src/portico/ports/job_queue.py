"""The JobQueue port: work that is handed to other processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from portico.jobs import Job, JobState, JobStatus, Worker

__all__ = ["Job", "JobQueue", "JobState", "JobStatus", "Worker"]


class JobQueue(Protocol):
    """Hands jobs to worker processes, on this machine or on others.

    Behaviour: a job is durable when `submit` returns. One worker at a time carries it out; where that worker is gone,
    another begins it again: at least once. What ended stays ended. Bodies and results are JSON. Calls may run
    concurrently and from any process. A queue that inherits from this class has the optional members.
    Errors: ``StoreError`` when the queue cannot be reached; ``ValueError`` for a body that is not JSON.
    """

    name: str
    one_machine: bool = True
    """Optional: False where workers may be on other machines."""

    async def submit(self, jobs: Sequence[Job]) -> None:
        """Put jobs into the queue; one whose name is there already is that one, and not begun again."""
        ...

    async def work(
        self,
        carry_out: Mapping[str, Callable[[Job], Awaitable[Any]]],
        *,
        emit: Callable[[JobStatus], None] | None = None,
    ) -> None:
        """Be a worker for these kinds of jobs until cancelled; jobs under way are then cancelled and wait again.

        What ``carry_out`` raises is the job's failure; ``emit`` is called for each that begins and ends here.
        """
        ...

    async def status(self, names: Sequence[str], *, body: bool = False) -> list[JobStatus | None]:
        """Return how each job is, in that order; None for an unknown one. What was submitted only with ``body``."""
        ...

    async def jobs(
        self, kind: str, *, states: Collection[JobState] = ("waiting", "running"), limit: int = 100, body: bool = False
    ) -> list[JobStatus]:
        """Return the newest jobs of a kind that are in one of these states, the newest first; ``body`` as above."""
        ...

    async def cancel(self, names: Sequence[str]) -> None:
        """Take jobs that wait out of the queue, and stop those that run; what has ended stays as it is."""
        ...

    async def workers(self) -> list[Worker]:
        """Return the workers that are at work, as far as their heartbeats tell."""
        ...

    async def forget(self, names: Sequence[str]) -> None:
        """Remove jobs that have ended, with their bodies and results; optional."""
