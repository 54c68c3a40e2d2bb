"""The function calling strategy: the service's own tool calls, each a checked step of a plan."""

from __future__ import annotations

from collections.abc import Sequence

from portico import ChatReply, ChatRequest, Message, ToolCall, ToolChoice
from portico.errors import FunctionError, PlanError, UnsupportedOption
from portico.plans import Answer, AnswerWords, Asking, Emit, Infeasible, ModelCall, Plan, Step, Task
from portico.plugins import Services
from portico.ports import ChatService
from portico_function_calling_planner._conversation import conversation, exchanges_of, failed_in_a_row
from portico_function_calling_planner._notes import Carried, Exchange, exchanges_to, own_ids
from portico_function_calling_planner._tools import Offer
from portico_function_calling_planner._words import HeldWords
from portico_function_calling_planner.config import FunctionCallingSettings

_REASON = 500
_BETWEEN = "\n\n"
_EMPTY = "Your reply was empty. Call a function, or answer the goal in words."
_NOT_ALONE = (
    "This is not taken: it came together with other calls. Look at their results, and call it alone if it still holds."
)


class FunctionCallingPlanner:
    """Let a model call functions as its service does it, and make each reply's calls one plan.

    >>> from portico import ChatCapabilities, function, Kernel, ToolCall
    >>> from portico_testkit.fakes.chat_service import ScriptedChat
    >>> from portico_testkit.fakes.services import FixedServices
    >>> @function
    ... def today() -> str:
    ...     return "1 May"
    >>> kernel = Kernel()
    >>> _ = kernel.add_function(today)
    >>> chat = ScriptedChat(ToolCall("c1", "today"), "It is 1 May.", capabilities=ChatCapabilities(tools=True))
    >>> planner = FunctionCallingPlanner(FunctionCallingSettings(), FixedServices({ChatService: chat}))
    >>> run = kernel.run_sync(kernel.run_goal("Which day is it?", planner=planner))
    >>> run.outcome.text, run.plan.steps[0].function
    ('It is 1 May.', 'today')

    The calls of a reply are independent steps and run side by side; a reply of words is the answer. A call of a
    function that was not offered, or with arguments that do not fit, is answered with the error and what was probably
    meant; the others of its reply run. The replies, with what a service wants handed back, travel in the plan's notes,
    so that another process sends the same conversation. ``PlanError`` ends it when several replies in a row came to
    nothing, ``UnsupportedOption`` says so where a service has no tools.
    """

    name = "function_calling"
    asks_model = True

    def __init__(self, settings: FunctionCallingSettings, services: Services) -> None:
        self._settings = settings
        self._services = services
        self._offered: tuple[object, Offer] | None = None

    async def propose(self, task: Task, *, emit: Emit) -> Plan | Answer | Infeasible:
        """Return the calls of the next reply as a plan, its words as the answer, or that the goal is infeasible."""
        task.require_functions()
        chat = self._services.get(ChatService, self._settings.chat)
        if not chat.capabilities.tools:
            raise UnsupportedOption(
                f"The chat service {chat.name!r} cannot call functions, which the planner 'function_calling' rests on. "
                "Choose another planner, such as 'stepwise' or 'sequential', or another chat service."
            )
        offer = self._offer(task, strict=chat.capabilities.strict and self._settings.strict)
        before, refused = exchanges_of(task)
        since = list(refused)
        while True:
            exchanges = (*before, *since)
            seen = _BETWEEN.join(exchange.shown for exchange in exchanges if exchange.shown)
            words = AnswerWords(emit, before=_BETWEEN if seen else "")
            errors = failed_in_a_row(exchanges, task)
            if len(errors) >= self._settings.failures:
                count = "The last reply" if len(errors) == 1 else f"The last {len(errors)} replies"
                raise PlanError(
                    f"{count} of the chat service {chat.name!r} came to nothing, so the planner gives up. "
                    f"The last error: {errors[0]}"
                )
            last = task.budget.proposals <= 1 or task.budget.steps <= 0
            reply = await self._ask(chat, self._request(task, exchanges, offer, last), words, emit)
            message = own_ids(reply)
            calls = _calls(message)
            if not calls:
                Asking.require_whole(reply, chat, self._settings.max_tokens)
                if words.text:
                    return Answer(f"{seen}{_BETWEEN}{words.text}" if seen else words.text)
                # Services refuse a turn without any words.
                since.append(Exchange(Message.of("assistant", "(nothing)"), said=_EMPTY))
                continue
            if len(calls) == 1 and offer.is_infeasible(calls[0]):
                return offer.fitted.explain(_infeasible(calls[0], reply))
            steps, exchange = self._carried(message, reply, task, offer, shown=words.text)
            since.append(exchange)
            if steps:
                return Plan(task.goal, tuple(steps), notes=exchanges_to(since))

    def _offer(self, task: Task, *, strict: bool) -> Offer:
        """Return what is offered; made anew only for another catalogue or another goal."""
        key = (task.functions, task.goal, strict)
        if self._offered is None or self._offered[0] != key:
            self._offered = (key, Offer(task.functions, task.goal, tokens=self._settings.manual_tokens, strict=strict))
        return self._offered[1]

    def _request(self, task: Task, exchanges: Sequence[Exchange], offer: Offer, last: bool) -> ChatRequest:
        messages = conversation(
            task,
            exchanges,
            infeasible=offer.infeasible,
            last=last,
            transcript_tokens=self._settings.transcript_tokens,
            observation_tokens=self._settings.observation_tokens,
        )
        return ChatRequest(
            tuple(messages),
            tools=offer.tools,
            tool_choice=ToolChoice("none" if last else "auto"),
            max_tokens=self._settings.max_tokens,
        )

    async def _ask(self, chat: ChatService, request: ChatRequest, words: AnswerWords, emit: Emit) -> ChatReply:
        held = HeldWords(words, calls_may_follow=request.tool_choice.mode != "none")
        reply = await Asking.stream(chat, request, emit, on_text=held.feed)
        if not reply.tool_calls:
            held.release()
        return reply

    def _carried(
        self, message: Message, reply: ChatReply, task: Task, offer: Offer, *, shown: str
    ) -> tuple[list[Step], Exchange]:
        """Make steps of the calls that can be carried out, and answer the others."""
        steps: list[Step] = []
        carried: list[Carried] = []
        ids = task.fresh_ids()
        id = next(ids)
        reason = reply.text.strip()[:_REASON]
        most = min(self._settings.calls, task.budget.steps)
        calls = _calls(message)
        for place, call in enumerate(calls):
            if offer.is_infeasible(call):
                carried.append(Carried(call, error=_NOT_ALONE))
                continue
            if len(steps) >= most:
                carried.append(Carried(call, error=f"Not carried out: {most} calls at once are the most."))
                continue
            if reply.finish == "length" and place == len(calls) - 1 and not _is_whole(call):
                carried.append(
                    Carried(call, error="The reply was cut short before this call was whole. Call it again, shorter.")
                )
                continue
            try:
                step = offer.step(call, id=id, reason=reason)
            except FunctionError as error:
                carried.append(Carried(call, error=str(error)))
                continue
            steps.append(step)
            carried.append(Carried(call, id))
            id = next(ids)
        return steps, Exchange(message, tuple(carried), shown=shown)


def _calls(message: Message) -> list[ToolCall]:
    return [part for part in message.content if isinstance(part, ToolCall)]


def _is_whole(call: ToolCall) -> bool:
    try:
        ModelCall.arguments(call.arguments)
    except ValueError:
        return False
    return True


def _infeasible(call: ToolCall, reply: ChatReply) -> Infeasible:
    try:
        given = ModelCall.arguments(call.arguments.strip() or "{}")
    except ValueError:
        given = {}
    return Infeasible.from_call(given, said=reply.text)
