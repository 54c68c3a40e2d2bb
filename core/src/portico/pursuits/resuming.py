"""What is looked at before a run is gone on with."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from portico._schema.validate import PlainSchemaValidator
from portico.errors import RunEnded, RunError, SchemaUnsupported, nearest
from portico.plans.plan import Plan, Step
from portico.pursuits.journal import RunState, entry

if TYPE_CHECKING:
    from portico.kernel import Kernel

__all__ = ["refuse_ended", "resuming"]


def refuse_ended(run: str, state: RunState) -> None:
    """Raise ``RunEnded`` for a run with an outcome that nobody can change."""
    if state.state in ("done", "infeasible"):
        how = "has its answer" if state.state == "done" else "was found to be infeasible"
        raise RunEnded(f"The run {run} ended at {state.updated_at} and {how}: there is nothing to resume.")


def resuming(
    kernel: Kernel,
    state: RunState,
    planner: str,
    retry: Collection[str],
    results: Mapping[str, Any],
    *,
    recorded: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Return the entries with which a run is gone on with: what to run again, and the results that a person gave.

    Steps that are ``recorded`` have finished, though the journal does not say so yet. Raises ``RunError`` for a step
    that is not there, one that has a result, and a result that does not fit.
    """
    steps = _steps(state)
    finished = state.results
    for step_id in (*retry, *results):
        if step_id not in steps:
            near = nearest(step_id, list(steps))
            known = f" Nearest: {', '.join(near)}." if near else f" It has {', '.join(steps) or 'none yet'}."
            raise RunError(f"The run has no step {step_id!r}.{known}")
        if step_id in finished or step_id in recorded:
            raise RunError(f"The step {step_id} has finished; steps that finished never run again.")
    to_run = {step.id for step in state.plan.steps} if state.plan is not None and state.pending else set()
    for step_id in retry:
        if step_id.partition("/")[0] not in to_run:
            raise RunError(f"The step {step_id} is of a plan that is over: nothing would run it again.")
    both = [step_id for step_id in results if step_id in set(retry)]
    if both:
        raise RunError(f"The step {both[0]} is either run again or given a result, not both.")
    for step_id, value in results.items():
        _fits(kernel, steps[step_id], value)
    entries = [entry("resumed", planner=planner, retry=list(retry))]
    return entries + [entry("step-finished", step=step, result=value, given=True) for step, value in results.items()]


def _steps(state: RunState) -> dict[str, Step]:
    """Return every step of a run that a person may speak of, by id."""
    steps: dict[str, Step] = {}
    for plan in state.plans:
        steps |= _inside(plan, "")
    for step_id, plan in state.inner.items():
        steps |= _inside(plan, f"{step_id}/")
    steps |= {record.step.id: record.step for record in state.records}
    return steps | {step_id: begun.step for step_id, begun in state.started.items()}


def _inside(plan: Plan, within: str) -> dict[str, Step]:
    found: dict[str, Step] = {}
    for step in plan.steps:
        found[within + step.id] = step
        if isinstance(step.function, Plan):
            found |= _inside(step.function, f"{within}{step.id}/")
    return found


def _fits(kernel: Kernel, step: Step, value: Any) -> None:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise RunError(f"The result given for {step.id} is not JSON: {error}") from error
    manual = kernel.manuals.get(step.function) if isinstance(step.function, str) else None
    if manual is None:
        return
    try:
        faults = list((kernel.schema_validator or PlainSchemaValidator()).compile(manual.returns)(value))
    except SchemaUnsupported as error:
        raise RunError(f"The result given for {step.id} cannot be checked against {manual.name}: {error}") from error
    if faults:
        raise RunError(f"The result given for {step.id} is none that {manual.name} gives: {'; '.join(faults)}.")
