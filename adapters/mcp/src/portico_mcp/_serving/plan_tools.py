"""The tools for plans and runs: propose, check, show, run, resume."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Literal

from attrs import define, field

from portico import Paused, PlanReview, RequireApproval, function
from portico.errors import FunctionNotFound, PlanError, PlanFormatError, PorticoError, RunNotFound, StepFailed
from portico.plans import (
    Answer,
    Event,
    Finding,
    Infeasible,
    Plan,
    PlanTemplate,
    RunEvent,
    Step,
    check_plan,
    plan_from_json,
    plan_of,
    plan_to_json,
    plan_to_mermaid,
    plan_to_text,
)
from portico.plugins import RunState
from portico_mcp._serving.calls import Call, Given, escape, links_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcp_types import InputRequiredResult

    from portico import FlowReview, Function, FunctionSpec, Kernel, Run, StepRun


_REASONS = re.compile(r"^(Goal: | +because: | *\d+\. [\w-]+: a nested plan: )(.{300}).+", re.MULTILINE)
"""What only says why, where it is long: in a question it is cut, so that the steps are seen."""
_EXPRESSION = {
    "type": "object",
    "description": 'One of {"value": any JSON}, {"from": "s1", "path": "$.days[0]"} for what a step (or "input") gave, '
    '{"text": [strings and expressions]}, {"list": [expressions]}, {"object": {names and expressions}}.',
}
_FUNCTION = {"description": 'The full name of a function, a plan, or {"template": text, "language": name}.'}
_ARGUMENTS = {"type": "object", "additionalProperties": _EXPRESSION}
_STEP = {"id": {"type": "string"}, "function": _FUNCTION, "arguments": _ARGUMENTS, "after": {"type": "array"}}
_STEPS = {"type": "array", "items": {"type": "object", "properties": _STEP, "required": ["id", "function"]}}
_NOT_SERVED = "it calls a function that is not served"
_WAITS = "it waits for the user to agree"
_PLAN = {"version": {"const": 1}, "goal": {"type": "string"}, "steps": _STEPS, "result": _EXPRESSION}


def with_plan_schema(tool: Function) -> FunctionSpec:
    """Return the manual of a tool with the schema of its parameter ``plan``, if it has one."""
    properties = dict(tool.spec.parameters["properties"])
    if "plan" in properties:
        properties["plan"] = properties["plan"] | {"properties": _PLAN, "required": ["version", "goal", "steps"]}
    return replace(tool.spec, name=tool.name, parameters={**tool.spec.parameters, "properties": properties})


@define
class PlanTools:
    """The tools for the plans and runs of a kernel. ``hidden`` are functions and tools that clients may not call.

    A plan with effects runs only if the client's user approved it, by its digest; otherwise its run is held, and the
    command ``continues`` continues it. A step with a flow that the policy asks about is always held: ``run_resume``
    shows its values, and the user agrees to these. Middleware of the kernel does that, so it must not be that of
    anything else.
    """

    kernel: Kernel
    continues: str
    hidden: frozenset[str] = frozenset()
    _call: ContextVar[Call] = field(factory=lambda: ContextVar("portico_mcp_call"), init=False)
    # Whether a function runs: the application answers for the plans and steps inside of it, not the client.
    _inside: ContextVar[bool] = field(factory=lambda: ContextVar("portico_mcp_inside", default=False), init=False)
    # The questions that wait for their answer, each for one.
    _open: dict[str, str] = field(factory=dict, init=False)
    # The application's own decision about flows.
    _own: Callable[[FlowReview], Awaitable[bool | str]] | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.kernel.approve_plans(self._decide)
        self.kernel.middleware.step.append(self._enter)
        self.kernel.approve_effects(self._decide_step)
        self._own = self.kernel.decide_flow
        self.kernel.approve_flows(self._decide_flow)

    async def carry_out(self, tool: Function, call: Call) -> Any:
        """Call one of the tools for a client."""
        arguments = tool.structure_arguments(call.params.arguments or {}, lenient=True)
        call.approved, call.hidden = "", self.hidden
        token = self._call.set(call)
        try:
            return await tool.callable(**arguments)
        finally:
            # A client in this process calls from one task, so what that does later would have this approval.
            self._call.reset(token)

    async def call(self, call: Call, function: Function) -> Any:
        """Call a function for a client, and tell the client of the steps of a saved plan: its run has no listener."""
        plan = plan_of(function)

        async def work(emit: Callable[[RunEvent], None]) -> Any:
            call.emit, call.hidden = emit, self.hidden
            self._call.set(call)
            return await self.kernel.invoke_json(function, call.params.arguments or {}, lenient=True)

        return await call.carry_out(work, planned=None if plan is None else len(plan.steps))

    @function(name="plan_propose")
    async def propose(self, goal: str) -> Any:
        """Ask the planner for a plan that reaches a goal. Nothing runs; plan_run runs the plan.

        Args:
            goal: What is to be reached, in words.
        """
        kernel, hidden = self.kernel, self._hidden_functions()
        proposal = await self._call.get().carry_out(lambda emit: kernel.propose(goal, emit=emit, exclude=hidden))
        match proposal.outcome:
            case Plan() as plan:
                findings = _findings_to_json(self._findings(plan, None))
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
        try:
            findings = self._findings(plan_from_json(plan), input)
        except PlanFormatError as error:
            findings = [Finding(str(error))]
        ok = all(each.severity != "error" for each in findings)
        return Given({"ok": ok, "findings": _findings_to_json(findings)})

    @function(name="plan_show")
    async def show(self, plan: dict[str, Any], format: Literal["text", "mermaid"] = "text") -> Any:
        """Show a plan to people.

        Args:
            plan: The plan, as plan_propose gives it.
            format: Words, or a flowchart.
        """
        read = plan_from_json(plan)
        if format == "text":
            return Given(plan_to_text(read, catalogue=self._served()))
        return Given(plan_to_mermaid(read, self._findings(read, None)))

    @function(name="plan_run", effects=True)
    async def run(self, plan: dict[str, Any], input: Any = None) -> Any:
        """Check a plan and run it. The user is asked before a plan with effects; it is held where that is impossible.

        It is also held at a step with a value that the user has to see first: run_resume asks about it.

        Args:
            plan: The plan, as plan_propose gives it.
            input: The input of the plan, if it takes one.
        """
        read = plan_from_json(plan)
        findings = self._findings(read, input)
        if wrong := [each for each in findings if each.severity == "error"]:
            words = "The plan cannot run: " + "; ".join(map(str, wrong))
            return Given({"outcome": "refused", "findings": _findings_to_json(findings)}, words, error=True)
        more, policy = _shown({"Input": input}), self.kernel.policy
        asked = [each for each in findings if each.verdict == "ask"]
        if asked and policy is not None and policy.mode == "enforce":
            more += "\nIt uses values that you did not give. It stops before each, and you are asked about the value:"
            more += "".join(f"\n- {escape(str(each))}." for each in asked)
        effects = self.kernel.may_have_effects(read)
        if effects and (stopped := await self._approve(read, more)):
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
        if self.kernel.may_call(waiting) & self.hidden:
            raise PorticoError(
                f"The run {run} cannot be resumed here: {_NOT_SERVED}. "
                f"`{self.continues} {run}` at a terminal continues it."
            )
        exclude = self._hidden_functions()
        decided = bool(retry or results)
        effects = decided or self.kernel.may_have_effects(waiting)
        held = (run, state.step, state.reason) if state.state == "held" and _WAITS in state.reason else None
        if effects or held:
            if (decided or (effects and state.approved)) and not self._call.get().can_ask:
                raise PorticoError(
                    f"The run {run} has effects, and this client cannot ask its user about it. "
                    f"`{self.continues} {run}` at a terminal continues it."
                )
            # Also those that another call gave: no user may have seen them.
            given = {each["step"]: each["result"] for each in entries if each.get("given")} | results
            more = _shown({"Input": state.input, "Steps to run again": list(retry), "Results to take as given": given})
            more += f"\nIt is held at the step {state.step}: {escape(state.reason)}." if held else ""
            if stopped := await self._approve(waiting, more, held, effects=effects):
                return stopped
        return await self._run(
            lambda emit: self.kernel.resume(run, retry=retry, results=results, exclude=exclude, emit=emit)
        )

    async def _approve(
        self, plan: Plan, more: str, held: tuple[str, str | None, str] | None = None, *, effects: bool = True
    ) -> Given | InputRequiredResult | None:
        """Ask the user about effects of a plan, and the values it is held at; return what ends the call, or None.

        What is not approved because the user cannot be asked is held when it runs.
        """
        call = self._call.get()
        if not call.can_ask:
            return None
        digest, words = _digest(plan), _REASONS.sub(r"\1\2…", plan_to_text(plan, catalogue=self.kernel.specs))
        question = ("This has effects. " if effects else "") + ("Run it with these values?" if held else "Run it?")
        answer = await call.ask(f"{words}{more}\n\n{question}", f"{digest}{more}", self._open)
        if answer is True:
            call.approved, call.agreed = digest if effects else "", held
            return None
        return answer or Given(
            {"outcome": "refused"}, "The user did not approve the plan, so it did not run.", error=True
        )

    async def _decide(self, review: PlanReview) -> bool | str:
        """Approve the plan that the user approved, those inside of its functions, and any without effects."""
        call = self._call.get(None)
        if call is None or call.approved is None:
            return True
        answered = _digest(review.plan) == call.approved or (call.approved != "" and self._inside.get())
        return (
            answered or not self.kernel.may_have_effects(review.plan) or "the plan has effects and waits for approval"
        )

    async def _decide_flow(self, review: FlowReview) -> bool | str:
        """Agree to what the user was shown, to the letter; the application decides about its own runs."""
        call = self._call.get(None)
        if call is None or call.approved is None or review.run != call.run:
            return False if self._own is None else await self._own(review)
        values = escape(json.dumps(review.arguments, ensure_ascii=False, sort_keys=True))
        first, *others = (each.why for each in review.flows)
        waits = "; ".join((f"{_WAITS} to {_called_name(review.step)} with {values}", *others))
        return call.agreed == (review.run, review.step.id, f"{first}: {waits}") or waits

    async def _enter(self, run: StepRun, proceed: Callable[[], Awaitable[Any]]) -> Any:
        """Hold a step that calls what is hidden, unless it is inside of a function: no check has seen a template's."""
        call, name = self._call.get(None), run.step.function
        if call is not None and call.emit is not None:
            call.run = call.run or run.run
            if run.run != call.run:  # a function in the plan runs another one
                return await proceed()
            call.emit(Event.StepStarted(run.step, run.arguments))
            try:
                result = await proceed()
            except Exception as error:
                call.emit(Event.StepFailed(run.step, str(error)))
                raise
            call.emit(Event.StepFinished(run.step, result))
            return result
        if call is None or self._inside.get() or isinstance(name, Plan):
            return await proceed()
        if isinstance(name, PlanTemplate):
            try:
                return await proceed()
            except PorticoError as error:
                cause: BaseException | None = error
                while cause is not None and not isinstance(cause, FunctionNotFound):
                    cause = cause.__cause__
                if cause is None or not self.hidden:
                    raise
                # Its own words may name what is hidden.
                meant = [each for each in cause.meant if each not in self.hidden]
                raise PlanError(str(FunctionNotFound(cause.name, list(self._served()), meant=meant))) from error
        if name in self.hidden:
            return RequireApproval(_NOT_SERVED)
        token = self._inside.set(True)
        try:
            return await proceed()
        finally:
            self._inside.reset(token)

    async def _decide_step(self, run: StepRun) -> bool | str:
        """Approve a step with effects of what the user approved: a template may call what no check has found in it."""
        call = self._call.get(None)
        waits = call is not None and call.approved == ""
        return not waits or f"the step {run.step.id} has effects and waits for approval"

    async def _run(
        self, start: Callable[[Callable[[RunEvent], None]], Awaitable[Run]], planned: int | None = None
    ) -> Given:
        """Carry out a run, and return how it ended; a failed run says how to continue it."""
        call = self._call.get()
        try:
            run = await call.carry_out(start, planned=planned)
        except PorticoError as error:
            if not (name := call.run) or self.kernel.run_store is None:
                raise
            step = error.step if isinstance(error, StepFailed) else None
            words = f"{error} It is the run {name}."
            if step and "run_resume" not in self.hidden:
                words += f" run_resume with retry {[step]} tries the step again."
            return Given({"outcome": "failed", "reason": str(error), "step": step, "run": name}, words, error=True)
        match run.outcome:
            case Answer() as answer:
                return _answered(answer, run, self.hidden)
            case Infeasible() as infeasible:
                return _infeasible(infeasible, run.name)
            case paused:
                return self._held(paused, run.name)

    def _held(self, paused: Paused, run: str) -> Given:
        words = f"`{self.continues} {run}` at a terminal asks and continues it"
        possible = paused.reason != _NOT_SERVED and "run_resume" not in self.hidden
        words += "; run_resume does if the client can ask." if possible else "."
        words = "No journal is kept, so it cannot be resumed." if self.kernel.run_store is None else words
        value = {"outcome": "held", "reason": paused.reason, "step": paused.step, "uncertain": paused.uncertain}
        return Given({**value, "run": run}, f"{paused.text}. It is the run {run}. {words}")

    def _served(self) -> dict[str, FunctionSpec]:
        return {name: spec for name, spec in self.kernel.specs.items() if name not in self.hidden}

    def _hidden_functions(self) -> frozenset[str]:
        return self.hidden & self.kernel.functions.keys()

    def _findings(self, plan: Plan, input: Any) -> list[Finding]:
        kernel, known = self.kernel, {} if input is None else {"input": input}
        # First without what is hidden, which no finding may name.
        templates = lambda source, language: kernel.template(source, language=language)  # noqa: E731
        found = check_plan(plan, self._served(), validator=kernel.schema_validator, templates=templates)
        if any(each.severity == "error" for each in found):
            return found
        if kernel.may_call(plan) & self.hidden:
            return [*found, Finding("a template may call a function that is not served")]
        return kernel.check_plan(plan, **known)


def _digest(plan: Plan) -> str:
    document = plan_to_json(replace(plan, fingerprints={}))
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _shown(values: Mapping[str, Any]) -> str:
    # In any order of its members, a value is the same.
    written = {
        name: json.dumps(value, ensure_ascii=False, sort_keys=True)
        for name, value in values.items()
        if value not in (None, [], {})
    }
    return "".join(f"\n{name}: {escape(text)}" for name, text in written.items())


def _findings_to_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    return [
        {
            "severity": each.severity,
            "verdict": each.verdict or None,
            "step": each.step,
            "place": each.place,
            "message": each.words,
        }
        for each in findings
    ]


def _answered(answer: Answer, run: Run | None = None, hidden: frozenset[str] = frozenset()) -> Given:
    value: dict[str, Any] = {"outcome": "answer", "answer": answer.text, "value": answer.value}
    value["citations"] = [asdict(each) for each in answer.citations]
    value["warnings"] = list(answer.warnings)
    links = links_of(answer.citations)
    if run is not None:
        # A plan may have no result: then the results of its steps are what it gives.
        steps = [(each, {"result": each.result} if each.error is None else {"error": each.error}) for each in run.steps]
        value["steps"] = [
            {"id": each.step.id, "function": _called_name(each.step), **ended}
            for each, ended in steps
            if _called_name(each.step) not in hidden
        ]
        value["run"] = run.name
        links = links or links_of(run.passages)
    return Given(value, links=links)


def _called_name(step: Step) -> str:
    return step.function if isinstance(step.function, str) else "a plan or a template"


def _infeasible(infeasible: Infeasible, run: str | None = None) -> Given:
    value = {"outcome": "infeasible", "reason": infeasible.reason, "missing": list(infeasible.missing)}
    return Given(value | ({"run": run} if run else {}))
