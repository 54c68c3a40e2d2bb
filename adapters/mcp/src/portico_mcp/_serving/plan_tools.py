"""The tools for plans and runs: propose, check, show, run, resume."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from attrs import define, field

from portico import Paused, PlanReview, function
from portico.errors import PorticoError, RunNotFound, StepFailed
from portico.plans import (
    Answer,
    Event,
    Finding,
    Infeasible,
    Plan,
    RunEvent,
    Step,
    plan_from_json,
    plan_of,
    plan_to_json,
    plan_to_mermaid,
    plan_to_text,
)
from portico.plugins import RunState
from portico_mcp._serving.calls import Call, Given, links_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcp_types import InputRequiredResult

    from portico import Kernel, Run, StepRun


_WAITS = "the plan has effects and waits for approval"


@define
class PlanTools:
    """The tools for the plans and runs of a kernel. ``hidden`` are functions that clients may not call.

    A plan with effects runs only if the user of the client approved this plan, by its digest; otherwise its run is
    held. `plan` middleware of the kernel does that, so it must not be the kernel of anything else.
    """

    kernel: Kernel
    hidden: Collection[str] = ()
    _call: ContextVar[Call] = field(factory=lambda: ContextVar("portico_mcp_call"), init=False)
    # The digest of the approved plan, empty for none; not set while a client calls a function.
    _approved: ContextVar[str | None] = field(
        factory=lambda: ContextVar("portico_mcp_approved", default=None), init=False
    )

    # The questions that wait for their answer, each for one.
    _open: dict[str, str] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.kernel.approve_plans(self._decide)
        self.kernel.approve_effects(self._decide_step)

    async def carry_out(self, call: Call, tool: Callable[..., Awaitable[Any]], arguments: Mapping[str, Any]) -> Any:
        """Call one of the tools for a client."""
        tokens = self._call.set(call), self._approved.set("")
        try:
            return await tool(**arguments)
        finally:
            # A client in this process calls from one task, so a later call would have this one's approval.
            self._call.reset(tokens[0])
            self._approved.reset(tokens[1])

    @function(name="plan_propose")
    async def propose(self, goal: str) -> Any:
        """Ask the planner for a plan that reaches a goal. Nothing runs; plan_run runs the plan.

        Args:
            goal: What is to be reached, in words.
        """
        proposal = await self._carry_out(lambda emit: self.kernel.propose(goal, exclude=self.hidden, emit=emit))
        match proposal.outcome:
            case Plan() as plan:
                findings = _findings_to_json(proposal.findings)
                return Given({"outcome": "plan", "plan": plan_to_json(plan), "findings": findings})
            case Answer() as answer:
                return _answered(answer)
            case infeasible:
                return _infeasible(infeasible)

    @function(name="plan_check")
    async def check(self, plan: dict[str, Any], input: Any = None) -> Any:
        """Check a plan against the functions that there are. Nothing runs.

        Args:
            plan: The plan, as plan_propose gives it.
            input: The input of the plan, if it takes one.
        """
        findings = self._findings(plan_from_json(plan), input)
        return Given({"ok": not any(map(_is_error, findings)), "findings": _findings_to_json(findings)})

    @function(name="plan_show")
    async def show(self, plan: dict[str, Any], format: Literal["text", "mermaid"] = "text") -> Any:
        """Show a plan to people.

        Args:
            plan: The plan, as plan_propose gives it.
            format: Words, or a flowchart.
        """
        read = plan_from_json(plan)
        return Given(plan_to_text(read, catalogue=self.kernel.specs) if format == "text" else plan_to_mermaid(read))

    @function(name="plan_run", effects=True)
    async def run(self, plan: dict[str, Any], input: Any = None) -> Any:
        """Check a plan and run it. The user is asked before a plan with effects; it is held where that is impossible.

        Args:
            plan: The plan, as plan_propose gives it.
            input: The input of the plan, if it takes one.
        """
        read = plan_from_json(plan)
        findings = self._findings(read, input)
        if wrong := [each for each in findings if _is_error(each)]:
            words = "The plan cannot run: " + "; ".join(map(str, wrong))
            return Given({"outcome": "refused", "findings": _findings_to_json(findings)}, words, error=True)
        if stopped := await self._approve(read, _shown({"Input": input})):
            return stopped
        return await self._run(lambda emit: self.kernel.run_plan(read, input=input, emit=emit), len(read.steps))

    @function(name="run_resume", effects=True)
    async def resume(self, run: str, retry: list[str] = [], results: dict[str, Any] = {}) -> Any:  # noqa: B006 - read only
        """Continue a run that is held, failed or was interrupted. Steps that finished do not run again.

        Args:
            run: The name of the run.
            retry: The ids of steps to run again.
            results: The results of steps, by id, for those that are known to have happened.
        """
        store = self.kernel.run_store
        entries = [] if store is None else await store.read(run)
        if store is None or not entries:
            raise RunNotFound(run, [] if store is None else await store.runs())
        state = RunState.of(entries)
        waiting = state.plan if state.plan is not None and state.pending else Plan(state.goal)
        if hidden := list(self._hidden(waiting)):
            raise PorticoError(f"The run {run} cannot be resumed here: {hidden[0]}.")
        decided = bool(retry or results)
        if decided or self.kernel.may_have_effects(waiting):
            if (decided or state.approved) and not self._call.get().can_ask:
                raise PorticoError(
                    f"The run {run} has effects, and this client cannot ask its user about it. "
                    f"`portico resume {run}` at a terminal continues it."
                )
            # Also those that another call gave: no user may have seen them.
            given = {each["step"]: each["result"] for each in entries if each.get("given")} | results
            more = {"Input": state.input, "Steps to run again": list(retry), "Results to take as given": given}
            if stopped := await self._approve(waiting, _shown(more), decided=decided):
                return stopped
        return await self._run(lambda emit: self.kernel.resume(run, retry=retry, results=results, emit=emit))

    async def _approve(self, plan: Plan, more: str, *, decided: bool = False) -> Given | InputRequiredResult | None:
        """Ask the user about a plan with effects; return what ends the call, or None where it continues.

        What is not approved because the user cannot be asked is held when it runs. With ``decided`` the client has
        decided about steps, which is asked about in any case.
        """
        call = self._call.get()
        if not call.can_ask or not (decided or self.kernel.may_have_effects(plan)):
            return None
        digest, words = _digest(plan), plan_to_text(plan, catalogue=self.kernel.specs)
        asked = hashlib.sha256(f"{digest}{more}".encode()).hexdigest()
        answer = await call.ask(f"{words}{more}\n\nThis has effects. Run it?", asked, self._open)
        if answer is True:
            self._approved.set(digest)
            return None
        return answer or Given(
            {"outcome": "refused"}, "The user did not approve the plan, so it did not run.", error=True
        )

    async def _decide(self, review: PlanReview) -> bool | str:
        """Approve the plan that the user approved, one without effects, and those that the application has saved."""
        approved = self._approved.get()
        if approved is None or _digest(review.plan) == approved or not self.kernel.may_have_effects(review.plan):
            return True
        return any(plan_of(each) == review.plan for each in self.kernel.functions.values()) or _WAITS

    async def _decide_step(self, run: StepRun) -> bool | str:
        """Approve a step with effects of what the user approved: a template may call what no check has found in it."""
        approved = self._approved.get()
        if approved is not None and run.step.function in self.hidden:
            return f"the function {run.step.function!r} is not served"
        return approved != "" or f"the step {run.step.id} has effects and waits for approval"

    async def _carry_out(
        self, work: Callable[[Callable[[RunEvent], None]], Awaitable[Any]], planned: int | None = None
    ) -> Any:
        return await self._call.get().carry_out(work, planned=planned)

    async def _run(
        self, start: Callable[[Callable[[RunEvent], None]], Awaitable[Run]], planned: int | None = None
    ) -> Given:
        """Carry out a run, and return how it ended; a failed run says how to continue it."""
        name = ""

        async def work(emit: Callable[[RunEvent], None]) -> Run:
            def take(event: RunEvent) -> None:
                nonlocal name
                if isinstance(event, Event.RunStarted):
                    name = event.run
                emit(event)

            return await start(take)

        try:
            run = await self._carry_out(work, planned)
        except PorticoError as error:
            if not name or self.kernel.run_store is None:
                raise
            step = error.step if isinstance(error, StepFailed) else None
            words = f"{error} It is the run {name}."
            words += f" run_resume with retry {[step]} tries the step again." if step else ""
            return Given({"outcome": "failed", "reason": str(error), "step": step, "run": name}, words, error=True)
        match run.outcome:
            case Answer() as answer:
                return _answered(answer, run)
            case Infeasible() as infeasible:
                return _infeasible(infeasible, run.name)
            case paused:
                return self._held(paused, run.name)

    def _held(self, paused: Paused, run: str) -> Given:
        words = f"{paused.text}. It is the run {run}. "
        if self.kernel.run_store is None:
            words += "No journal is kept, so it cannot be resumed."
        else:
            words += (
                f"`portico resume {run}` at a terminal asks and continues it; so does run_resume if the client can ask."
            )
        value = {"outcome": "held", "reason": paused.reason, "step": paused.step, "uncertain": paused.uncertain}
        return Given({**value, "run": run}, words)

    def _findings(self, plan: Plan, input: Any) -> list[Finding]:
        known = {} if input is None else {"input": input}
        return [*(Finding(words) for words in self._hidden(plan)), *self.kernel.check_plan(plan, **known)]

    def _hidden(self, plan: Plan) -> Iterator[str]:
        """Yield a sentence for each function that a plan calls and clients may not."""
        for name in sorted(self.kernel.may_call(plan) & {*self.hidden}):
            yield f"the function {name!r} is not served"


def _digest(plan: Plan) -> str:
    document = plan_to_json(replace(plan, fingerprints={}))
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _shown(values: Mapping[str, Any]) -> str:
    return "".join(f"\n{name}: {json.dumps(value)}" for name, value in values.items() if value not in (None, [], {}))


def _is_error(finding: Finding) -> bool:
    return finding.severity == "error"


def _findings_to_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    return [
        {"severity": each.severity, "step": each.step, "place": each.place, "message": each.words} for each in findings
    ]


def _answered(answer: Answer, run: Run | None = None) -> Given:
    value: dict[str, Any] = {"outcome": "answer", "answer": answer.text, "value": answer.value}
    value["citations"] = [
        {"number": each.number, "name": each.name, "link": each.link, "quote": each.quote} for each in answer.citations
    ]
    value["warnings"] = list(answer.warnings)
    links = links_of(answer.citations)
    if run is not None:
        # A plan may have no result: then the results of its steps are what it gives.
        steps = [(each, {"result": each.result} if each.error is None else {"error": each.error}) for each in run.steps]
        value["steps"] = [{"id": each.step.id, "function": _called_name(each.step), **ended} for each, ended in steps]
        value["run"] = run.name
        links = links or links_of(run.passages)
    return Given(value, links=links)


def _called_name(step: Step) -> str:
    return step.function if isinstance(step.function, str) else "a plan or a template"


def _infeasible(infeasible: Infeasible, run: str | None = None) -> Given:
    value = {"outcome": "infeasible", "reason": infeasible.reason, "missing": list(infeasible.missing)}
    return Given(value | ({"run": run} if run else {}))
