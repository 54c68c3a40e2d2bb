"""Submits runs to workers, and carries them out there."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from portico._jobs import Job
from portico._plans.task import Budget, Emit
from portico._runs.journal import RunState
from portico._runs.outcome import Run, checked_budget, checked_goal, checked_input, new_run, outcome_body
from portico._runs.runners import require_jobs
from portico.errors import RunError, StoreBusy, StoreDamaged, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from portico._kernel_like import KernelLike
    from portico._ports.run_store import RunStore


RUN_KIND = "pursuit"
"""The kind of a job that is a run. Its name is that of the run."""
JOB_VERSION = 1


class SubmitOptions(TypedDict, total=False):
    """What can be given by name to `Kernel.submit` and `Kernel.submit_all`.

    ``planner`` is the name of one that workers have; ``budget``, ``context`` and ``reuse`` are as `Kernel.run_goal`
    takes them, and the context is JSON.
    """

    planner: str | None
    budget: Budget | None
    context: Mapping[str, Any] | None
    reuse: bool | None


@dataclass(frozen=True, slots=True)
class Submitted:
    """What a job asks for; what is None, the kernel of the worker says."""

    run: str
    goal: str
    planner: str | None = None
    input: Any = None
    budget: Budget | None = None
    context: Mapping[str, Any] | None = None
    reuse: bool | None = None
    origin: Mapping[str, Any] | None = None


def run_job(
    kernel: KernelLike,
    goal: str,
    *,
    input: Any = None,
    run: str | None = None,
    planner: str | None = None,
    budget: Budget | None = None,
    context: Mapping[str, Any] | None = None,
    reuse: bool | None = None,
) -> Job:
    """Return the job of running a goal, under a new name or the one given; nothing is written.

    Raises ``ValueError`` for a blank goal, a budget that is none and what is not JSON, ``TypeError`` for a planner
    that is an object, which no other process has.
    """
    if planner is not None and not isinstance(planner, str):
        raise TypeError(f"a worker finds its planner by name, and has no {planner!r}: give the planner's name")
    asked: dict[str, Any] = {
        "planner": planner,
        "input": None if input is None else checked_input(input),
        "budget": None if budget is None else checked_input(asdict(checked_budget(budget)), "the budget"),
        "context": None if context is None else checked_input(dict(context), "the context"),
        "reuse": reuse,
        "origin": checked_input(dict(kernel.origin), "the kernel's origin") if kernel.origin else None,
    }
    asked = {name: value for name, value in asked.items() if value is not None}
    name = new_run() if run is None else Run.check_name(run)
    return Job(name, RUN_KIND, {"version": JOB_VERSION, "goal": checked_goal(goal), **asked})


def submitted(job: Job) -> Submitted:
    """Read what a job asks for.

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
        for name, kind in (("goal", str), ("planner", str), ("context", dict), ("origin", dict), ("reuse", bool)):
            if name in body and not isinstance(body[name], kind):
                raise TypeError(f"{name} is {body[name]!r}")
        if "budget" in body:
            body["budget"] = checked_budget(Budget(**body["budget"]))
        return Submitted(job.name, **body)
    except (LookupError, TypeError, ValueError) as error:
        raise StoreDamaged(f"The job {job.name} is none that asks for a run: {error!r}.") from error


async def submit(kernel: KernelLike, jobs: Sequence[Job]) -> list[str]:
    """Put jobs into the queue of the kernel's runner and return their names.

    Raises ``UnsupportedOption`` where it has none.
    """
    await require_jobs(kernel.runner).submit(jobs)
    return [job.name for job in jobs]


RESULT_VERSION = 1
LONGEST_OUTAGE = 300.0
"""Seconds for which a job waits for a store that is away; then that is its failure, and the run can be resumed."""
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0


async def carry_out(kernel: KernelLike, job: Job, *, emit: Emit | None = None) -> dict[str, Any]:
    """Carry out a job of the kind ``run`` and return how its run ended, as JSON.

    The journal says what is to be done, so that a job that is begun several times is one run: what it does not know is
    run under the name of the job, what has not ended is continued, and what has ended gives its end again. While
    another process holds the run this one waits, for as long as that process renews its lease, or ends.

    The result has ``run``, ``planner``, ``steps`` (how many ended), ``state``, and what the state says: ``text``,
    ``value``, ``citations`` and ``warnings`` of an answer ("done"), ``reason`` and ``missing`` ("infeasible"),
    ``reason`` and ``step`` ("held", "uncertain"), ``reason`` ("failed").

    Raises ``RunError`` for a kernel without a journal, ``StoreDamaged`` for a job that asks for nothing, and what
    `portico._runs.run.run_goal` and `portico._runs.run.resume` raise and do not write into the journal.
    """
    asked = submitted(job)
    store = kernel.run_store
    if store is None:
        raise RunError("This kernel keeps no journal, and what is submitted needs one. Choose one under [runs].")
    outage = _Outage()
    known: int | None = None
    busy = False
    while True:
        try:
            if busy:
                await _until_free(store, asked.run)
                busy = False
            state, length = await _read(store, asked.run)
            if length != known:
                known = length
                outage.over()
            if state is None or not _has_ended(state):
                state = await _one_attempt(kernel, store, asked, state, emit)
            if state is not None:
                return _result(asked.run, state)
        except StoreBusy:
            busy = True
        except StoreUnavailable:
            if outage.lasts_too_long():
                raise
            await asyncio.sleep(outage.pause())


async def _read(store: RunStore, run: str) -> tuple[RunState | None, int]:
    entries = await store.read(run)
    return (RunState.of(entries) if entries else None), len(entries)


async def _one_attempt(
    kernel: KernelLike, store: RunStore, asked: Submitted, before: RunState | None, emit: Emit | None
) -> RunState | None:
    """Begin the run or continue it, and return how the journal says that it ended; None where it began meanwhile."""
    from portico._runs.run import resume, run_goal

    failure: Exception | None = None
    try:
        if before is None:
            await run_goal(
                kernel,
                asked.goal,
                asked.planner,
                input=asked.input,
                budget=asked.budget,
                context=asked.context,
                emit=emit,
                reuse=asked.reuse,
                run=asked.run,
                origin=asked.origin,
            )
        else:
            await resume(kernel, asked.run, context=asked.context, emit=emit)
    except (StoreBusy, StoreUnavailable):
        raise
    except Exception as error:  # noqa: BLE001 - raised below, unless the journal has it
        failure = error
    state, _ = await _read(store, asked.run)
    if state is not None and _has_ended(state):
        return state
    if state is not None and before is None and isinstance(failure, RunError):
        return None  # Another worker began it when this one had looked.
    raise failure or StoreDamaged(f"The journal does not have the end of the run {asked.run} that was written.")


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


async def _until_free(store: RunStore, run: str) -> None:
    pause = _FIRST_PAUSE
    while True:
        await asyncio.sleep(pause)
        if not await store.held(run):
            return
        pause = min(2 * pause, _LONGEST_PAUSE)


class _Outage:
    """A time in which a store is away, or is there and nothing comes of it."""

    def __init__(self) -> None:
        self.over()

    def over(self) -> None:
        self._since: float | None = None
        self._pause = _FIRST_PAUSE

    def lasts_too_long(self) -> bool:
        now = asyncio.get_running_loop().time()
        self._since = now if self._since is None else self._since
        return now - self._since >= LONGEST_OUTAGE

    def pause(self) -> float:
        pause, self._pause = self._pause, min(2 * self._pause, _LONGEST_PAUSE)
        return pause


class JobHandler(Protocol):
    """Carries out a job and returns its result as JSON."""

    async def __call__(self, kernel: KernelLike, job: Job, *, emit: Emit | None = None) -> Any:
        """Do it with the services of the kernel; ``emit`` gets the events of a run."""
        ...
