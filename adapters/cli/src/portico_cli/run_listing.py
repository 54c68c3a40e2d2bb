"""The runs that there are: those of the journal, and those that wait in the queue of a runner with workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from portico.errors import StoreError
from portico_cli.failures import Misused
from portico_cli.run_entries import RunEntry, read_run, time_of
from portico_cli.run_names import LAST, find_run

if TYPE_CHECKING:
    from datetime import datetime

    from portico.jobs import JobState, JobStatus, Worker
    from portico.ports.job_queue import JobQueue
    from portico.ports.run_store import RunStore

__all__ = ["Listing", "find_any", "list_runs", "read_with_job", "worker_words", "workers_to_json"]

_UNENDED = frozenset({"running", "interrupted", "uncertain"})
"""What a run is whose journal has no outcome."""
_LISTED: tuple[JobState, ...] = ("waiting", "running", "failed", "cancelled")
"""The states of jobs that may have no run in the journal; one that is done has its run there."""
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
    goals: dict[str, str] = {}
    workers: Sequence[Worker] | None = None
    problem = ""
    if queue is not None:
        try:
            if name is None:
                goals = {each.name: _goal(each) for each in await _unjournalled(queue, limit, body=True)}
                names = list(dict.fromkeys([*names, *goals]))
            elif not await store.read(name):
                goals = {each.name: _goal(each) for each in await queue.status([name], body=True) if each is not None}
            jobs = {each.name: each for each in await queue.status(names) if each is not None}
            workers = await queue.workers()
        except StoreError as error:
            problem = str(error)
    runs = [_with_job(await read_run(store, each), jobs.get(each), goals.get(each, "")) for each in names]
    runs.reverse()
    if jobs:
        runs.sort(key=_begun, reverse=True)
    return Listing(runs[:limit], workers, problem)


async def read_with_job(store: RunStore, job: JobStatus, goal: str | None = None) -> RunEntry:
    """Read the run of a job that was submitted with this goal, or with the one that its body tells."""
    return _with_job(await read_run(store, job.name), job, _goal(job) if goal is None else goal)


async def find_any(store: RunStore, queue: JobQueue | None, wanted: str) -> str:
    """Return the run that is meant as `find_run` does, also one that only the queue has.

    Raises ``Misused`` where there is none, or more than one.
    """
    if queue is None:
        return await find_run(store, wanted)
    try:
        if wanted == LAST:
            return await find_run(store, wanted, [each.name for each in await _unjournalled(queue, 1)])
        try:
            return await find_run(store, wanted)
        except Misused:
            return await find_run(store, wanted, [each.name for each in await _unjournalled(queue)])
    except StoreError:
        # That the queue cannot be read is told of when the runs are read.
        return await find_run(store, wanted)


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


async def _unjournalled(queue: JobQueue, limit: int | None = None, *, body: bool = False) -> list[JobStatus]:
    """Return the newest jobs that may have no run in the journal, the newest first."""
    from portico.pursuits.submitting import PURSUIT

    return await queue.jobs(PURSUIT, states=_LISTED, limit=limit or _MOST_WAITING, body=body)


def _goal(job: JobStatus) -> str:
    goal = (job.body or {}).get("goal")
    return goal if isinstance(goal, str) else ""


def _with_job(entry: RunEntry, job: JobStatus | None, goal: str = "") -> RunEntry:
    """Return the run as both tell: what has not ended by its journal is as its job is."""
    if job is None:
        return entry
    state, problem = entry.state, entry.problem
    # That it was cancelled does not say what became of a step with effects.
    uncertain = state == "uncertain" and job.state == "cancelled"
    if state in _UNENDED and not uncertain and (job.state != "done" or entry.run_state is None):
        state, problem = job.state, job.error or ""
    return replace(entry, state=state, problem=problem, job=job, submitted=goal)


def _begun(entry: RunEntry) -> tuple[datetime, str]:
    if entry.job is not None and entry.job.submitted_at:
        return time_of(entry.job.submitted_at), entry.name
    return time_of(entry.run_state.started_at if entry.run_state is not None else ""), entry.name
