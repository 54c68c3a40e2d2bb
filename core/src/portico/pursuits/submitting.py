"""Pursuits as jobs: what is put into the queue of a runner's workers, and read there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from portico.errors import StoreDamaged, StoreError
from portico.jobs import Job
from portico.plans.task import Budget
from portico.pursuits.beginning import checked_budget, checked_goal, checked_input, checked_run, new_run
from portico.runners import require_jobs

if TYPE_CHECKING:
    from portico.kernel import Kernel

__all__ = ["JOB_VERSION", "PURSUIT", "SubmitOptions", "Submitted", "pursuit_job", "submit", "submitted"]

PURSUIT = "pursuit"
"""The kind of a job that is a pursuit. Its name is that of the run."""
JOB_VERSION = 1


class SubmitOptions(TypedDict, total=False):
    """What can be given by name to `Kernel.submit` and `Kernel.submit_all`.

    ``planner`` is the name of one that workers have; ``budget``, ``context`` and ``reuse`` are as `Kernel.pursue` takes
    them, and the context is JSON.
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


def pursuit_job(
    kernel: Kernel,
    goal: str,
    *,
    input: Any = None,
    run: str | None = None,
    planner: str | None = None,
    budget: Budget | None = None,
    context: Mapping[str, Any] | None = None,
    reuse: bool | None = None,
) -> Job:
    """Return the job of pursuing a goal, under a new name or the one given; nothing is written.

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
    name = new_run() if run is None else checked_run(run)
    return Job(name, PURSUIT, {"version": JOB_VERSION, "goal": checked_goal(goal), **asked})


def submitted(job: Job) -> Submitted:
    """Read what a job asks for.

    Raises ``StoreDamaged`` for what `pursuit_job` does not make and ``StoreError`` for a newer version.
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
        raise StoreDamaged(f"The job {job.name} is none that asks for a pursuit: {error!r}.") from error


async def submit(kernel: Kernel, jobs: Sequence[Job]) -> list[str]:
    """Put jobs into the queue of the kernel's runner and return their names.

    Raises ``UnsupportedOption`` where it has none.
    """
    await require_jobs(kernel.runner).submit(jobs)
    return [job.name for job in jobs]
