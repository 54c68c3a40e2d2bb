"""Pursuing a goal: the one loop that drives every planner, a plan run by itself, and a run that is gone on with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from portico.errors import RunError, RunNotFound, StoreDamaged
from portico.plans.json_form import plan_to_json
from portico.plans.plan import INPUT, Plan
from portico.plans.task import Budget, Emit, Resumed, Started
from portico.ports.planner import Planner
from portico.pursuits.beginning import checked_budget, checked_goal, checked_input, checked_run, new_run
from portico.pursuits.checking import sound, with_fingerprints
from portico.pursuits.execution import Execution
from portico.pursuits.journal import RunState, entry
from portico.pursuits.loop import FIXED, Loop
from portico.pursuits.outcome import Held, Pursuit
from portico.pursuits.resuming import refuse_ended, resuming
from portico.pursuits.writing import Journal, kept
from portico.runners import durable_of

if TYPE_CHECKING:
    from portico.kernel import Kernel
    from portico.pursuits.recording import Recording

__all__ = ["Held", "Pursuit", "pursue", "resume", "run_plan"]


async def pursue(
    kernel: Kernel,
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
) -> Pursuit:
    """Pursue ``goal`` until an answer, an infeasibility, a hold, or the end of the budget.

    The planner is the configured one, the one of that name, or the one given. ``run`` is the run's name, where it is
    not to be a new one; ``origin`` is what the journal says of it, in place of the kernel's.

    Raises ``ValueError`` for a blank goal and a name that no run has, ``RunError`` for a run that the journal has
    already, ``PlanInvalid`` when the planner was refused too often in a row, ``StepFailed`` when a step failed and the
    planner proposes nothing new, ``LimitExceeded`` at the end of the budget, ``StoreError`` when the journal cannot be
    written, ``TypeError`` for a proposal that is none and a plan filter that neither proceeds nor holds, and what the
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


async def run_plan(
    kernel: Kernel,
    plan: Plan,
    *,
    input: Any = None,
    budget: Budget | None = None,
    emit: Emit | None = None,
    run: str | None = None,
) -> Pursuit:
    """Check a plan and run it; nobody proposes anything.

    Its result is the answer; a plan without one gives an empty answer. Raises ``PlanInvalid`` before anything runs,
    ``PlanStale`` where what the plan remembers of its functions says why, ``StepFailed`` for the first step that
    failed, after all that does not rest on it, ``LimitExceeded`` and ``StoreError`` as `pursue` does.
    """
    execution = _execution(kernel, run, budget or kernel.budget, input, emit)
    input = execution.results.get(INPUT)
    execution.warnings += sound(kernel, plan, input=input)
    loop = Loop(execution, plan.goal, None, execution.budget, None, input, plans=[plan])
    return await _from_the_beginning(loop, plan, budget, named=run is not None)


async def resume(
    kernel: Kernel,
    run: str,
    *,
    planner: Planner | str | None = None,
    retry: Collection[str] = (),
    results: Mapping[str, Any] | None = None,
    budget: Budget | None = None,
    context: Mapping[str, Any] | None = None,
    emit: Emit | None = None,
) -> Pursuit:
    """Go on with a run of the journal, after a hold, a failure, or the end of its process.

    Steps that finished never run again; one that began and did not end has the result that a durable runner recorded of
    it. Without one it runs again, unless its function has effects: then the pursuit ends with ``Held(uncertain=True)``,
    until the step is named in ``retry`` or its result is given in ``results``. What a filter held is asked again; what
    failed counts as failed, unless it is in ``retry``. The planner is that of the journal, unless another is given.
    Proposals and steps count over the whole run, seconds from now on.

    Raises ``RunNotFound``, ``RunEnded``, ``RunError`` for a step or a value that does not fit, ``StoreBusy`` while
    another process has the run, ``PlanStale`` and ``PlanInvalid`` where what is left of the plan cannot run with the
    functions as they are, and what `pursue` does.
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
        # Nothing is written before it is known that the run can be gone on with.
        *others, last = more
        for each in others:
            journal.add(each)
        await journal.write(last)
        execution = _execution(kernel, run, budget or state.budget or kernel.budget, state.input, emit)
        execution.journal, execution.recording = journal, recording
        loop = Loop(execution, state.goal, chosen, execution.budget, context, state.input)
        loop.go_on_from(state)
        execution.warnings += warnings
        execution.tell(Resumed(run, state.goal, name, len(state.records)))
        return await loop.run(plan, approved=state.approved)


async def _from_the_beginning(
    loop: Loop,
    plan: Plan | None,
    budget: Budget | None,
    origin: Mapping[str, Any] | None = None,
    *,
    named: bool = False,
) -> Pursuit:
    execution = loop.execution
    name = FIXED if loop.planner is None else loop.planner.name
    store = execution.kernel.run_store
    if store is None:
        if execution.listener is not None:
            execution.listener(Started(execution.run, loop.goal, name))
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
        execution.tell(Started(execution.run, loop.goal, name))
        return await loop.run(plan)


def _recording(kernel: Kernel, run: str) -> Recording | None:
    if durable_of(kernel.runner) is None:
        return None
    from portico.pursuits.recording import recording_of

    return recording_of(kernel, run)


def _planner(kernel: Kernel, planner: Planner | str | None) -> Planner:
    return kernel.service(Planner, planner) if planner is None or isinstance(planner, str) else planner


def _execution(kernel: Kernel, run: str | None, budget: Budget | None, input: Any, emit: Emit | None) -> Execution:
    budget = checked_budget(budget or Budget())
    results = {} if input is None else {INPUT: checked_input(input)}
    return Execution(kernel, new_run() if run is None else checked_run(run), budget, listener=emit, results=results)
