"""Submits runs to workers, and carries them out there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from portico._jobs import Job
from portico._plans.task import Budget, Emit, context_of
from portico._runs.journal import RunState
from portico._runs.outcome import Run, SubmitOptions, copy_json, new_run, outcome_body, require_budget, require_goal
from portico._tool_loop.values import require_known
from portico.errors import RunError, StoreBusy, StoreDamaged, StoreError, StoreUnavailable, UnsupportedOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from portico._kernel_like import KernelLike
    from portico._ports.job_queue import JobQueue
    from portico._ports.run_store import RunStore
    from portico._ports.runner import Runner


JobHandler: TypeAlias = Callable[..., Awaitable[Any]]
"""Carries out a job, ``handler(kernel, job, emit=None)``, and returns its result as JSON."""
RUN_KIND = "pursuit"
"""The kind of a job that is a run. Its name is that of the run."""
JOB_VERSION = 1


_MEMBERS: Mapping[str, type] = {
    "goal": str,
    "planner": str,
    "functions": list,
    "exclude": list,
    "input": object,
    "budget": dict,
    "context": dict,
    "reuse": bool,
    "origin": dict,
}
"""What the body of a job may say; the kernel of the worker decides the rest."""


def require_jobs(runner: Runner | None) -> JobQueue:
    """Return the queue of a runner's worker processes; ``UnsupportedOption`` where it has none.

    >>> require_jobs(None)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    portico.errors.UnsupportedOption: There is no runner. Set `use` under [runner] to one that has workers; ...
    """
    if runner is not None and runner.jobs is not None:
        return runner.jobs
    who = "There is no runner" if runner is None else f"The runner {runner.name!r} has no workers"
    raise UnsupportedOption(f"{who}. Set `use` under [runner] to one that has workers; `portico plugins` lists them.")


def run_job(
    kernel: KernelLike, goal: str, *, input: Any = None, run: str | None = None, **options: Unpack[SubmitOptions]
) -> Job:
    """Return the job of running a goal, under a new name or the one given; nothing is written.

    Raises ``ValueError`` for a blank goal, a wrong budget and values that are not JSON, ``TypeError`` for a planner
    that is an object, because no other process has it.
    """
    given = require_known(options, SubmitOptions.__annotations__, "an option of a submitted goal")
    if not isinstance(given.get("planner", ""), str):
        raise TypeError(f"a worker finds its planner by name, and has no {given['planner']!r}: give the planner's name")
    for option in given.keys() & {"functions", "exclude"}:
        given[option] = copy_json(given[option], option)
    if "budget" in given:
        given["budget"] = copy_json(asdict(require_budget(given["budget"])), "the budget")
    if "context" in given:
        given["context"] = copy_json(context_of(given["context"]) or {}, "the context")
    if input is not None:
        given["input"] = copy_json(input)
    if origin := kernel.middleware.add_origin(kernel.origin):
        given["origin"] = copy_json(origin, "the kernel's origin")
    name = new_run() if run is None else Run.check_name(run)
    return Job(name, RUN_KIND, {"version": JOB_VERSION, "goal": require_goal(goal), **given})


def read_job(job: Job) -> dict[str, Any]:
    """Return what a job asks for, as the arguments of `run_goal`.

    Raises ``StoreDamaged`` for what `run_job` does not make and ``StoreError`` for a newer version.
    """
    body = dict(job.body)
    try:
        version = body.pop("version")
        if type(version) is int and version > JOB_VERSION:
            raise StoreError(
                f"The job {job.name} is of version {version}; this is a Portico that knows version {JOB_VERSION}. "
                "Use the newer one for its worker too."
            )
        if type(version) is not int or version != JOB_VERSION:
            raise ValueError(f"version {version!r}")
        for name, value in body.items():
            if not isinstance(value, _MEMBERS[name]):
                raise TypeError(f"{name} is {value!r}")
        if "budget" in body:
            body["budget"] = require_budget(Budget(**body["budget"]))
        return {"goal": body.pop("goal"), "run": job.name, **body}
    except (LookupError, TypeError, ValueError) as error:
        raise StoreDamaged(f"The job {job.name} does not ask for a run: {error!r}.") from error


async def submit(kernel: KernelLike, jobs: Sequence[Job]) -> list[str]:
    """Put jobs into the queue of the kernel's runner and return their names; raises what `require_jobs` raises."""
    await require_jobs(kernel.runner).submit(jobs)
    return [job.name for job in jobs]


RESULT_VERSION = 1
LONGEST_OUTAGE = 300.0
"""Seconds for which a job waits for a store that is away. Then the job fails, and the run can be resumed."""
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0


async def carry_out(kernel: KernelLike, job: Job, *, emit: Emit | None = None) -> dict[str, Any]:
    """Carry out a job of the kind ``run`` and return how its run ended, as JSON.

    The journal decides, so that a job that is begun several times is one run: an unknown run begins under the name of
    the job, one without an end continues, and one with an end gives that again. While another process holds the run,
    this one waits.

    The result has ``run``, ``planner``, ``steps`` (how many ended), ``state``, and what belongs to the state: ``text``,
    ``value``, ``citations`` and ``warnings`` of an answer ("done"), ``reason`` and ``missing`` ("infeasible"),
    ``reason`` and ``step`` ("held", "uncertain"), ``reason`` ("failed").

    Raises ``RunError`` for a kernel without a journal, ``StoreDamaged`` for a wrong job, and what
    `portico._runs.run.run_goal` and `portico._runs.run.resume` raise and do not write into the journal.
    """
    asked = read_job(job)
    store = kernel.run_store
    if store is None:
        raise RunError("This kernel keeps no journal, and what is submitted needs one. Choose one under [runs].")
    clock = asyncio.get_running_loop().time
    known: int | None = None
    away_since: float | None = None
    pause = _FIRST_PAUSE
    while True:
        try:
            state, length = await _read(store, job.name)
            if length != known:
                known, away_since, pause = length, None, _FIRST_PAUSE
            if state is None or not _has_ended(state):
                state = await _try(kernel, store, asked, state, emit)
            if state is not None:
                return _result(job.name, state)
            continue
        except StoreBusy:
            away_since = None
        except StoreUnavailable:
            away_since = clock() if away_since is None else away_since
            if clock() - away_since >= LONGEST_OUTAGE:
                raise
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


async def _read(store: RunStore, run: str) -> tuple[RunState | None, int]:
    entries = await store.read(run)
    return (RunState.of(entries) if entries else None), len(entries)


async def _try(
    kernel: KernelLike, store: RunStore, asked: dict[str, Any], before: RunState | None, emit: Emit | None
) -> RunState | None:
    """Begin the run or continue it, and return its end from the journal; None where another worker began it."""
    from portico._runs.run import resume, run_goal

    run: str = asked["run"]
    failure: Exception | None = None
    try:
        if before is None:
            await run_goal(kernel, **asked, emit=emit)
        else:
            await resume(kernel, run, context=asked.get("context"), emit=emit)
    except (StoreBusy, StoreUnavailable):
        raise
    except Exception as error:  # noqa: BLE001 - raised below, unless the journal has it
        failure = error
    state, _ = await _read(store, run)
    if state is not None and _has_ended(state):
        return state
    if state is not None and before is None and isinstance(failure, RunError):
        return None
    raise failure or StoreDamaged(f"The journal does not have the end of the run {run} that was written.")


def _has_ended(state: RunState) -> bool:
    return state.state not in ("running", "interrupted")


def _result(run: str, state: RunState) -> dict[str, Any]:
    said: Mapping[str, Any] = {"reason": state.reason}
    if state.outcome is not None:
        said = {name: value for name, value in outcome_body(state.outcome).items() if name != "kind"}
    elif state.step is not None:
        said = {"reason": state.reason, "step": state.step}
    about = {"version": RESULT_VERSION, "run": run, "planner": state.planner, "steps": len(state.records)}
    return {**about, "state": state.state, **said}
