"""Runs a goal or a plan, and resumes a run."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from portico._chat.attaching import attaching
from portico._chat.messages import ATTACHED_FILE
from portico._chat.spending import spending
from portico._functions.functions import FunctionSpec
from portico._functions.middleware import RunInvocation, run_middleware
from portico._plans.findings import Finding
from portico._plans.functions import known_result
from portico._plans.json_form import plan_to_json
from portico._plans.plan import INPUT, Plan, Step, around, outermost
from portico._plans.task import Budget, Emit, Event, RunEvent, Task, context_of
from portico._ports.planner import Planner
from portico._runs.checking import UNKNOWN, check, require_valid, with_fingerprints
from portico._runs.execution import Execution
from portico._runs.guarding import Guard
from portico._runs.journal import FIXED, RunState, entry
from portico._runs.loop import Loop
from portico._runs.offer import Offer
from portico._runs.outcome import FINAL, Proposal, Run, RunOptions, copy_json, new_run, require_budget, require_goal
from portico._runs.writing import Recording, open_journal
from portico._schema.validate import PlainSchemaValidator
from portico._tool_loop.values import require_known
from portico.errors import RunError, RunNotFound, SchemaUnsupported, StoreDamaged

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping

    from portico._kernel_like import KernelLike
    from portico._runs.outcome import GivenContext


def _make_resume_entries(
    kernel: KernelLike,
    state: RunState,
    planner: str,
    retry: Collection[str],
    results: Mapping[str, Any],
    *,
    recorded: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Return the entries that begin the continuation of a run: what to run again, and the results that a person gave.

    Steps that are ``recorded`` have finished, although the journal does not say so yet. Raises ``RunError`` for an
    unknown step, for one that has a result, and for a result that does not fit.
    """
    finished = {*state.results, *recorded}
    for step_id in (*retry, *results):
        _require_step(state, step_id)
        if step_id in finished:
            raise RunError(f"The step {step_id} has finished; steps that finished never run again.")
        outer = around(step_id)
        while outer and outer not in finished:
            outer = around(outer)
        if outer:
            raise RunError(f"The step {outer} has finished without {step_id}: nothing would use a result of it.")
    to_run = {step.id for step in state.plan.steps} if state.plan is not None and state.pending else set()
    for step_id in (*retry, *results):
        if outermost(step_id) not in to_run:
            nothing = "run it again" if step_id in retry else "use a result of it"
            raise RunError(f"The step {step_id} is of a plan that is over: nothing would {nothing}.")
    for step_id, value in results.items():
        if step_id in retry:
            raise RunError(f"The step {step_id} is either run again or given a result, not both.")
        _require_fit(kernel, state.find(step_id), value)
    entries = [entry("resumed", planner=planner, retry=list(retry))]
    return entries + [entry("step-finished", step=step, result=value, given=True) for step, value in results.items()]


def _require_step(state: RunState, step_id: str) -> None:
    """Raise ``RunError`` where a run has no such step."""
    try:
        state.find(step_id)
    except LookupError:
        ids = dict.fromkeys(id for plan in state.plans for id in _ids(plan, ""))
        ids |= dict.fromkeys(id for outer, plan in state.inner.items() for id in _ids(plan, f"{outer}/"))
        ids |= dict.fromkeys((*(record.step.id for record in state.records), *state.started))
        raise RunError(f"The run has no step {step_id!r}. It has {', '.join(ids) or 'none yet'}.") from None
    while step_id:
        outer = around(step_id)
        if step_id.endswith("]"):
            if outer not in state.items:
                raise RunError(f"The step {outer} has not begun: it is not known whether there will be {step_id}.")
            if int(step_id[len(outer) + 1 : -1]) >= (items := state.items[outer]):
                raise RunError(f"The step {outer} runs for {items} items: there is no {step_id}.")
        step_id = outer


def _ids(plan: Plan, within: str) -> Iterator[str]:
    for step in plan.steps:
        yield within + step.id
        if isinstance(step.function, Plan) and step.each is None:
            yield from _ids(step.function, f"{within}{step.id}/")


def _require_fit(kernel: KernelLike, step: Step, value: Any) -> None:
    try:
        copy_json(value, f"The result given for {step.id}")
    except ValueError as error:
        raise RunError(str(error)) from error
    known = known_result(step, kernel.specs)
    if known is None:
        return
    schema, what = (known.returns, known.name) if isinstance(known, FunctionSpec) else (known, "what the step gives")
    try:
        faults = (kernel.schema_validator or PlainSchemaValidator()).compile(schema)(value)
    except SchemaUnsupported as error:
        raise RunError(f"The result given for {step.id} cannot be checked against {what}: {error}") from error
    if faults:
        raise RunError(f"The result given for {step.id} does not fit {what}: {'; '.join(faults)}.")


async def run_goal(
    kernel: KernelLike, goal: str, *, origin: Mapping[str, Any] | None = None, **options: Unpack[RunOptions]
) -> Run:
    """Run a goal; see `Kernel.run_goal`. The journal has ``origin`` of the run, by default that of the kernel."""
    require_goal(goal)
    given = require_known(options, RunOptions.__annotations__, "an option of a run")
    run, budget = given.get("run"), given.get("budget")
    context = context_of(given.get("context"))
    # After a conversation, the goal alone does not say what is meant.
    reuse = given.get("reuse", kernel.reuse) and not any(map((context or {}).get, ("messages", "attached")))
    if reuse and kernel.plan_store is None:
        raise ValueError("reuse=True needs a store of plans: give the kernel a plan_store, or choose one under [plans]")
    execution = _execution(
        kernel, goal, run, budget or kernel.budget, input=given.get("input"), emit=given.get("emit"), context=context
    )
    input = execution.results.get(INPUT)
    planner = _planner(kernel, given.get("planner"))
    loop = Loop(execution, goal, planner, execution.budget, context, input, reuse)
    loop.name = _name_of(kernel, given.get("planner"), planner)
    loop.functions, loop.exclude = given.get("functions"), given.get("exclude", ())
    loop.catalogue()  # a wrong name is an error before the run is written down
    return await _surround(loop, partial(_start, loop, None, budget, origin, run is not None), None, origin)


async def propose(
    kernel: KernelLike,
    goal: str,
    planner: Planner | str | None,
    every: Mapping[str, FunctionSpec],
    *,
    budget: Budget | None,
    context: GivenContext,
    emit: Emit | None,
) -> Proposal:
    """Ask a planner for its first proposal of ``every`` function, check it, and run nothing."""
    chosen = _planner(kernel, planner)
    tell = emit or (lambda event: None)
    offer = await Offer.make(kernel, chosen, require_goal(goal), tell, every)
    budget = require_budget(budget or kernel.budget or Budget())
    task = Task(goal, offer.functions, budget=budget, context=context_of(context))
    guard = _guard(kernel, goal, None, task.context)

    def take(event: RunEvent) -> None:
        if isinstance(event, Event.ChatUsed) and guard is not None:
            guard.had_read.update(event.untrusted)
        tell(event)

    with spending(budget.cost), attaching((task.context or {}).get("attached", ())):
        outcome = await offer.ask(kernel, chosen, task, take)
    findings: list[Finding] = []
    if isinstance(outcome, Plan):
        checked = check(kernel, outcome, input=UNKNOWN, specs=offer.specs, allowed=every, guard=guard)
        findings = list(map(offer.explain, checked))
    return Proposal(chosen.name, outcome, tuple(findings), offer.selection)


async def run_plan(
    kernel: KernelLike, plan: Plan, *, input: Any, budget: Budget | None, emit: Emit | None, run: str | None
) -> Run:
    """Check a plan and run it, without a planner; see `Kernel.run_plan`."""
    execution = _execution(kernel, plan.goal, run, budget or kernel.budget, input=input, emit=emit)
    input = execution.results.get(INPUT)
    execution.warnings += require_valid(kernel, plan, input=input)
    loop = Loop(execution, plan.goal, None, execution.budget, None, input, plans=[plan])
    return await _surround(loop, partial(_start, loop, plan, budget, None, run is not None), plan, None)


async def resume(
    kernel: KernelLike,
    run: str,
    *,
    planner: Planner | str | None = None,
    retry: Collection[str] = (),
    results: Mapping[str, Any] | None = None,
    budget: Budget | None = None,
    context: GivenContext = None,
    emit: Emit | None = None,
    exclude: Collection[str] = (),
) -> Run:
    """Continue a run of the journal; see `Kernel.resume`."""
    store = kernel.run_store
    if store is None:
        raise RunError("This kernel keeps no journal to resume from. Choose one under [runs], such as sqlite.")
    if isinstance(retry, str):
        raise TypeError(f"retry= takes several steps: write retry=({retry!r},)")
    tuple(FunctionSpec.find_names(exclude, kernel.specs))
    before = len(await store.read(run))
    if not before:
        names = await store.runs()
        if run in names:
            raise RunError(f"The run {run} was stopped before its first entry: nothing of it has run. Begin it anew.")
        raise RunNotFound(run, names)
    async with open_journal(store, run) as journal:
        entries = await store.read(run)
        if len(entries) < before:
            # Steps that have finished would run again.
            raise StoreDamaged(f"The store has {len(entries)} entries of the run {run}, and had {before} just now.")
        journal.length = len(entries)
        state = RunState.of(entries)
        if state.state in FINAL:
            how = FINAL[state.state]
            raise RunError(f"The run {run} ended at {state.updated_at} and {how}: there is nothing to resume.")
        chosen = None if planner is None and state.planner == FIXED else _planner(kernel, planner or state.planner)
        name = FIXED if chosen is None else _name_of(kernel, planner or state.planner, chosen)
        if chosen is None and state.plan is None:
            raise RunError(f"The run {run} stopped before its plan was written: run the plan again.")
        recording = Recording.open(kernel, run)
        if recording is not None:
            await recording.load(state)
        recorded = recording.finished if recording is not None else {}
        more = _make_resume_entries(kernel, state, name, retry, results or {}, recorded=recorded)
        state = RunState.of([*entries, *more])
        plan = state.plan if state.pending else None
        warnings: list[str] = []
        if plan is not None and recorded.keys() >= set(state.uncertain):
            ended = {record.step.id: record.step for record in state.records if record.step.own}
            ended |= {step: state.started[step].step for step in recorded if not around(step)}
            warnings = require_valid(kernel, plan, input=state.input, ended=ended)
        merged = {**state.context, **(context_of(context) or {})} or None
        budget = budget or state.budget or kernel.budget
        said = [*state.context.get("messages", ()), *(context_of(context) or {}).get("messages", ())]
        # What was attached before has been read, also where something else is attached now.
        attached = (merged or {}).get("attached") or state.context.get("attached")
        known = {"messages": said, "attached": attached}
        execution = _execution(kernel, state.goal, run, budget, input=state.input, emit=emit, context=known)
        execution.journal, execution.recording = journal, recording
        loop = Loop(execution, state.goal, chosen, execution.budget, merged, state.input)
        loop.name, loop.functions, loop.exclude = name, state.functions, (*state.exclude, *exclude)
        loop.load(state)
        execution.warnings += warnings

        async def work() -> Run:
            # Only now it is known that the run can continue, and where it continues.
            if origin := kernel.middleware.add_origin(None):
                more[0]["origin"] = origin
            *others, last = more
            for each in others:
                journal.add(each)
            await journal.write(last)
            execution.tell(Event.RunStarted(run, state.goal, name, len(state.records)))
            return await loop.run(plan, approved=state.approved)

        return await _surround(loop, work, plan, state.origin, resumed=True)


async def _surround(
    loop: Loop,
    work: Callable[[], Awaitable[Run]],
    plan: Plan | None,
    origin: Mapping[str, Any] | None,
    *,
    resumed: bool = False,
) -> Run:
    """Do the work of a run inside the run middleware."""
    around = loop.execution.kernel.middleware.run
    if not around:
        return await work()
    context = RunInvocation(loop.execution.run, loop.goal, loop.name, plan, resumed, origin or {})
    return await run_middleware(around, context, work)


async def _start(
    loop: Loop, plan: Plan | None, budget: Budget | None, origin: Mapping[str, Any] | None, named: bool
) -> Run:
    execution = loop.execution
    name = loop.name
    store = execution.kernel.run_store
    if store is None:
        if execution.listener is not None:
            execution.listener(Event.RunStarted(execution.run, loop.goal, name))
        return await loop.run(plan)
    body: dict[str, Any] = {"goal": loop.goal, "planner": name}
    body |= {"functions": list(loop.functions)} if loop.functions is not None else {}
    body |= {"exclude": list(loop.exclude)} if loop.exclude else {}
    body |= {"input": loop.input} if loop.input is not None else {}
    kept = {name: value for name in ("messages", "attached") if (value := (loop.context or {}).get(name))}
    body |= {"context": kept} if kept else {}
    body |= {"budget": asdict(budget)} if budget is not None else {}
    origin = execution.kernel.middleware.add_origin(origin or execution.kernel.origin)
    body |= {"origin": origin} if origin else {}
    execution.recording = Recording.open(execution.kernel, execution.run)
    async with open_journal(store, execution.run) as journal:
        execution.journal = journal
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


def _planner(kernel: KernelLike, planner: Planner | str | None) -> Planner:
    return kernel.service(Planner, planner) if planner is None or isinstance(planner, str) else planner


def _name_of(kernel: KernelLike, given: Planner | str | None, planner: Planner) -> str:
    """Return the name by which a planner is found again: in portico.toml it may be the user's."""
    if given is None and kernel.services is not None:
        return next(iter(kernel.services.names(Planner)), planner.name)
    return given if isinstance(given, str) else planner.name


def _execution(
    kernel: KernelLike,
    goal: str,
    run: str | None,
    budget: Budget | None,
    *,
    input: Any,
    emit: Emit | None,
    context: Mapping[str, Any] | None = None,
) -> Execution:
    budget = require_budget(budget or Budget())
    results = {} if input is None else {INPUT: copy_json(input)}
    name = new_run() if run is None else Run.check_name(run)
    quiet = kernel.policy is not None and kernel.policy.quiet
    guard = None if quiet else _guard(kernel, goal, input, context)
    return Execution(kernel, name, budget, listener=emit, results=results, guard=guard)


def _guard(kernel: KernelLike, goal: str, input: Any, context: Mapping[str, Any] | None) -> Guard | None:
    guard = Guard.of(kernel, goal, input, messages=(context or {}).get("messages", ()))
    if guard is not None and (context or {}).get("attached"):
        guard.had_read.add(ATTACHED_FILE)
    return guard
