"""The one loop that drives every planner: propose, check, run, observe."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from portico.chat import Usage
from portico.errors import LimitExceeded, PlanInvalid, StepFailed
from portico.filters import Hold, PlanReview, StepRun, run_filters
from portico.functions import FunctionManual
from portico.plans.check import check_plan, fingerprint
from portico.plans.json_form import plan_to_json
from portico.plans.plan import Expression, Plan, Step
from portico.plans.running import Broken, ExecuteStep, HeldStep, evaluate, run_steps
from portico.plans.task import (
    Answer,
    Budget,
    ChatUsed,
    Emit,
    Event,
    Finding,
    Infeasible,
    Proposed,
    Refusal,
    StepFailure,
    StepFinished,
    StepRecord,
    StepStarted,
    Task,
)

if TYPE_CHECKING:
    from portico.kernel import Kernel
    from portico.ports.planner import Planner
    from portico.ports.run_store import Lease, RunStore

__all__ = ["Held", "Pursuit", "pursue"]

_LEASE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Held:
    """The pursuit waits for a person: a plan or step filter returned a `Hold`."""

    reason: str
    step: str | None = None


@dataclass(frozen=True, slots=True)
class Pursuit:
    """How a pursuit ended and what it did.

    ``plan`` is every executed step as one plan, with the result where a plan gave the answer: what can be replayed.
    """

    goal: str
    run: str
    planner: str
    outcome: Answer | Infeasible | Held
    plan: Plan
    steps: tuple[StepRecord, ...]
    usage: Usage = field(default_factory=Usage)
    services: tuple[str, ...] = ()
    """The chat services that were asked, in order."""


async def pursue(
    kernel: Kernel,
    goal: str,
    planner: Planner,
    *,
    budget: Budget | None = None,
    context: Mapping[str, Any] | None = None,
    emit: Emit | None = None,
    run_store: RunStore | None = None,
) -> Pursuit:
    """Pursue ``goal`` with ``planner`` until an answer, an infeasibility, a hold, or the end of the budget.

    Raises ``ValueError`` for a blank goal, ``PlanInvalid`` when the planner was refused too often in a row,
    ``StepFailed`` when a step failed and the planner proposes nothing new, ``LimitExceeded`` at the end of the
    budget, ``StoreError`` when the journal cannot be written, ``TypeError`` for a proposal that is none and a
    plan filter that neither proceeds nor holds, and what the planner and ``emit`` raise.
    """
    if not goal.strip():
        raise ValueError("the goal is blank")
    loop = _Loop(kernel, goal, planner, budget or Budget(), context, emit, run_store)
    deadline = asyncio.timeout(loop.budget.seconds)
    try:
        async with deadline:
            loop.ends = deadline.when()
            return await loop.run()
    except TimeoutError as error:
        if not deadline.expired():
            raise
        raise LimitExceeded(f"The pursuit did not end within its {loop.budget.seconds:g} seconds.") from error


@dataclass(slots=True)
class _Loop:
    kernel: Kernel
    goal: str
    planner: Planner
    budget: Budget
    context: Mapping[str, Any] | None
    listener: Emit | None
    run_store: RunStore | None
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    records: list[StepRecord] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)
    produced_by: dict[str, FunctionManual | None] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    services: list[str] = field(default_factory=list)
    ends: float | None = None
    result: Expression | None = None
    lease: Lease | None = None

    async def run(self) -> Pursuit:
        if self.run_store is not None:
            self.lease = await self.run_store.acquire(self.name, owner=uuid.uuid4().hex, seconds=_LEASE_SECONDS)
        try:
            await self.note({"type": "pursuit", "goal": self.goal, "planner": self.planner.name})
            outcome = await self.until_outcome()
            await self.note({"type": "outcome", "kind": type(outcome).__name__.lower(), **_outcome_json(outcome)})
        except Broken as stop:
            raise stop.error from stop.error.__cause__
        finally:
            if self.run_store is not None and self.lease is not None:
                await self.run_store.release(self.lease)
        # The steps of a nested plan are inside the step that holds it.
        executed = tuple(record.step for record in self.records if record.error is None and "/" not in record.step.id)
        return Pursuit(
            self.goal,
            self.name,
            self.planner.name,
            outcome,
            Plan(self.goal, executed, self.result),
            tuple(self.records),
            self.usage,
            tuple(dict.fromkeys(self.services)),
        )

    async def until_outcome(self) -> Answer | Infeasible | Held:
        refused: list[Refusal] = []
        notes: Any = None
        failures: list[StepFailed] = []
        catalogue = self.kernel.manuals
        for proposals_made in range(self.budget.proposals):
            task = Task(
                self.goal,
                tuple(catalogue.values()),
                tuple(self.records),
                tuple(refused),
                replace(
                    self.budget,
                    proposals=self.budget.proposals - proposals_made,
                    steps=self.budget.steps - len(self.records),
                    refusals=self.budget.refusals - len(refused),
                    seconds=self.seconds_left(),
                ),
                notes,
                self.context,
            )
            proposal = await self.planner.propose(task, emit=self.emit)
            if isinstance(proposal, Answer | Infeasible):
                return proposal
            if not isinstance(proposal, Plan):
                raise TypeError(f"the planner {self.planner.name!r} proposed {proposal!r}: no Plan, Answer, Infeasible")
            findings = check_plan(
                proposal,
                catalogue,
                finished=self.produced_by,
                taken={record.step.id for record in self.records},
                validator=self.kernel.schema_validator,
            )
            self.emit(Proposed(proposal, tuple(findings)))
            if any(finding.severity == "error" for finding in findings):
                await self.refuse(refused, Refusal(proposal, tuple(findings)), failures)
                continue
            refused.clear()
            notes = proposal.notes
            if self.run_store is not None:
                await self.note({"type": "plan", "plan": plan_to_json(_with_fingerprints(proposal, catalogue))})
            held = await self.review(proposal)
            if held is None:
                try:
                    failures = await self.execute(proposal)
                except HeldStep as stop:
                    held = Held(stop.hold.reason, stop.step.id)
            if held is not None:
                return held
            if proposal.result is not None and not failures:
                try:
                    answer = _answer(evaluate(proposal.result, self.results))
                except LookupError as error:
                    await self.refuse(refused, Refusal(proposal, (Finding(str(error), place="result"),)), failures)
                else:
                    self.result = proposal.result
                    return answer
        if failures:
            raise failures[0]
        raise LimitExceeded(f"The planner made {self.budget.proposals} proposals without an answer.")

    def seconds_left(self) -> float | None:
        return None if self.ends is None else max(self.ends - asyncio.get_running_loop().time(), 0.0)

    async def refuse(self, refused: list[Refusal], refusal: Refusal, failures: list[StepFailed]) -> None:
        refused.append(refusal)
        await self.note({"type": "refused", "findings": [str(finding) for finding in refusal.findings]})
        if len(refused) > self.budget.refusals:
            if failures:
                raise failures[0]
            raise PlanInvalid([finding for finding in refusal.findings if finding.severity == "error"])

    async def review(self, plan: Plan) -> Held | None:
        filters = self.kernel.filters.plan
        if not filters:
            return None

        approved: list[Plan] = []

        async def approve() -> None:
            approved.append(plan)

        given: Any = await run_filters(filters, PlanReview(plan, self.name), approve)
        if isinstance(given, Hold):
            return Held(given.reason)
        # A plan that nobody let through must not run because a filter gave back the wrong thing.
        if given is not None or not approved:
            raise TypeError(f"a plan filter returns a Hold or what `await proceed()` gave, not {given!r} of its own")
        return None

    async def execute(self, plan: Plan) -> list[StepFailed]:
        if len(self.records) + _count(plan) > self.budget.steps:
            raise LimitExceeded(f"The pursuit would run more than its {self.budget.steps} steps.")
        failures = await self.run_steps(plan, self.results, self.step)
        for step in plan.steps:
            if step.id in self.results:
                called = step.function
                self.produced_by[step.id] = self.kernel.manuals.get(called) if isinstance(called, str) else None
        return failures

    async def run_steps(
        self, plan: Plan, results: dict[str, Any], execute: ExecuteStep, *, within: str = ""
    ) -> list[StepFailed]:
        failures = await run_steps(plan, results, execute)
        steps = {f"{within}{step.id}": step for step in plan.steps}
        known = {record.step.id for record in self.records}
        for failure in failures:
            # A step whose arguments could not be made never began; the planner must see why all the same.
            failed = f"{within}{failure.step}"
            if failed not in known:
                await self.failed(replace(steps[failed], id=failed), failure.__cause__ or failure)
        return failures

    async def failed(self, step: Step, error: BaseException) -> None:
        message = str(error) or type(error).__name__
        await self.note({"type": "step-failed", "step": step.id, "error": message})
        self.records.append(StepRecord(step, error=message))
        self.tell(StepFailure(step, message))

    async def step(self, step: Step, arguments: dict[str, Any]) -> Any:
        try:
            result = await self.filtered(step, arguments)
        except HeldStep as stop:
            await self.note({"type": "step-held", "step": step.id, "reason": stop.hold.reason})
            raise
        except Exception as error:
            await self.failed(step, error)
            raise
        await self.note({"type": "step-finished", "step": step.id, "result": result})
        self.records.append(StepRecord(step, result))
        self.tell(StepFinished(step, result))
        return result

    async def filtered(self, step: Step, arguments: dict[str, Any]) -> Any:
        if not self.kernel.filters.step:
            return await self.call(step, arguments)
        context = StepRun(step, self.name, arguments)

        async def final() -> Any:
            return await self.call(step, context.arguments)

        result = await run_filters(self.kernel.filters.step, context, final)
        if isinstance(result, Hold):
            raise HeldStep(step, result)
        return result

    async def call(self, step: Step, arguments: dict[str, Any]) -> Any:
        # Only now, with the arguments it is given: a step that waits for its filters has not begun.
        self.tell(StepStarted(step, arguments))
        await self.note({"type": "step-started", "step": step.id, "arguments": arguments})
        if isinstance(step.function, Plan):
            return await self.nested(step, step.function)
        function = step.function

        async def action() -> Any:
            return await self.kernel.invoke_json(function, arguments)

        runner = self.kernel.runner
        return await (action() if runner is None else runner.execute(self.name, step.id, action))

    async def nested(self, step: Step, plan: Plan) -> Any:
        results: dict[str, Any] = {}

        async def inner(child: Step, arguments: dict[str, Any]) -> Any:
            return await self.step(replace(child, id=f"{step.id}/{child.id}"), arguments)

        failures = await self.run_steps(plan, results, inner, within=f"{step.id}/")
        if failures:
            cause = failures[0].__cause__ or failures[0]
            raise StepFailed(f"{step.id}/{failures[0].step}", cause) from cause
        return evaluate(plan.result, results) if plan.result is not None else None

    def emit(self, event: Event) -> None:
        if isinstance(event, ChatUsed):
            self.usage += event.usage
            self.services.append(event.service)
        if self.listener is not None:
            self.listener(event)

    def tell(self, event: Event) -> None:
        """Emit what happens to a step, which a listener that raises does not make a failure."""
        try:
            self.emit(event)
        except Exception as error:
            raise Broken(error) from error

    async def note(self, entry: Mapping[str, Any]) -> None:
        if self.run_store is None:
            return
        assert self.lease is not None  # noqa: S101 - taken before the first entry
        try:
            await self.run_store.renew(self.lease, seconds=_LEASE_SECONDS)
            await self.run_store.append(self.lease, [entry])
        except Exception as error:
            raise Broken(error) from error


def _with_fingerprints(plan: Plan, catalogue: Mapping[str, FunctionManual]) -> Plan:
    return replace(plan, fingerprints={name: fingerprint(catalogue[name]) for name in sorted(_functions_used(plan))})


def _functions_used(plan: Plan) -> set[str]:
    used: set[str] = set()
    for step in plan.steps:
        used |= {step.function} if isinstance(step.function, str) else _functions_used(step.function)
    return used


def _count(plan: Plan) -> int:
    """Count the steps of a plan and of the plans nested in it."""
    return sum(1 + (_count(step.function) if isinstance(step.function, Plan) else 0) for step in plan.steps)


def _answer(value: Any) -> Answer:
    if isinstance(value, str):
        return Answer(value, value=value)
    import json

    return Answer(json.dumps(value, ensure_ascii=False, indent=2), value=value)


def _outcome_json(outcome: Answer | Infeasible | Held) -> dict[str, Any]:
    match outcome:
        case Answer():
            return {"text": outcome.text}
        case Infeasible():
            return {"reason": outcome.reason, "missing": list(outcome.missing)}
        case Held():
            return {"reason": outcome.reason, "step": outcome.step}
