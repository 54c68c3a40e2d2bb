"""What a runner has beside running: its queue of jobs, its record of results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portico.errors import UnsupportedOption

if TYPE_CHECKING:
    from portico._ports.durable_runs import DurableRuns
    from portico._ports.job_queue import JobQueue
    from portico._ports.runner import Runner


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
