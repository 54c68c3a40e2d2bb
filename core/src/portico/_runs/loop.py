"""The one loop that drives every planner."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from portico._chat.attaching import attaching
from portico._chat.messages import ChatReply, Citation, Message, Usage
from portico._chat.spending import spending
from portico._functions.functions import RESULTS_TAG, SEARCH_TAG, FunctionSpec
from portico._functions.middleware import CURRENT_STEP, RequireApproval
from portico._plans.findings import Finding
from portico._plans.functions import known_result
from portico._plans.json_form import plan_to_json
from portico._plans.plan import (
    INPUT,
    Expression,
    From,
    Plan,
    Step,
    TextOf,
    Value,
    around,
    evaluate,
    outermost,
    references,
)
from portico._plans.reuse import find_plan, saved_plan
from portico._plans.task import Answer, Budget, Emit, Event, Refusal, RunEvent, StepRecord, Task
from portico._runs.attempts import causes, may_pass
from portico._runs.checking import check, fingerprints_of, refusal_hold, review_plan, with_fingerprints
from portico._runs.journal import FIXED, refusal_body, used_body
from portico._runs.offer import Offer, find_allowed
from portico._runs.outcome import FinalOutcome, Outcome, Paused, Run, copy_json, outcome_body, state_of
from portico._runs.scheduling import Broken, PausedStep
from portico._runs.spent import ran
from portico._search.results import TextSearchResult
from portico._selection.selection import FunctionsOffered
from portico.errors import FunctionFailed, LimitExceeded, PlanError, PlanInvalid, StepFailed, StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Mapping, Sequence

    from portico._ports.planner import Planner
    from portico._runs.execution import Execution
    from portico._runs.journal import RunState
    from portico._selection.selection import Selection

    _Specs = Mapping[str, FunctionSpec]
    _Records = Sequence[StepRecord]


@dataclass(slots=True)
class Loop:
    """One run at work: what it has so far, and what comes next. Without a planner it runs one plan."""

    execution: Execution
    goal: str
    planner: Planner | None
    budget: Budget
    context: Mapping[str, Any] | None = None
    input: Any = None
    reuse: bool = False
    reused: bool = False
    """Whether the last plan is one that was saved."""
    functions: Collection[str] | None = None
    exclude: Collection[str] = ()
    usage: Usage = field(default_factory=Usage)
    services: list[str] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    refusals: int = 0
    proposals: int = 0
    produced_by: dict[str, FunctionSpec | Mapping[str, Any] | None] = field(default_factory=dict)
    result: Expression | None = None
    failures: list[StepFailed] = field(default_factory=list)
    uncertain: tuple[Step, ...] = ()
    name: str = FIXED
    """What the planner is called where it is configured, so that a run that is resumed finds it."""
    ends: float | None = None
    read: set[str] = field(default_factory=set)
    """The untrusted places that a chat service read by itself, such as the web."""
    cited: tuple[Citation, ...] = ()
    """The pages that chat services found by themselves, and cite."""
    outer: Emit = field(default=lambda event: None)
    """Takes what this run cost, where a step of another run began it."""
    selection: Selection | None = None

    def catalogue(self) -> _Specs:
        """Return the functions that the run's planner may use."""
        return find_allowed(self.execution.kernel, self.functions, self.exclude)

    def load(self, state: RunState) -> None:
        """Take over what an earlier process did."""
        execution = self.execution
        execution.past = state
        execution.ended = {record.step.id: record for record in state.records}
        execution.records = list(state.records)
        execution.warnings += state.warnings
        for record in execution.records:
            execution.take(record)
        execution.results |= {step: result for step, result in state.results.items() if not around(step)}
        self.plans = list(state.plans)
        self.refused = list(state.refused)
        self.proposals, self.reused = state.proposals, state.reused
        self.usage, self.services = state.usage, list(state.services)
        self._note_read(state.read)
        for plan in self.plans:
            self._observe(plan)
            if execution.guard is not None:
                execution.guard.begin(plan)
                execution.guard.end(plan, state.records)
                execution.guard.agreed |= state.agreed
        recorded = execution.recording.finished if execution.recording is not None else ()
        self.uncertain = tuple(state.started[step].step for step in state.uncertain if step not in recorded)

    def run(self, first: Plan | None = None, *, approved: bool = False) -> Awaitable[Run]:
        """Run to the outcome and write it down; ``first`` is a plan to run before the planner is asked."""
        work, recording = partial(self._to_outcome, first, approved), self.execution.recording
        return work() if recording is None else recording.run(work)

    async def _to_outcome(self, first: Plan | None, approved: bool) -> Run:
        execution, self.outer = self.execution, Event.of_run()
        token = Event.taker.set(self._emit_of_step)
        try:
            with (
                spending(self.budget.cost, self.usage),
                attaching((self.context or {}).get("attached", ())) as attached,
            ):
                outcome = await self._in_time(first, approved)
            # A run that continues may have shown it before.
            if attached.parts and not attached.shown and execution.past is None:
                execution.warnings.append("What is attached was not read: no model was asked.")
        except Broken as stop:
            await self._fail(stop.error)
            raise stop.error from stop.error.__cause__
        except Exception as error:
            await self._fail(error)
            raise
        except asyncio.CancelledError:
            with suppress(Broken):
                execution.tell(Event.Ended(execution.run, "interrupted"))
            raise
        finally:
            Event.taker.reset(token)
        try:
            if isinstance(outcome, Answer):
                await self._save_plan()
                outcome = self._cite(outcome)
                warnings = tuple(dict.fromkeys((*execution.warnings, *outcome.warnings)))
                outcome = replace(outcome, warnings=warnings) if warnings else outcome
            read = getattr(outcome, "sources", ()) or execution.passages.sources
            if execution.journal is not None:
                await execution.note("outcome", **outcome_body(outcome))
            if execution.listener is not None:
                execution.tell(Event.Ended(execution.run, *state_of(outcome)))
        except Broken as stop:
            raise stop.error from stop.error.__cause__
        return Run(
            self.goal,
            execution.run,
            self.name,
            outcome,
            self._make_executed_plan(),
            tuple(execution.records),
            self.usage,
            tuple(dict.fromkeys(self.services)),
            self.input,
            self.selection,
            tuple(TextSearchResult(each.text, each.name, each.link) for each in read),
        )

    def _cite(self, answer: Answer) -> Answer:
        """Return an answer with what it cites of the passages that were found, and with what is wrong with that.

        A planner that asks no model has cited its sources by itself.
        """
        execution = self.execution
        if answer.citations or not (execution.searched or self.cited) or not isinstance(answer.value, str | None):
            return answer
        by_planner = self.result is None and not getattr(self.planner, "asks_model", False)
        if self.planner is None:  # only an answering step of the plan writes for people
            by_planner = not any(
                isinstance(spec, FunctionSpec) and spec.is_answer for spec in self.produced_by.values()
            )
        if by_planner:
            return answer
        check = execution.passages.check(ChatReply(Message.of("assistant", answer.text), citations=self.cited))
        return answer.citing(check if execution.searched else replace(check, unbacked=(), uncited=()))

    async def _fail(self, error: Exception) -> None:
        """Write down the failure; a failure of the journal or the listener must not hide it."""
        reason = str(error) or type(error).__name__
        with suppress(Broken):
            cause = next((each for each in causes(error) if not isinstance(each, StepFailed)), error)
            passing = {"passing": True} if may_pass(cause) and not isinstance(cause, FunctionFailed) else {}
            await self.execution.note("outcome", kind="failed", reason=reason, error=type(error).__name__, **passing)
        with suppress(Broken):
            self.execution.tell(Event.Ended(self.execution.run, "failed", reason))

    def _make_executed_plan(self) -> Plan:
        """Return all steps that gave a result as one plan; those of a nested plan are inside their step."""
        records = self.execution.records
        steps = tuple(record.step for record in records if record.error is None and record.step.own)
        schema = next((plan.input for plan in reversed(self.plans) if plan.input is not None), None)
        prints = fingerprints_of(self.execution.kernel, steps)
        return Plan(self.goal, steps, self.result, fingerprints=prints, input=schema)

    async def _in_time(self, first: Plan | None, approved: bool) -> Outcome:
        seconds = self.budget.seconds
        if seconds is None:
            return await self._find_outcome(first, approved)
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                self.ends = deadline.when()
                return await self._find_outcome(first, approved)
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise LimitExceeded(f"The run did not end within its {seconds:g} seconds.") from error

    async def _find_outcome(self, plan: Plan | None, approved: bool) -> Outcome:
        if self.uncertain:
            return self._pause_uncertain()
        if plan is not None and (outcome := await self._run_plan(plan, approved)) is not None:
            return outcome
        if self.planner is None:
            if self.failures:
                raise self.failures[0]
            return Answer("", warnings=("The plan has run. It has no result to give.",))
        if self.reuse and (outcome := await self._run_saved_plan()) is not None:
            return outcome
        offer: Offer | None = None
        while self.proposals < self.budget.proposals:
            kernel, ran = self.execution.kernel, self.execution.records
            if offer is None or offer.known is not kernel.specs or offer.steps not in (None, len(ran)):
                offer = await Offer.make(kernel, self.planner, self.goal, self.emit, self.catalogue(), ran=ran)
                self.selection = offer.selection
            proposal = await offer.ask(kernel, self.planner, self._task(offer), self.emit)
            if isinstance(proposal, FinalOutcome):
                if self.execution.journal is not None:
                    try:
                        copy_json(outcome_body(proposal), "its answer")
                    except ValueError as error:
                        raise TypeError(f"the planner {self.planner.name!r}: {error}") from error
                return proposal
            if not isinstance(proposal, Plan):
                raise TypeError(f"the planner {self.planner.name!r} proposed {proposal!r}: no Plan, Answer, Infeasible")
            self.proposals += 1
            findings = tuple(map(offer.explain, self._check(proposal, offer.specs, offer.every)))
            self.emit(Event.Proposed(proposal, findings))
            if any(finding.severity == "error" for finding in findings) or self._may_be_better(findings):
                await self._refuse(Refusal(proposal, findings))
                continue
            if (outcome := await self._accept(proposal)) is not None:
                return outcome
        if self.failures:
            raise self.failures[0]
        raise LimitExceeded(
            f"The planner made {self.budget.proposals} proposals without an answer. Allow more with the budget's "
            "proposals."
        )

    def _may_be_better(self, findings: Sequence[Finding]) -> bool:
        """Tell whether to ask the planner, once in a run, for a plan that needs no person's agreement.

        One that asks no model has no other plan.
        """
        guard = self.execution.guard
        if (
            not getattr(self.planner, "asks_model", False)
            or guard is None
            or guard.proposed
            or not guard.enforced
            or self.refusals >= self.budget.refusals
        ):
            return False
        guard.proposed = any(finding.verdict for finding in findings)
        return guard.proposed

    async def _run_saved_plan(self) -> Answer | Paused | None:
        """Run the plan that was saved for the goal, if there is one that still can run."""
        kernel = self.execution.kernel
        assert kernel.plan_store is not None  # noqa: S101 - checked when the run began
        allowed = self.catalogue()
        found = await find_plan(kernel.plan_store, self.goal, allowed)
        if found is None:
            return None
        plan, saved_at = replace(found.plan, notes=None), found.saved.saved_at
        if found.stale:
            out = kernel.specs.keys() - allowed.keys()
            why = (f"{each.function}: it is excluded" if each.function in out else str(each) for each in found.stale)
            changes = ". ".join(why)
            self.execution.warnings.append(f"The plan saved at {saved_at} was not used. {changes}.")
            return None
        wrong = [finding for finding in self._check(plan, allowed, allowed) if finding.severity == "error"]
        if wrong:
            self.execution.warnings.append(f"The plan saved at {saved_at} was not used: {wrong[0]}")
            return None
        self.emit(Event.Proposed(plan, saved_at=saved_at))
        edited = ", and edited since," if found.saved.edited else ""
        self.execution.warnings.append(f"A plan saved at {saved_at}{edited} was used again.")
        self.reuse = False
        return await self._accept(plan, reused=True)

    async def _save_plan(self) -> None:
        """Save the plan that led to an answer; a failure is a warning, because the answer is there.

        A plan that was made for an input and does not refer to it may have the input's values in it: it is not saved.
        Nor is one with a flow that the policy asks about: what a person agreed to holds for one run.
        """
        kernel, guard = self.execution.kernel, self.execution.guard
        if not self.reuse or self.planner is None or kernel.plan_store is None:
            return
        if guard is not None and (guard.agreed or guard.warned or guard.unsure):
            return
        plan = self._make_executed_plan()
        reads_input = any(reference.step == INPUT for reference in plan.references())
        if plan.result is None or (self.input is not None and not reads_input):
            return
        try:
            await kernel.plan_store.put(saved_plan(self.goal, plan, self.catalogue(), planner=self.planner.name))
        except StoreError as error:
            self.execution.warnings.append(f"The plan could not be saved: {error}")

    def _task(self, offer: Offer) -> Task:
        budget = self.budget
        left = None if self.ends is None else max(self.ends - asyncio.get_running_loop().time(), 0.0)
        steps, items = ran(self.execution.records)
        return Task(
            self.goal,
            offer.functions,
            tuple(self.execution.records),
            tuple(self.refused),
            replace(
                budget,
                proposals=budget.proposals - self.proposals,
                steps=max(budget.steps - steps, 0),
                items=max(budget.items - items, 0),
                refusals=budget.refusals - self.refusals,
                seconds=left,
                cost=None if budget.cost is None else max(budget.cost - (self.usage.cost or 0.0), 0.0),
            ),
            self.plans[-1].notes if self.plans else None,
            self.context,
            self.input,
            tuple(plan.notes for plan in self.plans[:-1]),
            self.execution.passages.sources,
        )

    def _check(self, plan: Plan, specs: _Specs | None = None, allowed: _Specs | None = None) -> list[Finding]:
        taken = {record.step.id for record in self.execution.records}
        kernel, finished = self.execution.kernel, self.produced_by
        guard = self.execution.guard
        return check(
            kernel, plan, input=self.input, finished=finished, taken=taken, specs=specs, allowed=allowed, guard=guard
        )

    async def _refuse(self, refusal: Refusal, **how: Any) -> None:
        """Give a proposal back to its planner; the journal says ``how`` it came to that."""
        self.refused.append(refusal)
        self.refusals += "by" not in how  # a person may refuse as often as there may be proposals
        if self.execution.journal is not None:
            await self.execution.note("refused", **refusal_body(refusal), **self._read_body(), **how)
        self.emit(Event.Refused(refusal.plan, refusal.findings))
        if self.refusals > self.budget.refusals:
            if self.failures:
                raise self.failures[0]
            raise PlanInvalid([finding for finding in refusal.findings if finding.severity == "error"])

    def _read_body(self) -> dict[str, Any]:
        return {"read": sorted(self.read)} if self.read else {}

    async def _accept(self, plan: Plan, *, reused: bool = False) -> Answer | Paused | None:
        """Run a plan that passed its check."""
        self.refusals, self.reused = 0, reused
        self.plans.append(plan)
        await self._note_plan(plan, **({"reused": True} if reused else {}))
        return await self._run_plan(plan, approved=False)

    async def _note_plan(self, plan: Plan, **how: Any) -> None:
        if self.execution.journal is not None:
            body: dict[str, Any] = {"plan": plan_to_json(with_fingerprints(self.execution.kernel, plan))}
            warnings = list(dict.fromkeys(self.execution.warnings))
            body |= self._read_body() | how | ({"warnings": warnings} if warnings else {})
            await self.execution.note("plan", **body)

    async def _review(self, plan: Plan) -> Plan | Paused | None:
        """Return the plan that may run, which a person may have edited; None where it was refused."""
        execution, planner = self.execution, "" if self.planner is None else self.name
        edits = 0
        while (decided := await review_plan(execution.kernel, plan, execution.run, planner)) is not None:
            hold = decided if isinstance(decided, RequireApproval) else None
            if isinstance(decided, Refusal):
                if self.planner is not None:
                    self.plans.pop()
                    if self.reused:
                        execution.warnings.clear()  # it was not used
                    await self._refuse(Refusal(plan, decided.findings), by="person")
                    return None
                hold = refusal_hold(decided)
            elif isinstance(decided, Plan):
                edits += 1
                if edits > self.budget.proposals:
                    words = f"The plan middleware edited a plan {edits} times and did not let it run."
                    raise LimitExceeded(f"{words} Let it proceed with the plan that it gave.")
                edited = replace(decided, goal=plan.goal, notes=plan.notes)
                allowed = self.catalogue()
                findings = self._check(edited, allowed, allowed)
                if wrong := [finding for finding in findings if finding.severity == "error"]:
                    hold = RequireApproval(f"the edited plan cannot run: {wrong[0]}")
                else:
                    plan = self.plans[-1] = edited
                    await self._note_plan(plan, edited=True)
                    self.emit(Event.Proposed(plan, tuple(findings)))
            if hold is not None:
                self.emit(Event.StepPaused(None, hold.reason))
                return Paused(hold.reason)
        await execution.note("approved")
        return plan

    async def _run_plan(self, plan: Plan, approved: bool) -> Answer | Paused | None:
        execution = self.execution
        if not approved and execution.kernel.middleware.plan:
            reviewed = await self._review(plan)
            if not isinstance(reviewed, Plan):
                return reviewed
            plan = reviewed
        self.refused.clear()
        guard = execution.guard
        if guard is not None:
            guard.begin(plan)
        try:
            self.failures = await execution.plan(plan)
        except PausedStep as stop:
            return Paused(stop.hold.reason, stop.step.id)
        finally:
            if guard is not None:
                guard.end(plan, execution.records)
                execution.warnings += guard.warnings
                guard.warnings.clear()
        self._observe(plan)
        if plan.result is None or self.failures:
            return None
        try:
            answer = Answer.of(evaluate(plan.result, execution.results))
        except LookupError as error:
            if self.planner is None:
                raise PlanError(f"The plan has run, but it has no result to give: {error}.") from error
            await self._refuse(Refusal(plan, (Finding(str(error), place="result"),)), ran=True)
            return None
        if (answering := self._answering(plan, answer.value)) is not None:
            self.emit(Event.Proposed(answering))
            return await self._accept(answering)
        self.result = plan.result
        return answer

    def _answering(self, plan: Plan, value: Any) -> Plan | None:
        """Return the plan that puts into words what searches found, if a plan gave nothing else and a step is left."""
        execution = self.execution
        if self.planner is None or plan.result is None or ran(execution.records)[0] >= self.budget.steps:
            return None
        name = next((spec.name for spec in self.catalogue().values() if spec.is_answer), None)
        found = [From(each.step, each.path) for each in dict.fromkeys(references(plan.result)) if each.step != INPUT]
        steps, known = {each.step for each in found}, execution.kernel.specs
        called = [each.step.function for each in execution.records if outermost(each.step.id) in steps]
        specs = [known[name] for name in called if isinstance(name, str) and name in known]
        searched = bool(specs) and all({SEARCH_TAG, RESULTS_TAG} & spec.tags for spec in specs)
        frame = execution.passages.around(value, empty=searched)
        if name is None or any(spec.is_answer for spec in specs) or not found or frame is None:
            return None
        id = next(Task(self.goal, steps=tuple(execution.records)).fresh_ids())
        shown = TextOf(tuple(part for each in found for part in ("\n", each))[1:])
        sources = plan.result if isinstance(plan.result, TextOf) else shown
        step = Step(id, name, {"question": Value(self.goal), "sources": sources}, reason="It puts this into words.")
        words = TextOf(tuple(part for part in (frame[0], From(id), frame[1]) if part))
        answering = replace(plan, steps=(step,), result=words if any(frame) else From(id))
        return None if any(each.severity == "error" for each in self._check(answering)) else answering

    def _observe(self, plan: Plan) -> None:
        specs, results = self.execution.kernel.specs, self.execution.results
        for step in plan.steps:
            if step.id in results:
                self.produced_by[step.id] = known_result(step, specs)

    def _pause_uncertain(self) -> Paused:
        reasons = []
        for step in self.uncertain:
            reasons.append(
                f"The step {step.id} calls {step.function}, which has effects, and was interrupted: it may have "
                "happened or not. Find out, then run it again or give its result."
            )
            self.execution.tell(Event.StepPaused(step, reasons[-1], uncertain=True))
        return Paused(" ".join(reasons), self.uncertain[0].id, uncertain=True)

    def _emit_of_step(self, event: RunEvent) -> None:
        """Take an event of a function; its words are for people where its step gives the answer."""
        step, result = (CURRENT_STEP.get() or ("", ""))[1], self.plans[-1].result if self.plans else None
        if not isinstance(event, Event.TextDelta) or (result is not None and [*references(result)] == [From(step)]):
            with suppress(Exception):  # what a listener raises is no error of the step
                self.emit(event)

    def emit(self, event: RunEvent) -> None:
        """Take an event of the planner or the loop, and pass it to the listener."""
        if isinstance(event, Event.ChatUsed):
            self.usage += event.usage
            self._note_read(event.untrusted)
            self.services.append(event.service)
            if self.execution.journal is not None:
                self.execution.journal.used = used_body(self.usage, self.services)
            self.cited += event.citations if event.untrusted else ()
            self.outer(event)
        elif isinstance(event, Event.Warned):
            self.execution.warnings.append(event.warning)
        elif isinstance(event, FunctionsOffered):
            self.selection = event.selection
        if self.execution.listener is not None:
            self.execution.listener(event)

    def _note_read(self, places: Collection[str]) -> None:
        self.read.update(places)
        if self.execution.guard is not None:
            self.execution.guard.had_read.update(places)
