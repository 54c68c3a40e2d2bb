"""The stepwise strategy: a thought, an action, its observation, and again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from portico import ChatCapabilities, ChatReply, ChatRequest, Message
from portico.errors import FunctionNotFound, PlanError
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
from portico.plugins import JsonSchema, Services
from portico.ports import ChatService
from portico_stepwise_planner._arguments import read_arguments
from portico_stepwise_planner._prompt import OBSERVATION_STOP, conversation, fault_message
from portico_stepwise_planner._reading import Action, Final, read_reply
from portico_stepwise_planner._schema import TurnSchema, turn_schema
from portico_stepwise_planner._words import LinesWatch, SchemaWatch
from portico_stepwise_planner.config import StepwiseSettings

_SHOWN = 200
_SENT_BACK = 2_000


@dataclass(frozen=True, slots=True)
class _Offer:
    """What the model can do: the functions that it is told of, the schema of a turn, and how to say that none helps."""

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
