"""The structured strategy: one completion for each step, under a schema that allows only valid steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from portico import FunctionSpec, Message
from portico.errors import PlanError, SchemaUnsupported
from portico.plans import (
    INPUT,
    Answer,
    Asking,
    Emit,
    FittedFunctions,
    Infeasible,
    Plan,
    PromptText,
    Refusal,
    Step,
    Task,
    plan_to_json,
    references,
)
from portico.plugins import PlainSchemaValidator, Services, StrictForm
from portico.ports import ChatService, FunctionSelector, SchemaValidator
from portico_structured_planner.choosing import Choice
from portico_structured_planner.config import StructuredSettings
from portico_structured_planner.forms import Bounds
from portico_structured_planner.reading import Call, Finish, Next, read_step
from portico_structured_planner.steps import Forms, Origin, Rules, StepForm, schema_of, step_form

_RULES = """\
You make a plan that reaches a goal by calling functions, one call at a time. You only write the plan: the calls run
later. Answer with one JSON object {"next": …} and nothing else. What stands under "next" is one of these:
"""
_CALL = '{"function": NAME, "reason": "why this step", "arguments": {…}} calls a function.'
_FINISH = (
    '{"function": "%s", "result": {"from": "s2", "path": "$"}} ends the plan; the result is what the goal asks for. '
    "End as soon as the steps give it."
)
_GIVE_UP = (
    '{"function": "%s", "reason": "…", "missing": ["…"]} says that these functions cannot reach the goal, '
    "and what is missing."
)
_ARGUMENTS = """\
Each argument is one of these:
- {"value": …} is a value that the goal itself gives.
- {"from": "s1", "path": "$.date"} is a reference: what the step s1 gives, or one place in it ("$" is the whole).
- {"text": ["Dear ", {"from": "s1", "path": "$"}]} is a text put together.
- null leaves out an argument that may be left out.
What an earlier step gives is referred to, never guessed."""
_COLLECTIONS = """
- {"list": [ARGUMENT, …]} and {"object": {"name": ARGUMENT, …}} have references in them."""
_LOOPS = """
Two more may stand before the arguments; what is not needed is %s:
- "each": {"items": {"from": "s1", "path": "$.people"}} runs the call for each item of a list, and gives the list of all
results. Its arguments refer to the item: {"from": "item", "path": "$.name"}.
- "when": {"true": REFERENCE}, {"present": REFERENCE}, {"equal": [REFERENCE, {"value": "x"}]}, or {"not": …} around one,
runs the call only where this holds; else it gives null. With "each" it may be on the item."""
_MOST = 1_500
_MOST_FAULTS = 12
_FAILURES = 4
_SHOWN = ("function", "each", "when", "arguments")


def rules_of(form: StepForm, *, held: bool) -> str:
    """Return the words that say how to write a step."""
    ends = [_FINISH % form.finish, *([_GIVE_UP % form.give_up] if form.rules.give_up else [])]
    arguments = _ARGUMENTS if held else _ARGUMENTS.replace("\n- null", f"{_COLLECTIONS}\n- null")
    loops = _LOOPS % ("null" if held else "left out") if form.rules.loops else ""
    return f"{_RULES}- " + "\n- ".join([_CALL, *ends]) + f"\n{arguments}{loops}"


def opening_messages(task: Task, system: Message, form: StepForm, context_tokens: int) -> list[Message]:
    """Return the first messages: the rules, then the goal and the steps so far."""
    before = "\n".join(PromptText.conversation(task, context_tokens))
    parts = [*([before] if before else []), f"The goal: {task.goal}"]
    if task.input is not None:
        parts.append(
            f'The goal comes with an input. A reference to it is {{"from": "input", "path": "$"}}. '
            f"It is {_format_value(task.input)}"
        )
    parts += [*_finished_steps(task), *_refused_plans(task.refused)]
    parts.append(_question(form, "next" if task.steps else "first"))
    return [system, Message.of("user", "\n\n".join(parts))]


def step_messages(reply: str, id: str, returns: Mapping[str, Any], form: StepForm) -> list[Message]:
    """Return the reply that became a step, and the answer to it; ``form`` is that of the step after it."""
    return [
        Message.of("assistant", reply),
        Message.of("user", f"This is the step {id}. It gives: {PromptText.shape(returns)}\n{_question(form, 'next')}"),
    ]


def _question(form: StepForm, which: str) -> str:
    if not form.functions:
        return "No more calls fit into this plan: end it."
    listed = f" It is one of: {', '.join(form.names)}." if len(form.functions) <= len(form.rules.left_out) else ""
    return f"What is the {which} step?{listed}"


def ask_again(problem: str) -> str:
    """Return the answer to a reply that is not a step."""
    return f"That is no valid step: {problem[:_MOST]}\nWrite this step again, as one JSON object."


def _format_value(value: Any) -> str:
    """Return a JSON value as text, cut if it is long."""
    return _short(PromptText.line(value))


def _finished_steps(task: Task) -> Iterable[str]:
    for record in task.own_steps:
        (written,) = plan_to_json(Plan("", (record.step,)))["steps"]
        call = _format_value({key: written[key] for key in _SHOWN if key in written})
        if record.skipped:
            yield f"The step {record.step.id} gave null: {call}\n{task.explain(record)}"
        elif record.error is None:
            yield f"The step {record.step.id} has run: {call}\nIt gave: {_format_value(record.result)}"
        else:
            yield f"The step {record.step.id} failed: {call}\nThe error: {_format_value(task.explain(record))}"


def _refused_plans(refusals: Iterable[Refusal]) -> Iterable[str]:
    for refusal in refusals:
        faults = "\n".join(f"- {finding}" for finding in refusal.findings[:_MOST_FAULTS])
        steps = _format_value(plan_to_json(refusal.plan)["steps"])
        yield f"This plan was refused: {steps}\nThe reasons:\n{faults}"


def _short(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"


_OPEN: dict[str, Any] = {}
_ELEMENTS = 16
"""Elements of a list that the model writes, at most; more where a function needs more."""


class StructuredPlanner:
    """Write a plan step by step, so that an invalid one cannot be written.

    Each step is one completion under its own JSON Schema: the functions are constants, arguments follow the function's
    schema, and references lead only to values of earlier steps that always fit. The plan is proposed whole, with its
    result. With ``one_step`` each step is a proposal, and the next one sees its result. A service without response
    schemas gets the form in words. Every reply is checked, and sent back with its faults at most ``repairs`` times.

    Raises ``PlanError`` if no function can be called, if a step is still invalid after the repairs, and if too many
    steps in a row failed; and the errors of the chat service.
    """

    name = "structured"
    asks_model = True

    def __init__(self, settings: StructuredSettings, services: Services) -> None:
        self._settings = settings
        self._services = services
        self._catalogue: Sequence[FunctionSpec] = ()
        self._forms = Forms()

    async def propose(self, task: Task, *, emit: Emit) -> Plan | Answer | Infeasible:
        """Return the plan, or its next step with ``one_step``, or why the goal is infeasible."""
        task.require_functions()
        self._stop_after_failures(task)
        chat = self._services.get(ChatService, self._settings.chat)
        has_validator = self._services.names(SchemaValidator)
        validator = self._services.get(SchemaValidator) if has_validator else PlainSchemaValidator()
        if self._catalogue != task.functions:
            self._catalogue, self._forms = task.functions, Forms()
        return await _PlanWriter(self._settings, self._services, self._forms, task, chat, validator, emit).plan()

    def _stop_after_failures(self, task: Task) -> None:
        failed = list(takewhile(lambda record: record.error is not None, reversed(task.own_steps)))
        if len(failed) > _FAILURES:
            shown = "; ".join(f"{record.step.id}: {record.error}" for record in failed[:3])
            raise PlanError(f"The last {len(failed)} steps failed, and no other plan is made. The latest: {shown}")


@dataclass(slots=True)
class _PlanWriter:
    """One proposal being written."""

    settings: StructuredSettings
    services: Services
    forms: Forms
    task: Task
    chat: ChatService
    validator: SchemaValidator
    emit: Emit
    steps: list[Step] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    choice: Choice = field(init=False)

    async def plan(self) -> Plan | Infeasible:
        self.origins = list(self.find_origins())
        tokens = self.settings.manual_tokens
        spec = FittedFunctions.of(self.task.functions, self.task.goal, tokens=tokens, write=PromptText.signatures)
        selector = self.services.get(FunctionSelector) if self.services.names(FunctionSelector) else None
        self.choice = Choice(spec.functions, self.task.goal, selector, self.settings.choices, self.emit)
        returns = {each.name: each.returns for each in self.task.functions}
        form = await self.form()
        rules = rules_of(form, held=self.held)
        told = {"goal": self.task.goal, "rules": rules, "functions": spec.text}
        system = await Asking.system(f"{rules}\n\nThe functions:\n{spec.text}", self.settings, self.services, **told)
        self.messages = opening_messages(self.task, system, form, self.settings.context_tokens)
        while True:
            following, reply = await self.next(form)
            if isinstance(following, Infeasible):
                return spec.explain(following)
            if isinstance(following, Finish):
                return self.make_plan(following)
            step = Step("", following.function, following.arguments, each=following.each, when=following.when)
            if step in [replace(before, id="", after=(), reason="") for before in self.done[-1:]]:
                form = await self.form(repeated=following)
                continue
            id = next(self.task.fresh_ids([step.id for step in self.steps]))
            step = replace(step, id=id, reason=following.reason)
            self.steps.append(step)
            if self.settings.one_step:
                return self.make_plan(None)
            gives = step.result_schema(returns[following.function])
            self.origins.append(Origin(step.id, (gives,)))
            form = await self.form()
            self.messages += step_messages(reply, step.id, gives, form)

    def make_plan(self, end: Finish | None) -> Plan:
        result = None if end is None else end.result
        used = [result, *(each for step in self.steps for each in step.expressions())]
        uses_input = any(each.step == INPUT for one in used if one is not None for each in references(one))
        return Plan(self.task.goal, tuple(self.steps), result, input=schema_of(self.task.input) if uses_input else None)

    def find_origins(self) -> list[Origin]:
        """Return what the first step can refer to: the input and the steps that have run."""
        returns = {each.name: each.returns for each in self.task.functions}
        found = [] if self.task.input is None else [Origin(INPUT, (schema_of(self.task.input),))]
        for record in self.task.own_steps:
            if record.error is None:
                # The actual result may fit where its declared type might not.
                function = record.step.function
                declared = returns.get(function, _OPEN) if isinstance(function, str) else _OPEN
                gives = record.step.result_schema(declared)
                found.append(Origin(record.step.id, (gives, schema_of(record.result))))
        return found

    @property
    def held(self) -> bool:
        return self.chat.capabilities.response_schema

    @property
    def done(self) -> list[Step]:
        return [*(record.step for record in self.task.own_steps if record.error is None), *self.steps]

    async def form(self, repeated: Call | None = None) -> StepForm:
        """Return the form of the next step; ``repeated`` is a reply that calls again what was just called."""
        functions, called = self.choice.functions, {str(step.function) for step in self.done}
        last = self.done[-1].function if self.done else None
        idle = [spec.name for spec in functions if spec.name == last and not spec.parameters.get("properties")]
        barred = dict.fromkeys([repeated.function] if repeated else idle, "It was just called with equal arguments.")
        ends = len(self.steps) + len(self.task.own_steps) >= self.settings.min_steps or self.steps_left() < 1
        chosen = [await self.choice.choose(called, ends=ends)] if self.steps_left() > 0 else []
        for fitting, may_end in (*chosen, (functions, ends), (functions, True)):
            fit = {spec.name for spec in fitting}
            others = [spec for spec in functions if spec.name not in fit]
            left_out = {**{spec.name: "It does not fit what is missing." for spec in others}, **barred}
            form = self.make_form((*fitting, *others), left_out, may_end)
            if form.functions or form.can_finish:
                return form
        if not form.can_give_up:
            raise PlanError(self.nothing_left(form))
        return form

    def make_form(self, functions: Sequence[FunctionSpec], left_out: Mapping[str, str], ends: bool) -> StepForm:
        """Return the form of a step, without strict mode if the schema is too large for it."""
        strict = self.held and self.chat.capabilities.strict
        rules = Rules(
            Bounds(None if strict else self.settings.text_length, _ELEMENTS, levels=not strict),
            calls=self.steps_left() > 0,
            ends=ends,
            give_up=self.settings.give_up,
            force_references=self.settings.force_references,
            loops=self.settings.loops,
            left_out=left_out,
        )
        form = step_form(functions, self.origins, self.forms, rules)
        if strict:
            with suppress(SchemaUnsupported):
                return replace(form, schema=StrictForm.limit(form.schema), strict=True)
        return form

    def nothing_left(self, form: StepForm) -> str:
        if form.left_out:
            shown = "; ".join(f"{name}: {reason}" for name, reason in list(form.left_out.items())[:5])
            return f"No function can be called. {shown}"
        return "No step can be written any more, and nothing was found that could be the result."

    def steps_left(self) -> int:
        if self.settings.one_step:
            if self.task.budget.proposals <= 1:
                return 0
            run = len(self.task.own_steps)
            return min(self.settings.max_steps - run, self.task.budget.steps)
        return min(self.settings.max_steps, self.task.budget.steps) - len(self.steps)

    async def next(self, form: StepForm) -> tuple[Next, str]:
        """Ask until a step is valid; return it with the reply. Raises ``PlanError``."""
        settings = self.settings
        request = replace(
            Asking.request(self.messages, settings),
            response_schema=form.schema if self.held else None,
            response_name="step",
            response_strict=form.strict,
            max_tokens=settings.max_tokens if "max_tokens" in self.chat.capabilities.sampling else None,
        )
        return await Asking.until_usable(
            self.chat,
            request,
            self.emit,
            read=lambda text: read_step(text, form, self.validator, held=self.held),
            repair=ask_again,
            repairs=settings.repairs,
        )
