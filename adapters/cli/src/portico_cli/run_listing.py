"""The runs that there are: those of the journal, and those that wait in the queue of a runner with workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from portico.errors import StoreError
from portico_cli.run_entries import RunEntry, read_run, time_of

if TYPE_CHECKING:
    from datetime import datetime

    from portico.jobs import JobState, JobStatus, Worker
    from portico.ports.job_queue import JobQueue
    from portico.ports.run_store import RunStore

__all__ = ["Listing", "list_runs", "read_with_job", "waiting_names", "worker_words", "workers_to_json"]

_UNENDED = frozenset({"running", "interrupted", "uncertain"})
"""What a run is whose journal has no outcome."""
_LISTED: tuple[JobState, ...] = ("waiting", "running", "failed", "cancelled")
"""The states of jobs that may have no run in the journal."""
_MOST_WAITING = 10_000


@dataclass(frozen=True, slots=True)
class Listing:
    """Runs, and the workers that are at work; those are None where the runner has no queue.

    ``problem`` says why the queue cannot be read; the runs are those of the journal then.
    """

    runs: Sequence[RunEntry]
    workers: Sequence[Worker] | None = None
    problem: str = ""


async def list_runs(store: RunStore, queue: JobQueue | None, limit: int, name: str | None = None) -> Listing:
    """Read the newest runs, the newest first, or the one of that name."""
    names = [name] if name is not None else (await store.runs())[-limit:]
    jobs: dict[str, JobStatus] = {}
    workers: Sequence[Worker] | None = None
    problem = ""
    if queue is not None:
        from portico.pursuits.submitting import PURSUIT

        try:
            if name is None:
                others = await queue.jobs(PURSUIT, states=_LISTED, limit=limit)
                names = list(dict.fromkeys([*names, *(each.name for each in others)]))
            jobs = {each.name: each for each in await queue.status(names) if each is not None}
            workers = await queue.workers()
        except StoreError as error:
            problem = str(error)
    runs = [_with_job(await read_run(store, each), jobs.get(each)) for each in names]
    runs.reverse()
    if jobs:
        runs.sort(key=_begun, reverse=True)
    return Listing(runs[:limit], workers, problem)


async def read_with_job(store: RunStore, job: JobStatus) -> RunEntry:
    """Read the run of a job."""
    return _with_job(await read_run(store, job.name), job)


async def waiting_names(queue: JobQueue | None) -> list[str]:
    """Return the names of the runs that wait in the queue or are just taken from it, the oldest first."""
    if queue is None:
        return []
    from portico.pursuits.submitting import PURSUIT

    return [each.name for each in await queue.jobs(PURSUIT, states=_LISTED, limit=_MOST_WAITING)][::-1]


def worker_words(workers: Sequence[Worker]) -> str:
    """Say on one line which workers are at work.

    >>> from portico.jobs import Worker
    >>> worker_words([Worker("db1:7:ab", "", "", 3), Worker("db2:8:cd", "", "")])
    '2 workers: db1:7 has 3 jobs, db2:8 has none'
    """
    if not workers:
        return "No worker is at work; `portico worker` starts one."
    return f"{len(workers)} worker{'' if len(workers) == 1 else 's'}: {', '.join(_worker_words(workers))}"


def workers_to_json(workers: Sequence[Worker]) -> list[dict[str, Any]]:
    """Return workers as JSON values."""
    return [{"name": each.name, "since": each.since, "seen": each.seen, "jobs": each.jobs} for each in workers]


def _worker_words(workers: Sequence[Worker]) -> Iterator[str]:
    from portico_cli.job_places import host_of

    for each in workers:
        has = "none" if not each.jobs else f"{each.jobs} job{'' if each.jobs == 1 else 's'}"
        yield f"{host_of(each.name)} has {has}"


def _with_job(entry: RunEntry, job: JobStatus | None) -> RunEntry:
    """Return the run as both tell: what has not ended by its journal is as its job is."""
    if job is None:
        return entry
    state, problem = entry.state, entry.problem
    if state in _UNENDED and (job.state != "done" or entry.run_state is None):
        state, problem = job.state, job.error or ""
    return replace(entry, state=state, problem=problem, job=job)


def _begun(entry: RunEntry) -> tuple[datetime, str]:
    if entry.job is not None and entry.job.submitted_at:
        return time_of(entry.job.submitted_at), entry.name
    return time_of(entry.run_state.started_at if entry.run_state is not None else ""), entry.name
