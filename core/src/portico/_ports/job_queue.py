"""The JobQueue port: work that is handed to other processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from portico._jobs import Job, JobStatus, Worker


class JobQueue(Protocol):
    """Hands jobs to worker processes. Inherit from it to have the optional members.

    Behaviour: a job is durable when `submit` returns. One worker at a time carries it out; where that worker is gone,
    another begins it again (at least once). A job that has ended stays so. Bodies and results are JSON. Calls may run
    concurrently and from any process.
    Errors: ``StoreError`` when the queue cannot be reached; ``ValueError`` for a body that is not JSON.
    """

    name: str

    async def submit(self, jobs: Sequence[Job]) -> None:
        """Put jobs into the queue; a job with a known name does not begin again."""
        ...

    async def work(
        self,
        carry_out: Mapping[str, Callable[[Job], Awaitable[Any]]],
        *,
        emit: Callable[[JobStatus], None] | None = None,
    ) -> None:
        """Be a worker for these kinds of jobs until cancelled; jobs under way are then cancelled and wait again.

        An error of ``carry_out`` is the job's failure; ``emit`` is called for each job that begins or ends here.
        """
        ...

    async def status(self, names: Sequence[str], *, body: bool = False) -> list[JobStatus | None]:
        """Return the state of each job, in that order; None for an unknown one. ``body`` adds the bodies."""
        ...

    async def jobs(
        self, kind: str, *, states: Collection[str] = ("waiting", "running"), limit: int = 100, body: bool = False
    ) -> list[JobStatus]:
        """Return jobs of a kind that are in one of these states, the newest first; ``body`` as above."""
        ...

    async def cancel(self, names: Sequence[str]) -> None:
        """Remove waiting jobs from the queue, and stop running ones; ended jobs stay as they are."""
        ...

    async def workers(self) -> list[Worker]:
        """Return the workers that are at work, by their heartbeats."""
        ...

    async def forget(self, names: Sequence[str]) -> None:
        """Remove jobs that have ended, with their bodies and results; optional."""
