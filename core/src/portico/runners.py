"""What a runner can do beside executing actions: the one place that asks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portico.errors import UnsupportedOption

if TYPE_CHECKING:
    from portico.ports.durable_runs import DurableRuns
    from portico.ports.job_queue import JobQueue
    from portico.ports.runner import Runner

__all__ = ["durable_of", "jobs_of", "require_jobs"]


def jobs_of(runner: Runner | None) -> JobQueue | None:
    """Return the queue of a runner's worker processes; None where it has none, or there is no runner."""
    jobs: JobQueue | None = getattr(runner, "jobs", None)
    return jobs


def durable_of(runner: Runner | None) -> DurableRuns | None:
    """Return a runner's record of what it executed; None where it keeps none, or there is no runner."""
    durable: DurableRuns | None = getattr(runner, "durable", None)
    return durable


def require_jobs(runner: Runner | None) -> JobQueue:
    """Return the queue of a runner's worker processes; ``UnsupportedOption`` where it has none.

    >>> require_jobs(None)
    Traceback (most recent call last):
    portico.errors.UnsupportedOption: There is no runner. Set `use` under [runner] to one that has workers.
    """
    jobs = jobs_of(runner)
    if jobs is not None:
        return jobs
    who = "There is no runner" if runner is None else f"The runner {runner.name!r} has no workers"
    raise UnsupportedOption(f"{who}. Set `use` under [runner] to one that has workers.")
