"""The stepwise strategy: a thought, an action, its observation, and again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from portico import ChatCapabilities, ChatRequest, FunctionSpec, Message
from portico.errors import FunctionNotFound, PlanError, PlanFormatError, SchemaUnsupported
from portico.plans import (
    Answer,
    Asking,
    Emit,
    Event,
    Expression,
    FittedFunctions,
    From,
    Infeasible,
    ModelCall,
    Plan,
    PromptText,
    ReplyProblem,
    Step,
    Task,
    Value,
)
from portico.plugins import JsonSchema, Mismatch, Services, StrictForm
from portico.ports import ChatService
from portico_stepwise_planner._prompt import AIM, OBSERVATION_STOP, conversation, fault_message, form_of_turns
from portico_stepwise_planner._reading import Action, Final, read_reply
from portico_stepwise_planner.config import StepwiseSettings

_LONGEST_THOUGHT = 2_000
_SHOWN = 200
_FAILURES = 3
_REPEATS = 3
_SENT_BACK = 2_000
_REFERENCE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "from": {"type": "string", "maxLength": 100, "description": "The id of an earlier step."},
        "path": {"type": "string", "maxLength": 500, "description": 'Where in its result: "$" is the whole.'},
    },
    "required": ["from", "path"],
    "additionalProperties": False,
}
"""It names no steps, so that the same schema is sent again; the check knows which steps there are."""


@dataclass(frozen=True, slots=True)
class TurnSchema:
    """A schema, perhaps in strict form, and the way to decode replies to it."""

    schema: Mapping[str, Any]
    form: StrictForm | None = None

    def decode(self, text: str) -> str:
        """Return a reply without strict form. Raises `ReplyProblem` for a reply of another form."""
        if self.form is None or self.form.identity:
            return text
        try:
            return json.dumps(self.form.decode(json.loads(text)), ensure_ascii=False)
        except (ValueError, RecursionError, Mismatch) as error:
            raise ReplyProblem(f"the reply is not of the form asked for: {error}") from error


def turn_schema(
    functions: Sequence[FunctionSpec], infeasible: str | None, capabilities: ChatCapabilities, *, references: bool
) -> TurnSchema | None:
    """Return the schema of a thought with a call or with the final answer; None if the service takes no schemas.

    ``infeasible`` is the name that says that no function helps; None if the model must answer. It is in strict form if
    the service takes that and the schema fits. With ``references`` an argument may be a reference; they are left out if
    strict form cannot hold them.
    """
    if not capabilities.response_schema:
        return None
    schema = _turn(functions, infeasible, references=references)
    if not capabilities.strict:
        return TurnSchema(schema)
    for tried in (schema, _turn(functions, infeasible, references=False)) if references else (schema,):
        try:
            form = StrictForm.of(tried)
        except SchemaUnsupported:
            continue
        return TurnSchema(form.schema, form)
    return TurnSchema(schema)


def _turn(functions: Sequence[FunctionSpec], infeasible: str | None, *, references: bool) -> Mapping[str, Any]:
    definitions: dict[str, Mapping[str, Any]] = {}
    taken = [(spec.name, JsonSchema.hoist(spec.parameters, definitions)) for spec in functions]
    if references and functions:
        reference = JsonSchema.free_name("reference", definitions)
        definitions[reference] = _REFERENCE
        taken = [(name, _or_references(parameters, f"#/$defs/{reference}")) for name, parameters in taken]
    actions = [_call(name, parameters) for name, parameters in taken]
    if infeasible is not None:
        lacking = {"type": "array", "items": {"type": "string"}, "maxItems": 20}
        reason = {"type": "string", "maxLength": _LONGEST_THOUGHT}
        actions.append(_call(infeasible, _object({"reason": reason, "missing": lacking})))
    actions.append(_object({"final": {"type": "string"}}))
    thought = {"type": "string", "maxLength": _LONGEST_THOUGHT}
    return JsonSchema.attach(
        _object({"thought": thought, "action": {"anyOf": actions} if len(actions) > 1 else actions[0]}), definitions
    )


def _or_references(parameters: Mapping[str, Any], reference: str) -> Mapping[str, Any]:
    """Let each parameter be a reference too. A default stays beside the alternatives, where strict form expects it."""
    properties = parameters.get("properties")
    if not isinstance(properties, Mapping):
        return parameters
    either: dict[str, Any] = {}
    for name, schema in properties.items():
        own = dict(schema) if isinstance(schema, Mapping) else schema
        beside = {"default": own.pop("default")} if isinstance(own, dict) and "default" in own else {}
        either[name] = {"anyOf": [own, {"$ref": reference}], **beside}
    return {**parameters, "properties": either}


def _call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return _object({"function": {"type": "string", "enum": [name]}, "arguments": arguments})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class _Offer:
    """What a turn offers: the functions, the schema, and the name that says that no function helps."""

    fitted: FittedFunctions
    schema: TurnSchema | None
    infeasible: str


class StepwisePlanner:
    r"""Let a model choose one call at a time, each with the results of the earlier ones before it.

    >>> from portico import Kernel, function
    >>> from portico_testkit.fakes.chat_service import ScriptedChat
    >>> from portico_testkit.fakes.services import FixedServices
    >>> @function
    ... def today() -> str:
    ...     return "1 May"
    >>> kernel = Kernel()
    >>> _ = kernel.add_function(today)
    >>> chat = ScriptedChat('Thought: The date first.\nAction: {"function": "today"}', "Final answer: It is 1 May.")
    >>> planner = StepwisePlanner(StepwiseSettings(), FixedServices({ChatService: chat}))
    >>> run = kernel.run_sync(kernel.run_goal("Which day is it?", planner=planner))
    >>> run.outcome.text, [step.reason for step in run.plan.steps]
    ('It is 1 May.', ['The date first.'])

    Each proposal is one reply of the model: a plan of one step, the answer, or that the goal is infeasible. The prompt
    is made from the task alone. A reply that cannot be read is sent back some times; then ``PlanError`` says what was
    wrong. Several failed steps in a row raise it too. A call with findings is refused, and the model reads them.
    """

    name = "stepwise"
    asks_model = True

    def __init__(self, settings: StepwiseSettings, services: Services) -> None:
        self._settings = settings
        self._services = services

    async def propose(self, task: Task, *, emit: Emit) -> Plan | Answer | Infeasible:
        """Return the next call as a plan of one step, the answer, or why the goal is infeasible."""
        task.require_functions()
        task, cite = Asking.in_words(task)
        self._give_up(task)
        chat = self._services.get(ChatService, self._settings.chat)
        offer = self._offer(task, chat)
        form = form_of_turns(offer.infeasible, objects=offer.schema is not None)
        aim = AIM + cite
        told = {"goal": task.goal, "rules": f"{aim}\n\n{form}", "functions": offer.fitted.text}
        own = f"{aim}\n\nThe functions:\n\n{offer.fitted.text}\n\n{form}"
        system = await Asking.system(own, self._settings, self._services, **told)
        turn = await self._turn(chat, self._request(task, chat, offer, system), offer, task, emit)
        if isinstance(turn, Final):
            return Answer(turn.text, value=turn.value)
        if isinstance(turn, Infeasible):
            return offer.fitted.explain(turn)
        return Plan(task.goal, (turn,))

    def _offer(self, task: Task, chat: ChatService) -> _Offer:
        """Return what is offered in this turn."""
        infeasible = JsonSchema.free_name("infeasible", {spec.name for spec in task.functions})
        tokens = self._settings.manual_tokens
        fitted = FittedFunctions.of(task.functions, task.goal, tokens=tokens, write=PromptText.signatures)
        last = self._is_last_turn(task)
        results = any(record.error is None for record in task.own_steps)
        # On the last turn the model must answer. A small model would call functions as long as there are any.
        schema = turn_schema(
            () if last else fitted.functions,
            None if last and results else infeasible,
            chat.capabilities,
            references=results or task.input is not None,
        )
        return _Offer(fitted, schema, infeasible)

    def _give_up(self, task: Task) -> None:
        """Stop after several failures in a row: a model that sees only errors repeats them."""
        last = task.own_steps[-_FAILURES:]
        if len(last) == _FAILURES and all(record.error is not None for record in last):
            raise PlanError(
                f"The last {_FAILURES} steps failed, so the planner gives up. The last one, {last[-1].step.id}: "
                f"{last[-1].error}"
            )

    def _is_last_turn(self, task: Task) -> bool:
        """Tell whether the model must answer: the budget is used up, or it repeats the same call."""
        budget = task.budget
        return budget.proposals <= 1 or budget.steps <= 0 or task.repeats() >= _REPEATS

    def _request(self, task: Task, chat: ChatService, offer: _Offer, system: Message) -> ChatRequest:
        schema = offer.schema
        messages = conversation(task, system, self._settings, objects=schema is not None, last=self._is_last_turn(task))
        stops = schema is None and "stop" in chat.capabilities.sampling
        request = replace(Asking.request(messages, self._settings), stop=(OBSERVATION_STOP,) if stops else ())
        if schema is None:
            return request
        strict = schema.form is not None
        return replace(request, response_schema=schema.schema, response_name="turn", response_strict=strict)

    async def _turn(
        self, chat: ChatService, request: ChatRequest, offer: _Offer, task: Task, emit: Emit
    ) -> Step | Final | Infeasible:
        """Ask until a turn can be read; the model gets what was wrong."""
        added: tuple[Message, ...] = ()
        for attempt in range(self._settings.repairs + 1):
            asked = replace(request, messages=(*request.messages, *added))
            reply = await Asking.ask(chat, asked, emit, cut=True)
            try:
                text = reply.text if offer.schema is None else offer.schema.decode(reply.text)
                turn = _interpret(read_reply(text), offer, task)
            except ReplyProblem as fault:
                Asking.require_whole(reply, chat, request.max_tokens)
                if attempt == self._settings.repairs:
                    wrote = f"It wrote: {reply.text[:_SHOWN]!r}" if reply.text.strip() else "It wrote nothing."
                    raise PlanError(
                        f"The chat service {chat.name!r} gave no turn that can be read, attempts: {attempt + 1}. "
                        f"The last problem: {fault}. {wrote}"
                    ) from fault
                told = fault_message(fault.faults, objects=offer.schema is not None)
                added = (Asking.message(reply.text, _SENT_BACK), told)
                continue
            if isinstance(turn, Final):
                Asking.require_whole(reply, chat, request.max_tokens)
                emit(Event.TextDelta(turn.text))
            return turn
        raise AssertionError  # the last attempt returns or raises


def _interpret(turn: Action | Final, offer: _Offer, task: Task) -> Step | Final | Infeasible:
    """Return a turn as the loop takes it. Raises `ReplyProblem` for an argument that cannot be read."""
    if isinstance(turn, Final):
        return turn
    known = any(spec.name == turn.function for spec in task.functions)
    if not known and turn.function.casefold() == offer.infeasible:
        return Infeasible.from_call(turn.arguments, said=turn.thought)
    arguments = {name: read_argument(name, value) for name, value in turn.arguments.items()}
    id = next(task.fresh_ids())
    catalogue = {spec.name: spec for spec in task.functions}
    values = {name: each.value for name, each in arguments.items() if isinstance(each, Value)}
    try:
        step = ModelCall.step(turn.function, values, catalogue, id=id, reason=turn.thought)
    except FunctionNotFound:
        # The check names the nearest functions to the model.
        return Step(id, turn.function, arguments, reason=turn.thought)
    return replace(step, arguments={name: step.arguments.get(name, each) for name, each in arguments.items()})


def read_argument(name: str, value: Any) -> Expression:
    """Read an argument as a reference or a value.

    >>> read_argument("text", {"from": "s1"}), read_argument("to", [{"from": "Oslo"}])
    (From(step='s1', path=()), Value(value=[{'from': 'Oslo'}]))

    An argument that is exactly ``{"from": TEXT}`` or ``{"from": TEXT, "path": TEXT}`` is a reference; nothing inside an
    argument is one. Raises `ReplyProblem` for an invalid path.
    """
    refers = isinstance(value, dict) and value.keys() in ({"from"}, {"from", "path"})
    if refers and all(isinstance(each, str) for each in value.values()):
        try:
            return From(value["from"], From.parse_path(value.get("path", "$")))
        except PlanFormatError as error:
            raise ReplyProblem(f"the argument {name!r} refers to no place in a result: {error}") from error
    return Value(value)
