"""The one loop that drives every planner."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from portico._chat.messages import Usage
from portico._plans.findings import Finding
from portico._plans.json_form import plan_to_json
from portico._plans.plan import INPUT, Expression, Plan, Step, evaluate, references
from portico._plans.reuse import StalePlan, find_plan, saved_plan
from portico._plans.task import Answer, Budget, Emit, Event, Infeasible, Refusal, RunEvent, Task
from portico._runs.checking import checked, reviewed, with_fingerprints
from portico._runs.journal import refusal_body
from portico._runs.outcome import Outcome, Paused, Run, outcome_body, require_json, state_of
from portico._runs.writing import Broken, PausedStep
from portico._selection.selection import FunctionsOffered
from portico.errors import LimitExceeded, PlanInvalid, StepFailed, StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from portico._functions.functions import FunctionSpec
    from portico._kernel_like import KernelLike
    from portico._ports.plan_store import PlanStore
    from portico._ports.planner import Planner
    from portico._runs.execution import Execution
    from portico._runs.journal import RunState
    from portico._selection.selection import Selection


@dataclass(frozen=True, slots=True)
class Offer:
    """What a planner sees: ``functions``, and how they were chosen where ``selector`` left some out.

    ``specs`` are those of the same functions by name, for the check of what the planner proposes.
    """

    functions: tuple[FunctionSpec, ...]
    specs: Mapping[str, FunctionSpec]
    selection: Selection | None = None
    selector: str = ""

    def none_fits(self) -> Infeasible | None:
        """Return the outcome where nothing is offered, of which no model need be asked; None where something is."""
        if self.selection is None or self.functions:
            return None
        return Infeasible(
            f"The function selector {self.selector!r} finds that none of the {self.selection.considered:,} functions "
            "fits this goal. Say it in other words, or let the selector offer more."
        )

    def told(self, proposal: Plan | Answer | Infeasible) -> Plan | Answer | Infeasible:
        """Return a proposal; where it is that the goal cannot be reached, with how little its model knew."""
        if self.selection is None or not isinstance(proposal, Infeasible):
            return proposal
        return replace(proposal, reason=f"{proposal.reason} ({self._known()} The selector can be set to choose more.)")

    def explained(self, findings: Sequence[Finding], every: Mapping[str, FunctionSpec]) -> list[Finding]:
        """Return the findings of a check with `specs`; a function that was not offered is no unknown one."""
        if self.selection is None:
            return list(findings)
        return [self._explained(finding, every) for finding in findings]

    def _explained(self, finding: Finding, every: Mapping[str, FunctionSpec]) -> Finding:
        name = finding.unknown_function
        if name not in every or name in self.specs:
            return finding
        return replace(finding, message=f"the function {name!r} was not offered. {self._known()}")

    def _known(self) -> str:
        told = len(self.functions)
        known = self.selection.considered if self.selection is not None else told
        return (
            f"Of {known:,} functions the function selector {self.selector!r} chose {told:,} for the goal, and the "
            "model saw no others."
        )


class Offers:
    """What a planner sees for a goal, from its first proposal to its last.

    Only a planner that says ``asks_model = True`` has its functions chosen: one that needs no model reads the whole
    catalogue at no cost, and may look for a function that the goal does not speak of. The choice rests on the goal
    alone, so that it stays as it is, and is made again only when the kernel has other functions.
    """

    def __init__(self, kernel: KernelLike, planner: Planner, goal: str, emit: Emit) -> None:
        self._kernel = kernel
        self._selector = kernel.function_selector if getattr(planner, "asks_model", False) else None
        self._goal = goal
        self._emit = emit
        self._latest: tuple[Mapping[str, FunctionSpec], Offer] | None = None

    async def now(self) -> Offer:
        """Return what is offered, and tell of a selection once; raises what the kernel's selector does."""
        every = self._kernel.specs
        if self._latest is None or self._latest[0] is not every:
            self._latest = (every, await self._made(every))
            selection = self._latest[1].selection
            if selection is not None:
                self._emit(FunctionsOffered(selection))
        return self._latest[1]

    async def _made(self, every: Mapping[str, FunctionSpec]) -> Offer:
        if self._selector is not None:
            from portico._selection.offering import selected

            selection = await selected(self._selector, every, (self._goal,))
            if selection is not None:
                for name in selection.absent:
                    self._kernel.function(name)
                names = frozenset(selection.names)
                # In the catalogue's order: the same functions make the same prompt, which services cache.
                specs = {name: spec for name, spec in every.items() if name in names}
                return Offer(tuple(specs.values()), specs, selection, self._selector.name)
        return Offer(tuple(every.values()), every)


async def kept_plan(store: PlanStore, goal: str, specs: Mapping[str, FunctionSpec]) -> tuple[Plan, str] | str | None:
    """Return the plan kept for a goal and when it was saved; or why there is none to use, None where there is none."""
    found = await find_plan(store, goal, specs)
    if found is None:
        return None
    if isinstance(found, StalePlan):
        return str(found)
    # What another planner noted to itself, another time, says nothing to this one.
    return replace(found.plan, notes=None), found.saved.saved_at


async def keep(
    store: PlanStore, goal: str, plan: Plan, specs: Mapping[str, FunctionSpec], *, planner: str, with_input: bool
) -> str | None:
    """Keep a plan that led to an answer; return the warning where that failed, for the answer is there all the same.

    A plan that was made for an input but does not refer to it may have the input's values in it: it is not kept.
    """
    if plan.result is None or (with_input and not _refers_to_input(plan)):
        return None
    try:
        await store.put(saved_plan(goal, plan, specs, planner=planner))
    except StoreError as error:
        return f"The plan could not be saved: {error}"
    return None


def _refers_to_input(plan: Plan) -> bool:
    expressions = [argument for step in plan.steps for argument in step.arguments.values()]
    expressions += [] if plan.result is None else [plan.result]
    return any(reference.step == INPUT for expression in expressions for reference in references(expression))


_Outcome = TypeVar("_Outcome", bound=Outcome)

FIXED = "plan"
"""What the journal says in place of a planner's name when one plan runs by itself."""


@dataclass(slots=True)
class Loop:
    """One run at work: what came of it so far, and what comes next.

    Without a planner it runs one plan, that it is given.
    """

    execution: Execution
    goal: str
    planner: Planner | None
    budget: Budget
    context: Mapping[str, Any] | None = None
    input: Any = None
    reuse: bool = False
    usage: Usage = field(default_factory=Usage)
    services: list[str] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    refusals: int = 0
    proposals: int = 0
    produced_by: dict[str, FunctionSpec | None] = field(default_factory=dict)
    result: Expression | None = None
    failures: list[StepFailed] = field(default_factory=list)
    uncertain: tuple[Step, ...] = ()
    ends: float | None = None
    selection: Selection | None = None

    def go_on_from(self, state: RunState) -> None:
        """Take over what an earlier process did."""
        execution = self.execution
        execution.past = state
        execution.records = list(state.records)
        execution.warnings += state.warnings
        execution.results |= {step: result for step, result in state.results.items() if "/" not in step}
        self.plans = list(state.plans)
        self.refused = list(state.refused)
        self.proposals = state.proposals
        for plan in self.plans:
            self._observe(plan)
        recorded = execution.recording.finished if execution.recording is not None else ()
        self.uncertain = tuple(state.started[step].step for step in state.uncertain if step not in recorded)

    def run(self, first: Plan | None = None, *, approved: bool = False) -> Awaitable[Run]:
        """Go on to the outcome, with a plan to run first where there is one, and write it down."""
        recording = self.execution.recording
        if recording is None:
            return self._to_outcome(first, approved)
        return recording.run(partial(self._to_outcome, first, approved))

    async def _to_outcome(self, first: Plan | None, approved: bool) -> Run:
        execution = self.execution
        try:
            outcome = await self._in_time(first, approved)
        except Broken as stop:
            await self._failed(stop.error)
            raise stop.error from stop.error.__cause__
        except Exception as error:
            await self._failed(error)
            raise
        except asyncio.CancelledError:
            with suppress(Broken):
                execution.tell(Event.Ended(execution.run, "interrupted"))
            raise
        try:
            if self.reuse:
                outcome = await self._keep(outcome)
            if execution.journal is not None:
                await execution.note("outcome", **outcome_body(outcome))
            self._end(outcome)
        except Broken as stop:
            raise stop.error from stop.error.__cause__
        return self._ended_run(outcome)

    def _ended_run(self, outcome: Outcome) -> Run:
        execution = self.execution
        return Run(
            self.goal,
            execution.run,
            FIXED if self.planner is None else self.planner.name,
            outcome,
            self._executed(),
            tuple(execution.records),
            self.usage,
            tuple(dict.fromkeys(self.services)),
            self.input,
            self.selection,
        )

    def _executed(self) -> Plan:
        """Return all steps that gave a result as one plan; those of a nested plan are inside the step that holds it."""
        records = self.execution.records
        steps = tuple(record.step for record in records if record.error is None and "/" not in record.step.id)
        schema = next((plan.input for plan in reversed(self.plans) if plan.input is not None), None)
        return with_fingerprints(self.execution.kernel, Plan(self.goal, steps, self.result, input=schema))

    async def _in_time(self, first: Plan | None, approved: bool) -> Outcome:
        seconds = self.budget.seconds
        if seconds is None:
            return await self._until_outcome(first, approved)
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                self.ends = deadline.when()
                return await self._until_outcome(first, approved)
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise LimitExceeded(f"The run did not end within its {seconds:g} seconds.") from error

    async def _until_outcome(self, plan: Plan | None, approved: bool) -> Outcome:
        if self.uncertain:
            return self._stopped()
        if plan is not None and (outcome := await self._carry_out(plan, approved)) is not None:
            return outcome
        if self.planner is None:
            return self._fixed()
        if self.reuse and (outcome := await self._run_kept()) is not None:
            return outcome
        offers = Offers(self.execution.kernel, self.planner, self.goal, self.emit)
        while self.proposals < self.budget.proposals:
            offer = await offers.now()
            self.selection = offer.selection
            proposal = offer.none_fits() or offer.told(await self._propose(self.planner, self._task(offer)))
            if isinstance(proposal, Answer | Infeasible):
                if self.execution.journal is not None:
                    require_json(proposal, self.planner.name)
                return self._warned(proposal)
            if not isinstance(proposal, Plan):
                raise TypeError(f"the planner {self.planner.name!r} proposed {proposal!r}: no Plan, Answer, Infeasible")
            self.proposals += 1
            findings = self._check(proposal, offer)
            if self.execution.listener is not None:
                self.emit(Event.Proposed(proposal, findings))
            if any(finding.severity == "error" for finding in findings):
                await self._refuse(Refusal(proposal, findings))
                continue
            if (outcome := await self._take(proposal)) is not None:
                return outcome
        if self.failures:
            raise self.failures[0]
        raise LimitExceeded(
            f"The planner made {self.budget.proposals} proposals without an answer. Allow more with the budget's "
            "proposals."
        )

    async def _run_kept(self) -> Answer | Paused | None:
        """Run the plan that was kept for the goal, where there is one that still can run."""
        kernel = self.execution.kernel
        assert kernel.plan_store is not None  # noqa: S101 - nothing is used again without a store of plans
        kept = await kept_plan(kernel.plan_store, self.goal, kernel.specs)
        if kept is None or isinstance(kept, str):
            self._warn(kept)
            return None
        plan, saved_at = kept
        wrong = [finding for finding in self._check(plan) if finding.severity == "error"]
        if wrong:
            self._warn(f"The plan saved at {saved_at} was not used: {wrong[0]}")
            return None
        if self.execution.listener is not None:
            self.emit(Event.Proposed(plan, saved_at=saved_at))
        self._warn(f"A plan saved at {saved_at} was used again.")
        self.reuse = False
        return await self._take(plan, reused=True)

    async def _keep(self, outcome: _Outcome) -> _Outcome:
        """Keep the plan that led to an answer, unless it was kept before."""
        kernel = self.execution.kernel
        if not self.reuse or self.planner is None or not isinstance(outcome, Answer) or kernel.plan_store is None:
            return outcome
        warning = await keep(
            kernel.plan_store,
            self.goal,
            self._executed(),
            kernel.specs,
            planner=self.planner.name,
            with_input=self.input is not None,
        )
        return outcome if warning is None else cast("_Outcome", replace(outcome, warnings=(*outcome.warnings, warning)))

    def _fixed(self) -> Answer:
        if self.failures:
            raise self.failures[0]
        return self._warned(Answer("", warnings=("The plan has run. It has no result to give.",)))

    def _task(self, offer: Offer) -> Task:
        budget = self.budget
        return Task(
            self.goal,
            offer.functions,
            tuple(self.execution.records),
            tuple(self.refused),
            replace(
                budget,
                proposals=budget.proposals - self.proposals,
                steps=max(budget.steps - len(self.execution.records), 0),
                refusals=budget.refusals - self.refusals,
                seconds=self._seconds_left(),
            ),
            self.plans[-1].notes if self.plans else None,
            self.context,
            self.input,
            tuple(plan.notes for plan in self.plans[:-1]),
        )

    def _propose(self, planner: Planner, task: Task) -> Awaitable[Plan | Answer | Infeasible]:
        recording = self.execution.recording
        if recording is None:
            return planner.propose(task, emit=self.emit)
        return recording.proposal(planner, task, self.proposals + 1, self.emit)

    def _seconds_left(self) -> float | None:
        return None if self.ends is None else max(self.ends - asyncio.get_running_loop().time(), 0.0)

    def _check(self, plan: Plan, offer: Offer | None = None) -> tuple[Finding, ...]:
        """Check a plan; one that was proposed may use what its planner saw."""
        kernel = self.execution.kernel
        findings = checked(
            kernel,
            plan,
            input=self.input,
            finished=self.produced_by,
            taken={record.step.id for record in self.execution.records},
            specs=None if offer is None else offer.specs,
        )
        return tuple(findings if offer is None else offer.explained(findings, kernel.specs))

    async def _refuse(self, refusal: Refusal, *, ran: bool = False) -> None:
        self.refused.append(refusal)
        self.refusals += 1
        if self.execution.journal is not None:
            await self.execution.note("refused", **refusal_body(refusal), **({"ran": True} if ran else {}))
        if self.execution.listener is not None:
            self.emit(Event.Refused(refusal.plan, refusal.findings))
        if self.refusals > self.budget.refusals:
            if self.failures:
                raise self.failures[0]
            raise PlanInvalid([finding for finding in refusal.findings if finding.severity == "error"])

    async def _take(self, plan: Plan, *, reused: bool = False) -> Answer | Paused | None:
        """Run a plan that passed its check."""
        self.refused.clear()
        self.refusals = 0
        self.plans.append(plan)
        if self.execution.journal is not None:
            body: dict[str, Any] = {"plan": plan_to_json(with_fingerprints(self.execution.kernel, plan))}
            body |= {"reused": True} if reused else {}
            # All that there are so far: each is said once in the end, however often it is written.
            body |= {"warnings": list(dict.fromkeys(self.execution.warnings))} if self.execution.warnings else {}
            await self.execution.note("plan", **body)
        return await self._carry_out(plan, False)

    async def _carry_out(self, plan: Plan, approved: bool) -> Answer | Paused | None:
        execution = self.execution
        if not approved and execution.kernel.middleware.plan:
            hold = await reviewed(execution.kernel, plan, execution.run)
            if hold is not None:
                if execution.listener is not None:
                    self.emit(Event.StepPaused(None, hold.reason))
                return Paused(hold.reason)
            await execution.note("approved")
        try:
            self.failures = await execution.plan(plan)
        except PausedStep as stop:
            return Paused(stop.hold.reason, stop.step.id)
        self._observe(plan)
        if plan.result is None or self.failures:
            return None
        try:
            answer = Answer.of(evaluate(plan.result, execution.results))
        except LookupError as error:
            finding = Finding(str(error), place="result")
            if self.planner is None:
                raise PlanInvalid([finding]) from error
            await self._refuse(Refusal(plan, (finding,)), ran=True)
            return None
        self.result = plan.result
        return self._warned(answer)

    def _observe(self, plan: Plan) -> None:
        specs, results = self.execution.kernel.specs, self.execution.results
        for step in plan.steps:
            if step.id in results:
                self.produced_by[step.id] = specs.get(step.function) if isinstance(step.function, str) else None

    def _stopped(self) -> Paused:
        """Return the hold of steps of which no one knows whether they happened."""
        for step in self.uncertain:
            self.execution.tell(Event.StepPaused(step, _interrupted(step), uncertain=True))
        return Paused(" ".join(map(_interrupted, self.uncertain)), self.uncertain[0].id, uncertain=True)

    def _warned(self, outcome: _Outcome) -> _Outcome:
        warnings = self.execution.warnings
        if warnings and isinstance(outcome, Answer):
            said = tuple(dict.fromkeys((*warnings, *outcome.warnings)))
            return cast("_Outcome", replace(outcome, warnings=said))
        return outcome

    def _warn(self, sentence: str | None) -> None:
        if sentence:
            self.execution.warnings.append(sentence)

    def emit(self, event: RunEvent) -> None:
        """Take an event of the planner's or of the loop's, and hand it on."""
        if isinstance(event, Event.ChatUsed):
            self.usage += event.usage
            self.services.append(event.service)
        elif isinstance(event, Event.Warned):
            self._warn(event.warning)
        if self.execution.listener is not None:
            self.execution.listener(event)

    def _end(self, outcome: Outcome) -> None:
        if self.execution.listener is None:
            return
        self.execution.tell(Event.Ended(self.execution.run, *state_of(outcome)))

    async def _failed(self, error: Exception) -> None:
        """Write down how it failed; that the journal or a listener fails too changes nothing of it."""
        reason = str(error) or type(error).__name__
        with suppress(Broken):
            await self.execution.note("outcome", kind="failed", reason=reason, error=type(error).__name__)
        with suppress(Broken):
            self.execution.tell(Event.Ended(self.execution.run, "failed", reason))


def _interrupted(step: Step) -> str:
    return (
        f"The step {step.id} calls {step.function}, which has effects, and was interrupted: no one knows whether it "
        "happened. Find out, then run it again or give its result."
    )
