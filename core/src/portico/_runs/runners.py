"""What a runner has beside running: its queue of jobs, its record of results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from portico.errors import UnsupportedOption

if TYPE_CHECKING:
    from portico._ports.job_queue import JobQueue
    from portico._ports.runner import Runner


def require_jobs(runner: Runner | None) -> JobQueue:
    """Return the queue of a runner's worker processes; ``UnsupportedOption`` where it has none.

    >>> require_jobs(None)
    Traceback (most recent call last):
    portico.errors.UnsupportedOption: There is no runner. Set `use` under [runner] to one that has workers.
    """
    if runner is not None and runner.jobs is not None:
        return runner.jobs
    who = "There is no runner" if runner is None else f"The runner {runner.name!r} has no workers"
    raise UnsupportedOption(f"{who}. Set `use` under [runner] to one that has workers.")
