"""Where jobs are: the queue of the configured runner, if it has one, and the workers as people call them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from portico.ports.job_queue import JobQueue
    from portico.registration import Services

__all__ = ["host_of", "queue_of"]


def host_of(worker: str) -> str:
    """Return what people call a worker by: without what is drawn at random.

    >>> host_of("db1.example:4711:9f3a")
    'db1.example:4711'
    """
    return worker.rpartition(":")[0] or worker


def queue_of(services: Services) -> JobQueue | None:
    """Return the queue of the configured runner; None where it has none."""
    from portico.ports.runner import Runner
    from portico.runners import jobs_of

    return jobs_of(services.get(Runner)) if services.names(Runner) else None
