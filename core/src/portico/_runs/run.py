"""Runs a goal or a plan, and resumes a run."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from portico._plans.findings import Finding
from portico._plans.json_form import plan_to_json
from portico._plans.plan import INPUT, Plan, Step
from portico._plans.task import Budget, Emit, Event, Task
from portico._ports.planner import Planner
from portico._runs.checking import UNKNOWN, checked, sound, with_fingerprints
from portico._runs.execution import Execution
from portico._runs.journal import RunState, entry
from portico._runs.loop import FIXED, Loop, Offers
from portico._runs.outcome import Proposal, Run, checked_budget, checked_goal, checked_input, new_run
from portico._runs.writing import Journal, kept
from portico._schema.validate import PlainSchemaValidator
from portico.errors import RunError, RunNotFound, SchemaUnsupported, StoreDamaged, nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from portico._kernel_like import KernelLike
    from portico._runs.recording import Recording


def refuse_ended(run: str, state: RunState) -> None:
    """Raise ``RunError`` for a run with an outcome that no one can change."""
    if state.state in ("done", "infeasible"):
        how = "has its answer" if state.state == "done" else "was found to be infeasible"
        raise RunError(f"The run {run} ended at {state.updated_at} and {how}: there is nothing to resume.")


def resuming(
    kernel: KernelLike,
    state: RunState,
    planner: str,
    retry: Collection[str],
    results: Mapping[str, Any],
    *,
    recorded: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Return the entries with which a run is continued: what to run again, and the results that a person gave.

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


def _fits(kernel: KernelLike, step: Step, value: Any) -> None:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise RunError(f"The result given for {step.id} is not JSON: {error}") from error
    spec = kernel.specs.get(step.function) if isinstance(step.function, str) else None
    if spec is None:
        return
    try:
        faults = list((kernel.schema_validator or PlainSchemaValidator()).compile(spec.returns)(value))
    except SchemaUnsupported as error:
        raise RunError(f"The result given for {step.id} cannot be checked against {spec.name}: {error}") from error
    if faults:
        raise RunError(f"The result given for {step.id} is none that {spec.name} gives: {'; '.join(faults)}.")


async def run_goal(
    kernel: KernelLike,
    goal: str,
    planner: Planner | str | None = None,
    *,
    input: Any = None,
    budget: Budget | None = None,
    context: Mapping[str, Any] | None = None,
    emit: Emit | None = None,
    reuse: bool | None = None,
    run: str | None = None,
    origin: Mapping[str, Any] | None = None,
) -> Run:
    """Run ``goal`` until an answer, an infeasibility, a pause, or the end of the budget.

    The planner is the configured one, the one of that name, or the one given. ``run`` is the run's name, where it is
    not to be a new one; ``origin`` is what the journal says of it, in place of the kernel's.

    Raises ``ValueError`` for a blank goal and a name that no run has, ``RunError`` for a run that the journal has
    already, ``PlanInvalid`` when the planner was refused too often in a row, ``StepFailed`` when a step failed and the
    planner proposes nothing new, ``LimitExceeded`` at the end of the budget, ``StoreError`` when the journal cannot be
    written, ``TypeError`` for a proposal that is none and plan middleware that neither proceeds nor holds, and what the
    planner and ``emit`` raise.
    """
    checked_goal(goal)
    reuse = kernel.reuse if reuse is None else reuse
    if reuse and kernel.plan_store is None:
        raise ValueError("reuse=True needs a store of plans: give the kernel a plan_store, or choose one under [plans]")
    execution = _execution(kernel, run, budget or kernel.budget, input, emit)
    input = execution.results.get(INPUT)
    loop = Loop(execution, goal, _planner(kernel, planner), execution.budget, context, input, reuse)
    return await _from_the_beginning(loop, None, budget, origin, named=run is not None)


async def propose(
    kernel: KernelLike,
    goal: str,
    planner: Planner | str | None = None,
    *,
    budget: Budget | None = None,
    emit: Emit | None = None,
) -> Proposal:
    """Ask a planner for its first proposal, check it, and run nothing."""
    chosen = _planner(kernel, planner)
    emit = emit or (lambda event: None)
    offer = await Offers(kernel, chosen, checked_goal(goal), emit).now()
    task = Task(goal, offer.functions, budget=checked_budget(budget or kernel.budget or Budget()))
    outcome = offer.none_fits() or offer.told(await chosen.propose(task, emit=emit))
    findings: list[Finding] = []
    if isinstance(outcome, Plan):
        findings = offer.explained(checked(kernel, outcome, input=UNKNOWN, specs=offer.specs), kernel.specs)
    return Proposal(chosen.name, outcome, tuple(findings), offer.selection)


async def run_plan(
    kernel: KernelLike,
    plan: Plan,
    *,
    input: Any = None,
    budget: Budget | None = None,
    emit: Emit | None = None,
    run: str | None = None,
) -> Run:
    """Check a plan and run it; no one proposes anything.

    Its result is the answer; a plan without one gives an empty answer. Raises ``PlanInvalid`` before anything runs,
    ``PlanStale`` where what the plan remembers of its functions says why, ``StepFailed`` for the first step that
    failed, after all that does not rest on it, ``LimitExceeded`` and ``StoreError`` as `run_goal` does.
    """
    execution = _execution(kernel, run, budget or kernel.budget, input, emit)
    input = execution.results.get(INPUT)
    execution.warnings += sound(kernel, plan, input=input)
    loop = Loop(execution, plan.goal, None, execution.budget, None, input, plans=[plan])
    return await _from_the_beginning(loop, plan, budget, named=run is not None)


async def resume(
    kernel: KernelLike,
    run: str,
    *,
    planner: Planner | str | None = None,
    retry: Collection[str] = (),
    results: Mapping[str, Any] | None = None,
    budget: Budget | None = None,
    context: Mapping[str, Any] | None = None,
    emit: Emit | None = None,
) -> Run:
    """Continue a run of the journal, after a pause, a failure, or the end of its process.

    Steps that finished never run again; one that began and did not end has the result that a durable runner recorded of
    it. Without one it runs again, unless its function has effects: then the run ends with ``Paused(uncertain=True)``,
    until the step is named in ``retry`` or its result is given in ``results``. What a filter held is asked again; what
    failed counts as failed, unless it is in ``retry``. The planner is that of the journal, unless another is given.
    Proposals and steps count over the whole run, seconds from now on.

    Raises ``RunNotFound``, ``RunError`` for a step or a value that does not fit, ``StoreBusy`` while
    another process has the run, ``PlanStale`` and ``PlanInvalid`` where what is left of the plan cannot run with the
    functions as they are, and what `run_goal` does.
    """
    store = kernel.run_store
    if store is None:
        raise RunError("This kernel keeps no journal to resume from. Choose one under [runs], such as sqlite.")
    if isinstance(retry, str):
        raise TypeError(f"retry= takes several steps: write retry=({retry!r},)")
    before = len(await store.read(run))
    if not before:
        raise RunNotFound(run, await store.runs())
    journal = Journal(store, run)
    async with kept(journal):
        entries = await store.read(run)
        if len(entries) < before:
            # What finished since would run again.
            raise StoreDamaged(f"The store has {len(entries)} entries of the run {run}, and had {before} just now.")
        journal.length = len(entries)
        state = RunState.of(entries)
        refuse_ended(run, state)
        chosen = None if planner is None and state.planner == FIXED else _planner(kernel, planner or state.planner)
        name = FIXED if chosen is None else chosen.name
        if chosen is None and state.plan is None:
            raise RunError(f"The run {run} stopped before its plan was written: run the plan again.")
        recording = _recording(kernel, run)
        if recording is not None:
            await recording.go_on_from(state)
        recorded = recording.finished if recording is not None else {}
        more = resuming(kernel, state, name, retry, results or {}, recorded=recorded)
        state = RunState.of([*entries, *more])
        plan = state.plan if state.pending else None
        warnings: list[str] = []
        if plan is not None and recorded.keys() >= set(state.uncertain):
            ended = {record.step.id: record.step for record in state.records if "/" not in record.step.id}
            ended |= {step: state.started[step].step for step in recorded if "/" not in step}
            warnings = sound(kernel, plan, input=state.input, ended=ended)
        # Nothing is written before it is known that the run can be continued.
        *others, last = more
        for each in others:
            journal.add(each)
        await journal.write(last)
        execution = _execution(kernel, run, budget or state.budget or kernel.budget, state.input, emit)
        execution.journal, execution.recording = journal, recording
        loop = Loop(execution, state.goal, chosen, execution.budget, context, state.input)
        loop.go_on_from(state)
        execution.warnings += warnings
        execution.tell(Event.RunStarted(run, state.goal, name, len(state.records)))
        return await loop.run(plan, approved=state.approved)


async def _from_the_beginning(
    loop: Loop,
    plan: Plan | None,
    budget: Budget | None,
    origin: Mapping[str, Any] | None = None,
    *,
    named: bool = False,
) -> Run:
    execution = loop.execution
    name = FIXED if loop.planner is None else loop.planner.name
    store = execution.kernel.run_store
    if store is None:
        if execution.listener is not None:
            execution.listener(Event.RunStarted(execution.run, loop.goal, name))
        return await loop.run(plan)
    body: dict[str, Any] = {"goal": loop.goal, "planner": name}
    body |= {"input": loop.input} if loop.input is not None else {}
    body |= {"budget": asdict(budget)} if budget is not None else {}
    body |= {"origin": dict(origin)} if (origin := origin or execution.kernel.origin) else {}
    execution.journal = Journal(store, execution.run)
    execution.recording = _recording(execution.kernel, execution.run)
    async with kept(execution.journal) as journal:
        if named and await store.read(execution.run):
            raise RunError(f"The journal has a run {execution.run!r} already. Resume it, or choose another name.")
        beginning = entry("pursuit", **body)
        if plan is None:
            await journal.write(beginning)
        else:
            journal.add(beginning)
            written: dict[str, Any] = {"plan": plan_to_json(with_fingerprints(execution.kernel, plan))}
            written |= {"warnings": execution.warnings} if execution.warnings else {}
            await journal.write(entry("plan", **written))
        execution.tell(Event.RunStarted(execution.run, loop.goal, name))
        return await loop.run(plan)


def _recording(kernel: KernelLike, run: str) -> Recording | None:
    if kernel.runner is None or kernel.runner.durable is None:
        return None
    from portico._runs.recording import recording_of

    return recording_of(kernel, run)


def _planner(kernel: KernelLike, planner: Planner | str | None) -> Planner:
    return kernel.service(Planner, planner) if planner is None or isinstance(planner, str) else planner


def _execution(kernel: KernelLike, run: str | None, budget: Budget | None, input: Any, emit: Emit | None) -> Execution:
    budget = checked_budget(budget or Budget())
    results = {} if input is None else {INPUT: checked_input(input)}
    return Execution(kernel, new_run() if run is None else Run.check_name(run), budget, listener=emit, results=results)
