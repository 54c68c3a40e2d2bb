"""The one loop that drives every planner: propose, check, run, observe."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from portico.chat import Usage
from portico.errors import LimitExceeded, PlanInvalid, StepFailed
from portico.functions import FunctionManual
from portico.plans.evaluation import evaluate
from portico.plans.findings import Finding
from portico.plans.json_form import plan_to_json
from portico.plans.plan import Expression, Plan, Step
from portico.plans.task import (
    Answer,
    Budget,
    ChatUsed,
    Ended,
    Event,
    Infeasible,
    PlanHeld,
    PlanReused,
    Proposed,
    Refusal,
    Refused,
    StepUncertain,
    Task,
    Warned,
)
from portico.pursuits.checking import checked, with_fingerprints
from portico.pursuits.execution import Execution
from portico.pursuits.journal import refusal_body
from portico.pursuits.offering import Offer, Offers
from portico.pursuits.outcome import Held, Pursuit, answer_of, outcome_body, require_json
from portico.pursuits.reusing import keep, kept_plan
from portico.pursuits.reviewing import reviewed
from portico.pursuits.running import Broken, HeldStep

if TYPE_CHECKING:
    from portico.ports.planner import Planner
    from portico.pursuits.journal import RunState
    from portico.selection.selection import Selection

__all__ = ["FIXED", "Loop"]

_Outcome = TypeVar("_Outcome", bound=Answer | Infeasible | Held)

FIXED = "plan"
"""What the journal says in place of a planner's name when one plan runs by itself."""


@dataclass(slots=True)
class Loop:
    """One pursuit at work: what came of it so far, and what comes next.

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
    produced_by: dict[str, FunctionManual | None] = field(default_factory=dict)
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

    def run(self, first: Plan | None = None, *, approved: bool = False) -> Awaitable[Pursuit]:
        """Go on to the outcome, with a plan to run first where there is one, and write it down."""
        recording = self.execution.recording
        if recording is None:
            return self._to_outcome(first, approved)
        return recording.pursue(partial(self._to_outcome, first, approved))

    async def _to_outcome(self, first: Plan | None, approved: bool) -> Pursuit:
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
                execution.tell(Ended(execution.run, "interrupted"))
            raise
        try:
            if self.reuse:
                outcome = await self._keep(outcome)
            if execution.journal is not None:
                await execution.note("outcome", **outcome_body(outcome))
            self._end(outcome)
        except Broken as stop:
            raise stop.error from stop.error.__cause__
        return self._pursuit(outcome)

    def _pursuit(self, outcome: Answer | Infeasible | Held) -> Pursuit:
        execution = self.execution
        return Pursuit(
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

    async def _in_time(self, first: Plan | None, approved: bool) -> Answer | Infeasible | Held:
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
            raise LimitExceeded(f"The pursuit did not end within its {seconds:g} seconds.") from error

    async def _until_outcome(self, plan: Plan | None, approved: bool) -> Answer | Infeasible | Held:
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
                self.emit(Proposed(proposal, findings))
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

    async def _run_kept(self) -> Answer | Held | None:
        """Run the plan that was kept for the goal, where there is one that still can run."""
        kernel = self.execution.kernel
        assert kernel.plan_store is not None  # noqa: S101 - nothing is used again without a store of plans
        kept = await kept_plan(kernel.plan_store, self.goal, kernel.manuals)
        if kept is None or isinstance(kept, str):
            self._warn(kept)
            return None
        plan, saved_at = kept
        wrong = [finding for finding in self._check(plan) if finding.severity == "error"]
        if wrong:
            self._warn(f"The plan saved at {saved_at} was not used: {wrong[0]}")
            return None
        if self.execution.listener is not None:
            self.emit(PlanReused(plan, saved_at))
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
            kernel.manuals,
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
        """Check a plan; one that was proposed may use what its planner was told of."""
        kernel = self.execution.kernel
        findings = checked(
            kernel,
            plan,
            input=self.input,
            finished=self.produced_by,
            taken={record.step.id for record in self.execution.records},
            manuals=None if offer is None else offer.manuals,
        )
        return tuple(findings if offer is None else offer.explained(findings, kernel.manuals))

    async def _refuse(self, refusal: Refusal, *, ran: bool = False) -> None:
        self.refused.append(refusal)
        self.refusals += 1
        if self.execution.journal is not None:
            await self.execution.note("refused", **refusal_body(refusal), **({"ran": True} if ran else {}))
        if self.execution.listener is not None:
            self.emit(Refused(refusal.plan, refusal.findings))
        if self.refusals > self.budget.refusals:
            if self.failures:
                raise self.failures[0]
            raise PlanInvalid([finding for finding in refusal.findings if finding.severity == "error"])

    async def _take(self, plan: Plan, *, reused: bool = False) -> Answer | Held | None:
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

    async def _carry_out(self, plan: Plan, approved: bool) -> Answer | Held | None:
        execution = self.execution
        if not approved and execution.kernel.middleware.plan:
            hold = await reviewed(execution.kernel, plan, execution.run)
            if hold is not None:
                if execution.listener is not None:
                    self.emit(PlanHeld(plan, hold.reason))
                return Held(hold.reason)
            await execution.note("approved")
        try:
            self.failures = await execution.plan(plan)
        except HeldStep as stop:
            return Held(stop.hold.reason, stop.step.id)
        self._observe(plan)
        if plan.result is None or self.failures:
            return None
        try:
            answer = answer_of(evaluate(plan.result, execution.results))
        except LookupError as error:
            finding = Finding(str(error), place="result")
            if self.planner is None:
                raise PlanInvalid([finding]) from error
            await self._refuse(Refusal(plan, (finding,)), ran=True)
            return None
        self.result = plan.result
        return self._warned(answer)

    def _observe(self, plan: Plan) -> None:
        manuals, results = self.execution.kernel.manuals, self.execution.results
        for step in plan.steps:
            if step.id in results:
                self.produced_by[step.id] = manuals.get(step.function) if isinstance(step.function, str) else None

    def _stopped(self) -> Held:
        """Return the hold of steps of which nobody knows whether they happened."""
        for step in self.uncertain:
            self.execution.tell(StepUncertain(step, _interrupted(step)))
        return Held(" ".join(map(_interrupted, self.uncertain)), self.uncertain[0].id, uncertain=True)

    def _warned(self, outcome: _Outcome) -> _Outcome:
        warnings = self.execution.warnings
        if warnings and isinstance(outcome, Answer):
            said = tuple(dict.fromkeys((*warnings, *outcome.warnings)))
            return cast("_Outcome", replace(outcome, warnings=said))
        return outcome

    def _warn(self, sentence: str | None) -> None:
        if sentence:
            self.execution.warnings.append(sentence)

    def emit(self, event: Event) -> None:
        """Take an event of the planner's or of the loop's, and hand it on."""
        if isinstance(event, ChatUsed):
            self.usage += event.usage
            self.services.append(event.service)
        elif isinstance(event, Warned):
            self._warn(event.warning)
        if self.execution.listener is not None:
            self.execution.listener(event)

    def _end(self, outcome: Answer | Infeasible | Held) -> None:
        if self.execution.listener is None:
            return
        match outcome:
            case Answer():
                state, reason = "done", ""
            case Infeasible():
                state, reason = "infeasible", outcome.reason
            case Held():
                state, reason = "uncertain" if outcome.uncertain else "held", outcome.reason
        self.execution.tell(Ended(self.execution.run, state, reason))

    async def _failed(self, error: Exception) -> None:
        """Write down how it failed; that the journal or a listener fails too changes nothing of it."""
        reason = str(error) or type(error).__name__
        with suppress(Broken):
            await self.execution.note("outcome", kind="failed", reason=reason, error=type(error).__name__)
        with suppress(Broken):
            self.execution.tell(Ended(self.execution.run, "failed", reason))


def _interrupted(step: Step) -> str:
    return (
        f"The step {step.id} calls {step.function}, which has effects, and was interrupted: nobody knows whether it "
        "happened. Find out, then run it again or give its result."
    )
