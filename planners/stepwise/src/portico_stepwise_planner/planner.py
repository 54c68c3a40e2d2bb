"""The stepwise strategy: a thought, an action, its observation, and again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from portico import ChatCapabilities, ChatReply, ChatRequest, FunctionSpec, Message
from portico.errors import FunctionNotFound, PlanError, SchemaUnsupported
from portico.plans import (
    Answer,
    AnswerWords,
    Asking,
    Emit,
    Event,
    Expression,
    FittedFunctions,
    Infeasible,
    ModelCall,
    Plan,
    PromptText,
    ReplyProblem,
    Step,
    Task,
    Value,
)
from portico.plugins import JsonSchema, Mismatch, PartialJson, Services, StrictForm
from portico.ports import ChatService
from portico_stepwise_planner._arguments import REFERENCE, read_arguments
from portico_stepwise_planner._prompt import OBSERVATION_STOP, conversation, fault_message
from portico_stepwise_planner._reading import Action, Final, marks_in, read_reply
from portico_stepwise_planner.config import StepwiseSettings

_LONGEST_THOUGHT = 2_000


@dataclass(frozen=True, slots=True)
class TurnSchema:
    """A schema, as it is or in strict form, and the way back from what was written under it."""

    schema: Mapping[str, Any]
    form: StrictForm | None = None

    def ask(self, request: ChatRequest) -> ChatRequest:
        """Return the request whose reply is held to the schema."""
        return replace(
            request, response_schema=self.schema, response_name="turn", response_strict=self.form is not None
        )

    def plain(self, text: str) -> str:
        """Return a reply as the schema without strict form has it; raises `ReplyProblem` where it is none."""
        if self.form is None or self.form.identity:
            return text
        try:
            return json.dumps(self.form.decode(json.loads(text)), ensure_ascii=False)
        except (ValueError, RecursionError, Mismatch) as error:
            raise ReplyProblem(f"the reply is not of the form asked for: {error}") from error

    def draft(self, value: Any) -> Any:
        """Return what has come of a reply so far as the schema without strict form has it; None where it is unknown."""
        if self.form is None or self.form.identity:
            return value
        try:
            return self.form.decode(value)
        except (RecursionError, Mismatch):
            return None


def turn_schema(
    functions: Sequence[FunctionSpec], infeasible: str | None, capabilities: ChatCapabilities, *, references: bool
) -> TurnSchema | None:
    """Make the schema of a thought with one call of these functions or with the final answer.

    ``infeasible`` is how the model says that none helps, None where it is to answer. None for a service that holds
    replies to no schema. Strict form where the service takes it and it can hold the
    schema, if loosely: everything is checked afterwards. With ``references`` an argument may be one; where strict form
    cannot hold them beside what the functions take, they are left out.
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
        definitions[reference] = REFERENCE
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
    """Let each parameter be a reference too; a default stays beside the alternatives, where strict form looks."""
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


_BEFORE_A_MARK = " \t>*_#-["
_CUT = "observation"


class LinesWatch:
    """Watches a reply of lines: what follows "Final answer:" is shown, unless an action came first.

    A line that may become its own mark, such as "Observation:", waits until that is known.
    """

    def __init__(self, words: AnswerWords) -> None:
        self._words = words
        self._text = ""
        self._shown: int | None = None
        """How far the text was shown, None before the answer began."""
        self._over = False

    def feed(self, piece: str) -> None:
        """Take more of the reply."""
        if self._over:
            return
        self._text += piece
        if self._shown is None:
            first = next((mark for mark in marks_in(self._text) if mark.name != "thought"), None)
            # What stands at the very end may still belong to the mark.
            if first is None or first.end >= len(self._text):
                # A mark is within a line: of all that came only the line under way matters.
                self._text = self._text[self._text.rfind("\n") + 1 :]
                return
            if first.name != "final answer":
                self._over = True
                return
            self._text, self._shown = self._text[first.end :], 0
        self._show()

    def close(self) -> None:
        """Show what waited, now that nothing follows."""
        if self._shown is not None and not self._over:
            self._show(end=True)

    def _show(self, *, end: bool = False) -> None:
        assert self._shown is not None  # noqa: S101 - called when the answer has begun
        line = self._text.rfind("\n", 0, self._shown) + 1
        cut = next((mark.start for mark in marks_in(self._text[line:]) if mark.name == _CUT), None)
        if cut is not None:
            self._over = True
            ready = line + cut
        else:
            last = self._text.rfind("\n") + 1
            ready = last if not end and _may_be_cut(self._text[last:]) else len(self._text)
        if ready > self._shown:
            self._words.feed(self._text[self._shown : ready])
            self._shown = ready
        # Only the line under way matters from here on.
        line = self._text.rfind("\n", 0, self._shown) + 1
        self._text, self._shown = self._text[line:], self._shown - line


class SchemaWatch:
    """Watches a reply under a schema: the text of ``final`` is shown as it grows."""

    def __init__(self, words: AnswerWords, schema: TurnSchema) -> None:
        self._words = words
        self._schema = schema
        self._reader: PartialJson | None = PartialJson()
        self._shown = 0

    def feed(self, piece: str) -> None:
        """Take more of the reply."""
        if self._reader is None:
            return
        try:
            value = self._reader.feed(piece)
        except (ValueError, RecursionError):
            self._reader = None  # reading it whole says what is wrong
            return
        final = _final(self._schema.draft(value)) if value is not PartialJson.NOTHING else None
        if isinstance(final, str) and len(final) > self._shown:
            self._words.feed(final[self._shown :])
            self._shown = len(final)

    def close(self) -> None:
        """Nothing waits here."""


def _final(value: Any) -> Any:
    action = value.get("action") if isinstance(value, dict) else None
    return action.get("final") if isinstance(action, dict) else None


def _may_be_cut(line: str) -> bool:
    begun = line.lstrip(_BEFORE_A_MARK).casefold()
    return begun[: len(_CUT)] == _CUT[: len(begun)]


_SHOWN = 200
_SENT_BACK = 2_000


@dataclass(frozen=True, slots=True)
class _Offer:
    """What the model can do: the functions that it sees, the schema of a turn, and how to say that none helps."""

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

    Each proposal is one reply of the model: a plan of one step without a result, the answer, or that the goal is
    infeasible. Everything that the model is told is made from the task. A reply that cannot be read is sent back, and
    after some attempts ``PlanError`` says what was wrong; so it does when several steps in a row failed. A call that
    does not pass the check is refused by the loop, and the findings go back to the model.
    """

    name = "stepwise"
    asks_model = True

    def __init__(self, settings: StepwiseSettings, services: Services) -> None:
        self._settings = settings
        self._services = services
        self._offered: tuple[object, _Offer] | None = None

    async def propose(self, task: Task, *, emit: Emit) -> Plan | Answer | Infeasible:
        """Return the next call as a plan of one step, the answer, or why there is none."""
        task.require_functions()
        self._give_up(task)
        chat = self._services.get(ChatService, self._settings.chat)
        offer = self._offer(task, chat)
        turn = await self._turn(chat, self._request(task, chat, offer), offer, task, emit)
        if isinstance(turn, Final):
            return Answer(turn.text, value=turn.value)
        if isinstance(turn, Infeasible):
            return offer.fitted.explain(turn)
        return Plan(task.goal, (turn,))

    def _offer(self, task: Task, chat: ChatService) -> _Offer:
        """Return what is offered; made anew only for another catalogue, another goal or the last turn."""
        last, can = self._is_last_turn(task), chat.capabilities
        results = any(record.error is None for record in task.own_steps)
        # Before there is a result nothing can refer to one.
        references = results or task.input is not None
        key = (task.functions, task.goal, last, results, references, can.response_schema, can.strict)
        if self._offered is None or self._offered[0] != key:
            infeasible = JsonSchema.free_name("infeasible", {spec.name for spec in task.functions})
            tokens = self._settings.manual_tokens
            fitted = FittedFunctions.of(task.functions, task.goal, tokens=tokens, write=PromptText.signatures)
            # On the last turn nothing can be called any more, and where there are results they are the answer: a small
            # model that has written calls goes on to write one as long as there is any.
            schema = turn_schema(
                () if last else fitted.functions,
                None if last and results else infeasible,
                can if self._settings.schema else ChatCapabilities(),
                references=references,
            )
            self._offered = (key, _Offer(fitted, schema, infeasible))
        return self._offered[1]

    def _give_up(self, task: Task) -> None:
        """Stop after several failures in a row: a model that sees nothing but errors tries the same for ever."""
        last = task.own_steps[-self._settings.failures :]
        if len(last) == self._settings.failures and all(record.error is not None for record in last):
            count = "The last step" if len(last) == 1 else f"The last {len(last)} steps"
            raise PlanError(
                f"{count} failed, so the planner gives up. The last one, {last[-1].step.id}: {last[-1].error}"
            )

    def _is_last_turn(self, task: Task) -> bool:
        """Tell whether nothing but an answer makes sense: the budget is used up, or the model goes round in circles."""
        budget = task.budget
        return budget.proposals <= 1 or budget.steps <= 0 or task.repeats() >= self._settings.repeats

    def _request(self, task: Task, chat: ChatService, offer: _Offer) -> ChatRequest:
        schema = offer.schema
        messages = conversation(
            task,
            offer.fitted.text,
            infeasible=offer.infeasible,
            objects=schema is not None,
            last=self._is_last_turn(task),
            transcript_tokens=self._settings.transcript_tokens,
            observation_tokens=self._settings.observation_tokens,
        )
        stops = schema is None and "stop" in chat.capabilities.sampling
        request = ChatRequest(
            tuple(messages), max_tokens=self._settings.max_tokens, stop=(OBSERVATION_STOP,) if stops else ()
        )
        return request if schema is None else schema.ask(request)

    async def _turn(
        self, chat: ChatService, request: ChatRequest, offer: _Offer, task: Task, emit: Emit
    ) -> Step | Final | Infeasible:
        """Ask until a turn can be read; what went wrong goes back to the model."""
        messages, schema = request.messages, offer.schema
        added: tuple[Message, ...] = ()
        for attempt in range(self._settings.repairs + 1):
            words = AnswerWords(emit)
            watch = LinesWatch(words) if schema is None else SchemaWatch(words, schema)
            asked = replace(request, messages=(*messages, *added))
            reply = await Asking.stream(chat, asked, emit, on_text=watch.feed)
            watch.close()
            try:
                turn = _meant(_read(reply, schema), offer, task)
            except ReplyProblem as fault:
                Asking.require_whole(reply, chat, request.max_tokens)
                if words.text or attempt == self._settings.repairs:
                    raise PlanError(_unreadable(chat, reply, fault, attempt + 1)) from fault
                told = fault_message(fault.faults, objects=schema is not None)
                added = (Asking.message(reply.text, _SENT_BACK), told)
                continue
            if isinstance(turn, Final):
                Asking.require_whole(reply, chat, request.max_tokens)
                if turn.text != words.text:
                    emit(Event.TextDelta(turn.text[len(words.text) :]))
            return turn
        raise AssertionError  # the last attempt returns or raises


def _read(reply: ChatReply, schema: TurnSchema | None) -> Action | Final:
    if schema is None:
        return read_reply(reply.text)
    return read_reply(schema.plain(reply.text))


def _meant(turn: Action | Final, offer: _Offer, task: Task) -> Step | Final | Infeasible:
    """Make of a turn what it is for the loop; raises `ReplyProblem` for an argument that cannot be read."""
    if isinstance(turn, Final):
        return turn
    known = any(spec.name == turn.function for spec in task.functions)
    if not known and turn.function.casefold() == offer.infeasible:
        return Infeasible.from_call(turn.arguments, said=turn.thought)
    # Under a schema nothing can be quoted: what has the look of a reference is one, and the check knows the steps.
    return _step(turn, read_arguments(turn.arguments, quoted=offer.schema is None), task)


def _step(action: Action, arguments: Mapping[str, Expression], task: Task) -> Step:
    id = next(task.fresh_ids())
    catalogue = {spec.name: spec for spec in task.functions}
    values = {name: each.value for name, each in arguments.items() if isinstance(each, Value)}
    try:
        step = ModelCall.step(action.function, values, catalogue, id=id, reason=action.thought)
    except FunctionNotFound:
        # As it was written: the check names the nearest functions, and the model reads that.
        return Step(id, action.function, arguments, reason=action.thought)
    return replace(step, arguments={name: step.arguments.get(name, each) for name, each in arguments.items()})


def _unreadable(chat: ChatService, reply: ChatReply, fault: ReplyProblem, attempts: int) -> str:
    times = "one attempt" if attempts == 1 else f"{attempts} attempts"
    wrote = f"It wrote: {reply.text[:_SHOWN]!r}" if reply.text.strip() else "It wrote nothing."
    who = reply.service or chat.name
    return f"The chat service {who!r} gave no turn that can be read, after {times}: {fault}. {wrote}"
