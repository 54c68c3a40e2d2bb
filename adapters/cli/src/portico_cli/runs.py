"""Find and read runs: those of the journal, and those in the queue of a runner with workers."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import portico_host
from portico.errors import StoreBusy, StoreError
from portico.plugins import RunState, Services
from portico.ports import JobQueue, JobStatus, Runner, RunStore, Worker
from portico_cli.failures import Misused
from portico_cli.invocation import Invocation

if TYPE_CHECKING:
    from portico_host import Application


LAST = "last"
_SHOWN = 5
_END = re.compile(r"-(?=[0-9a-f]+$)")
# States of a run without an outcome in the journal.
_UNENDED = frozenset({"running", "interrupted", "uncertain"})
# States of jobs that may have no run in the journal. A job that is done has its run there.
_LISTED: tuple[str, ...] = ("waiting", "running", "failed", "cancelled")
_MOST_WAITING = 10_000


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A run as the journal has it. ``run_state`` is None, and ``problem`` says why, if that cannot be read.

    ``job`` is its job in the queue, if the run was submitted, and ``submitted`` the goal of that job.
    """

    name: str
    state: str
    entries: Sequence[Mapping[str, Any]] = ()
    run_state: RunState | None = None
    problem: str = ""
    job: JobStatus | None = None
    submitted: str = ""

    @property
    def goal(self) -> str | None:
        """The goal, if it is known."""
        return self.run_state.goal if self.run_state is not None else self.submitted or None

    @property
    def worker(self) -> str | None:
        """The worker that carries out the run now."""
        return self.job.worker or None if self.job is not None and self.state == "running" else None


@dataclass(frozen=True, slots=True)
class Listing:
    """Runs and workers; ``workers`` is None if the runner has no queue.

    ``problem`` says why the queue cannot be read; then the runs are those of the journal.
    """

    runs: Sequence[RunEntry]
    workers: Sequence[Worker] | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """The options with which a run began. The journal has them as JSON, and the folder where it began."""

    docs: tuple[Path, ...] = ()
    names: tuple[str, ...] = ()
    chat: str | None = None

    @classmethod
    def from_json(cls, origin: object) -> Origin:
        """Read the origin of a journal; what another application wrote there is ignored."""
        values = origin if isinstance(origin, Mapping) else {}

        def texts(name: str) -> list[str]:
            value = values.get(name)
            return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []

        chat = values.get("chat")
        return cls(tuple(map(Path, texts("docs"))), tuple(texts("sources")), chat if isinstance(chat, str) else None)


def origin_of(docs: Sequence[Path], names: Sequence[str], chat: str | None) -> dict[str, Any]:
    """Return the options of a run as JSON values for the journal; paths are absolute."""
    given = {"docs": [str(path.resolve()) for path in docs], "sources": list(names), "chat": chat}
    return {"folder": os.getcwd(), **{name: value for name, value in given.items() if value}}  # noqa: PTH109 - a text


def journal_of(application: Application, services: Services) -> RunStore:
    """Return the journal. Raises ``Misused`` if none is kept."""
    if not services.names(RunStore):
        raise no_journal(application)
    return services.get(RunStore)


def no_journal(application: Application) -> Misused:
    """Return the error for a command that needs the journal when none is kept."""
    place = application.configuration.place(("runs", "use"))
    return Misused(f'No journal is kept. Name one, as in `use = "sqlite"`, in [runs] of {place}.')


def host_of(worker: str) -> str:
    """Return the name of a worker without its random part."""
    return worker.rpartition(":")[0] or worker


@asynccontextmanager
async def open_journal(invocation: Invocation) -> AsyncIterator[tuple[RunStore, Runner | None]]:
    """Open the journal and the runner of the configuration. Raises ``Misused`` if no journal is kept."""
    application = portico_host.load(invocation.config)
    async with application.services(()) as services:
        yield journal_of(application, services), services.get(Runner) if services.names(Runner) else None


async def find_run(store: RunStore, wanted: str, queue: JobQueue | None = None) -> str:
    """Return the run with that name, or the only one whose name or last part begins so, or for ``last`` the newest.

    Runs that only the queue has are found too. Raises ``Misused`` if there is no such run, or more than one.
    """
    runs = list(await store.runs())
    found = _matching(runs, wanted)
    if queue is not None and (not found or (wanted == LAST and wanted not in runs)):
        try:
            jobs = await _list_jobs(queue, 1 if wanted == LAST else _MOST_WAITING)
        except StoreError:
            jobs = []  # reading the runs tells that the queue cannot be read
        runs += sorted({each.name for each in jobs} - set(runs))
        found = _matching(runs, wanted)
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(found[-_SHOWN:])
        raise Misused(f"{len(found)} runs begin with {wanted!r}; give more of the name: {names}.")
    advice = "`portico runs` lists them." if runs else "The journal has no run yet."
    raise Misused(f"There is no run {wanted!r}. {advice}")


def _matching(runs: Sequence[str], wanted: str) -> list[str]:
    if wanted in runs:
        return [wanted]
    if wanted == LAST:
        return list(runs[-1:])
    return [run for run in runs if wanted and (run.startswith(wanted) or _END.split(run)[-1].startswith(wanted))]


async def list_runs(store: RunStore, queue: JobQueue | None, limit: int, name: str | None = None) -> Listing:
    """Read the newest runs, the newest first, or the one with that name."""
    names = [name] if name is not None else (await store.runs())[-limit:]
    jobs: dict[str, JobStatus] = {}
    workers: Sequence[Worker] | None = None
    problem = ""
    if queue is not None:
        try:
            queued = [] if name is not None else [each.name for each in await _list_jobs(queue, limit)]
            names = list(dict.fromkeys([*names, *queued]))
            jobs = {each.name: each for each in await queue.status(names, body=True) if each is not None}
            workers = await queue.workers()
        except StoreError as error:
            problem = str(error)
    runs = [await read_run(store, each, jobs.get(each), whole=name is not None) for each in reversed(names)]
    if jobs:
        runs.sort(key=_sort_key, reverse=True)
    return Listing(runs[:limit], workers, problem)


async def read_run(store: RunStore, name: str, job: JobStatus | None = None, *, whole: bool = True) -> RunEntry:
    """Read a run, and combine it with its job. Unless it is read ``whole``, steps inside others may be left out.

    A run without an end whose process is gone is interrupted; a damaged run is unreadable.
    """
    entry = (None if whole else await _read_outline(store, name)) or await _read_journal(store, name)
    if job is None:
        return entry
    state, problem = entry.state, entry.problem
    # A cancelled job does not tell what happened to a step with effects.
    uncertain = state == "uncertain" and job.state == "cancelled"
    if state in _UNENDED and not uncertain and (job.state != "done" or entry.run_state is None):
        state, problem = job.state, job.error or ""
    goal = (job.body or {}).get("goal")
    submitted = goal if isinstance(goal, str) else ""
    return replace(entry, state=state, problem=problem, job=job, submitted=submitted)


async def _read_outline(store: RunStore, name: str) -> RunEntry | None:
    """Read a run without the steps inside others; None where they are needed, or the store always gives them."""
    if (outline := getattr(store, "outline", None)) is None:
        return None
    with suppress(StoreError):  # the whole run tells what is wrong
        entries: list[Mapping[str, Any]] = await outline(name)
        if entries and (entries[-1].get("type") == "outcome" or await store.held(name)):
            state = RunState.of({**each, "items": 0} if "items" in each else each for each in entries)
            return RunEntry(name, state.state, entries, state)
    return None


async def _read_journal(store: RunStore, name: str) -> RunEntry:
    try:
        entries = await store.read(name)
        if not entries:
            return RunEntry(name, "interrupted", problem="it was interrupted before its first entry")
        state = RunState.of(entries)
    except StoreBusy:
        raise
    except StoreError as error:
        return RunEntry(name, "unreadable", problem=str(error))
    shown: str = state.state
    if shown == "running" and not await store.held(name):
        shown = "interrupted"
    if shown == "interrupted" and state.uncertain:
        shown = "uncertain"
    return RunEntry(name, shown, entries, state)


async def _list_jobs(queue: JobQueue, limit: int) -> list[JobStatus]:
    """Return the newest jobs that may have no run in the journal, the newest first."""
    return await queue.jobs("pursuit", states=_LISTED, limit=limit)


def _sort_key(entry: RunEntry) -> tuple[datetime, str]:
    at = entry.run_state.started_at if entry.run_state is not None else ""
    return parse_time((entry.job.submitted_at if entry.job is not None else "") or at), entry.name


def parse_time(at: str) -> datetime:
    """Return a time of the journal or of a queue; 1970 if it cannot be read."""
    try:
        made = datetime.fromisoformat(at)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
    return made if made.tzinfo is not None else made.replace(tzinfo=UTC)
