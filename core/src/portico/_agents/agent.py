"""Agents: a model with instructions, functions and a thread; and one turn of it."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, Unpack, overload

from portico._agents.reducing import WHOLE, History, Reduced, estimated_message_tokens, fit_history
from portico._agents.thread import AgentTurn, Context, Thread, ThreadTurn
from portico._agents.turn_lock import spend
from portico._chat.joining import join_messages
from portico._chat.messages import ChatDelta, ChatReply, Message, ToolChoice, Usage
from portico._flows.labels import FunctionLabels
from portico._functions.functions import Function, FunctionPlugin, Parameter
from portico._functions.middleware import TurnInvocation, run_together
from portico._ports.chat_service import ChatService
from portico._ports.template_language import Template
from portico._prompts.functions import PromptInput, enter_function
from portico._prompts.prompt import Prompt
from portico._selection.selection import FunctionsOffered
from portico._tool_loop.guarding import CallGuard
from portico._tool_loop.values import (
    ChosenFunctions,
    PartialValue,
    RequestOptions,
    ToolFinished,
    ToolLoopLimits,
    ToolStarted,
    Turn,
    TurnOptions,
    require_known,
)
from portico.errors import LimitExceeded, UnsupportedOption

if TYPE_CHECKING:
    from portico._agents.thread import ContextProvider
    from portico._agents.turn_lock import Hold
    from portico._kernel_like import KernelLike
    from portico._selection.selection import Selection


T = TypeVar("T")

_NO_USAGE = Usage()
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AgentReply(Generic[T]):
    """The result of an agent's turn: its value, and the thread with the turn.

    ``turn`` is the result of the tool loop. ``usage`` counts its tokens, those of a summary, and those of agents that
    it called. ``selections`` say how functions were chosen, and ``reduced`` what was sent in place of the oldest turns.
    """

    value: T
    turn: Turn[T]
    thread: Thread
    agent: str
    usage: Usage = _NO_USAGE
    selections: tuple[Selection, ...] = ()
    reduced: Reduced = WHOLE

    @property
    def text(self) -> str:
        """The words of the last reply."""
        return self.turn.text

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the turn added after the new messages: calls, results and the last reply."""
        return self.turn.messages

    @property
    def reply(self) -> ChatReply:
        """The chat service's last reply."""
        return self.turn.reply


AgentEvent: TypeAlias = ChatDelta | FunctionsOffered | ToolStarted | ToolFinished | PartialValue[T] | AgentReply[T]
"""The events of an agent's turn: those of `Kernel.stream`, with the `AgentReply` in place of the `Turn`."""
Offer: TypeAlias = "str | Function | FunctionPlugin | ChosenFunctions"
"""A function, the name of one, a plugin, the name of one, or functions that were chosen already."""


def _choose(agent: ChatAgent, options: dict[str, Any], contexts: Iterable[Context], chat: ChatService) -> list[Offer]:
    """Return the functions to offer: those of the turn's ``options``, or the agent's, or all of the kernel.

    Raises ``UnsupportedOption`` for a service without tools.
    """
    chosen = options.pop("functions", agent.functions)
    kernel = agent.kernel
    if chosen is None:
        if kernel.functions and not chat.capabilities.tools:
            raise UnsupportedOption(
                f"The agent {agent.name!r} offers the functions of its kernel, and the chat service {chat.name!r} does "
                "not support tools. Give the agent functions=(), or another service."
            )
        # As plugins, because the kernel's selector must offer functions that are named one by one.
        alone = tuple(function for function in kernel.functions.values() if function.plugin is None)
        chosen = [*kernel.plugins.values(), *([FunctionPlugin("alone", alone)] if alone else [])]
    offers = (ChosenFunctions(each.functions, each.among, each.again) for each in contexts)
    return [*chosen, *(each for each in offers if each.functions or each.among)]


Instructions: TypeAlias = str | Template | Callable[[AgentTurn], str | Awaitable[str]]
"""A text as it is, a compiled template that is rendered at each turn, or a function of the turn."""


async def _instruct(
    agent: ChatAgent, turn: AgentTurn, contexts: Sequence[Context], arguments: Mapping[str, Any] | None
) -> tuple[Message, ...]:
    """Return the messages before the history: one of the system, where there are instructions.

    A template may write further messages, as examples of answers. Raises ``TypeError`` for arguments without a
    template, and what rendering raises.
    """
    given: Any = agent.instructions
    if _is_template(given):
        text = await agent.kernel.render_prompt(given, {**agent.arguments, **(arguments or {})}, name=agent.name)
    elif arguments:
        raise TypeError(
            f"arguments= are for a template, and the instructions of the agent {agent.name!r} are none: "
            "make one with Kernel.template"
        )
    else:
        text = given if isinstance(given, str) else given(turn)
        text = await text if inspect.isawaitable(text) else text
    if not isinstance(text, str):
        raise TypeError(f"the instructions of the agent {agent.name!r} came out as {text!r:.80}, not as a text")
    own = text.messages(agent.name) if isinstance(text, Prompt) and text.strip() else ()
    untrusted = own[0].untrusted if own else None
    if len(own) < 2:
        own = (Message.of("system", own[0].text if own else text, untrusted=untrusted),) if text.strip() else ()
    added = [context.instructions for context in contexts if context.instructions.strip()]
    if added and own and own[0].role == "system":
        return (Message.of("system", "\n\n".join([own[0].text, *added]), untrusted=untrusted), *own[1:])
    return (Message.of("system", "\n\n".join(added)), *own) if added else own


def _is_template(instructions: object) -> bool:
    return not isinstance(instructions, str) and hasattr(instructions, "render")


async def _take_turn(
    agent: ChatAgent,
    thread: Thread,
    new: tuple[Message, ...],
    returns: object,
    options: dict[str, Any],
    *,
    streamed: bool,
) -> AsyncGenerator[AgentEvent[Any], None]:
    """Wait for the thread, take a turn, and yield its events, the `AgentReply` last."""
    hold = await thread.enter()
    events = _turn_events(agent, thread, hold, new, returns=returns, options=options, streamed=streamed)
    for around in reversed(agent.kernel.middleware.turn):
        events = around(TurnInvocation(agent.name, thread.id), events)
    try:
        while True:
            # Not around the yield: what the reader of the stream calls is no part of the turn.
            with hold.inside():
                event = await anext(events, None)
            if event is None:
                return
            if isinstance(event, AgentReply):
                thread.lock.release(hold)
            yield event
    finally:
        hold.closing = True
        try:
            with hold.inside():
                await events.aclose()
        finally:
            thread.lock.release(hold)


async def _turn_events(
    agent: ChatAgent,
    thread: Thread,
    hold: Hold,
    new: tuple[Message, ...],
    *,
    returns: object,
    options: dict[str, Any],
    streamed: bool,
) -> AsyncGenerator[AgentEvent[Any], None]:
    if not new and not thread.turns:
        raise ValueError(f"there is nothing to answer: no new message, and the thread {thread.id!r} is empty")
    kernel, turn = agent.kernel, None
    choice = options.get("tool_choice", ToolChoice())
    about = AgentTurn(
        agent.name, thread, thread.messages, new, choice if isinstance(choice, ToolChoice) else ToolChoice(choice)
    )
    providers = list({id(each): each for each in (*agent.context_providers, *thread.context_providers)}.values())
    try:
        contexts = await _ask_providers(providers, about)
        chat = options.pop("chat", None)
        if chat is None or isinstance(chat, str):
            chat = kernel.service(ChatService, chat)
        functions = _choose(agent, options, contexts, chat)
        first = await _instruct(agent, about, contexts, options.pop("arguments", None))
        reduced, instead, usage = await _reduce(agent, thread, new, chat)
        guarded = CallGuard.guards(kernel.policy)
        added: tuple[Message, ...] = ()
        for provider, context in zip(providers, contexts, strict=True):
            for message in context.messages:
                labelled = _labelled(message, provider) if guarded else message
                added = join_messages(added, (labelled,), alike=guarded)
        history = (*_earlier(agent, thread, reduced.turns), *join_messages(added, new, alike=guarded))
        messages = (*first, *join_messages(instead, history, alike=guarded))
        asked: dict[str, Any] = {"returns": returns, "chat": chat, "functions": functions, **options}
        if streamed:
            async with aclosing(kernel.stream(messages, **asked)) as events:
                async for event in events:
                    if isinstance(event, Turn):
                        turn = event
                    else:
                        yield event
        else:
            turn = await kernel.complete(messages, **asked)
    except BaseException as error:
        stopped = asyncio.CancelledError("the stream was closed before its end")
        await _tell_providers(providers, about, stopped if isinstance(error, GeneratorExit) else error)
        raise
    assert turn is not None  # noqa: S101 - the turn has ended
    await _tell_providers(providers, about, turn)
    # Nothing is awaited from here on, so that the thread has the whole turn or nothing.
    usage += turn.usage + hold.spent
    thread.keep(ThreadTurn((*new, *turn.messages), agent.name, usage), reduced)
    chosen = (*(context.selection for context in contexts), *turn.selections)
    selections = tuple(selection for selection in chosen if selection is not None)
    yield AgentReply(turn.value, turn, thread, agent.name, usage, selections, reduced)


async def _reduce(
    agent: ChatAgent, thread: Thread, new: Sequence[Message], chat: ChatService
) -> tuple[Reduced, tuple[Message, ...], Usage]:
    """Make the history fit; return how, what is sent in place of the oldest turns, and what that cost."""
    if thread.budget is None:
        return WHOLE, (), _NO_USAGE
    history = thread.history()
    size = sum(map(thread.count_tokens, new))
    if size > thread.budget:
        about = "about " if thread.count_tokens is estimated_message_tokens else ""
        raise LimitExceeded(
            f"The new messages take {about}{size:,} tokens, and the budget of the thread {thread.id!r} is "
            f"{thread.budget:,}. Raise it, or send less."
        )
    room = thread.budget - size
    reduced = await fit_history(history, tokens=room, reducer=thread.reducer, kernel=agent.kernel, chat=chat)
    usage = _NO_USAGE if reduced in (WHOLE, history.reduced) else reduced.usage
    return reduced, history.instead(reduced), usage


def _earlier(agent: ChatAgent, thread: Thread, first: int) -> tuple[Message, ...]:
    """Return the messages of the turns from ``first`` on; those of other agents have their names."""
    return tuple(
        replace(message, name=turn.agent)
        if message.role == "assistant" and message.name is None and turn.agent not in (None, agent.name)
        else message
        for turn in thread.turns[first:]
        for message in turn.messages
    )


async def _ask_providers(providers: Sequence[ContextProvider], turn: AgentTurn) -> list[Context]:
    """Return what the providers add, in their order; they are asked at the same time.

    Raises the first error of a provider, and ``TypeError`` and ``ValueError`` for what cannot be added.
    """
    contexts: list[Context] = []
    added: Sequence[Any] = await run_together(provider.before(turn) for provider in providers)
    for provider, context in zip(providers, added, strict=True):
        who = f"the context provider {type(provider).__name__}"
        if context is not None and not isinstance(context, Context):
            raise TypeError(f"{who} gave {context!r:.80} before the turn, and not a Context or None")
        try:
            History.split_turns(() if context is None else context.messages)
        except ValueError as error:
            raise ValueError(f"{who} adds messages that no service takes: {error}") from error
        contexts.append(context or Context())
    return contexts


async def _tell_providers(
    providers: Sequence[ContextProvider], turn: AgentTurn, outcome: Turn[Any] | BaseException
) -> None:
    """Tell every provider how the turn ended, at the same time.

    Raises the first error of a provider; after a turn that failed, errors are logged.
    """
    tasks = [asyncio.ensure_future(each.after(turn, outcome)) for each in providers]
    cancelled: asyncio.CancelledError | None = None
    while running := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(running)
        except asyncio.CancelledError as stop:
            cancelled = stop
            for task in running:  # Each has begun, so that each provider knows.
                task.cancel()
    failures = [error for task in tasks if not task.cancelled() and (error := task.exception()) is not None]
    if cancelled is not None:
        raise cancelled
    if failures and not isinstance(outcome, BaseException):
        raise failures[0]
    for failure in failures:
        _log.warning("A context provider failed after a turn that failed: %r", failure, exc_info=failure)


def _labelled(message: Message, provider: ContextProvider) -> Message:
    """Return a message of a context provider: its words are not the user's, unless it says so."""
    if message.role not in ("user", "assistant") or message.untrusted is not None or not message.text:
        return message
    return replace(message, untrusted=(f"what {type(provider).__name__} added",))


Said: TypeAlias = str | Message | Sequence[Message]
"""What a turn of an agent begins with: words of a user, a rendered prompt, a message, or several."""

_UNFIT_IN_NAMES = re.compile(r"[^0-9A-Za-z_]+")
_OPTIONS = frozenset({*TurnOptions.__annotations__, "arguments"}) - {"auto_invoke"}  # a thread has whole turns


class AgentOptions(TurnOptions, total=False):
    """What can be given by name to `ChatAgent.invoke` and `ChatAgent.stream`, in place of what the agent has.

    ``arguments`` are for instructions that are a template, and are added to the agent's own. ``functions`` replace the
    agent's own, not those of context providers.
    """

    arguments: Mapping[str, Any]


class ChatAgent:
    """Answer in a conversation, with instructions and functions.

    >>> from portico import ChatAgent, Kernel
    >>> from portico_testkit.fakes.chat_service import ScriptedChat
    >>> kernel = Kernel()
    >>> guide = ChatAgent("guide", instructions="You know Oslo.", kernel=kernel, chat=ScriptedChat("By tram.", "No."))
    >>> reply = kernel.run_sync(guide.invoke("How do I get to the park?"))
    >>> reply = kernel.run_sync(guide.invoke("Is it far?", reply.thread))
    >>> reply.text, [message.text for message in reply.thread.messages]
    ('No.', ['How do I get to the park?', 'By tram.', 'Is it far?', 'No.'])

    A turn is the tool loop of `Kernel.complete`, with the same middleware and limits. It sends the instructions, the
    history of the thread, what the ``context_providers`` of the agent and of the thread add, and the new messages.

    ``instructions`` are a text; or a template of `Kernel.template`, rendered at each turn with ``arguments``; or a
    function of the turn that returns a text. ``functions`` are offered to the model: functions, their names, or names
    of plugins; by default all of the kernel's. Context providers add theirs. ``chat`` is a service or the name of one;
    by default the configured one. ``limits`` and ``settings`` apply to each turn.

    An agent keeps nothing of its turns, so that it can work on many threads at once.
    """

    def __init__(
        self,
        name: str,
        *,
        instructions: Instructions = "",
        kernel: KernelLike,
        description: str = "",
        context_providers: Iterable[ContextProvider] = (),
        functions: Iterable[Offer] | None = None,
        chat: ChatService | str | None = None,
        limits: ToolLoopLimits | None = None,
        arguments: Mapping[str, Any] | None = None,
        **settings: Unpack[RequestOptions],
    ) -> None:
        if type(name) is not str or not name.strip():
            raise ValueError(f"an agent has a name, and {name!r} is none")
        if arguments is not None and not _is_template(instructions):
            raise TypeError("arguments= are for instructions that are a template: make one with Kernel.template")
        self.name = name
        self.instructions = instructions
        self.kernel = kernel
        self.description = description
        self.context_providers = tuple(context_providers)
        self.functions = _several(functions)
        self.chat = chat
        self.limits = limits
        self.arguments = dict(arguments or {})
        self.settings = require_known(settings, RequestOptions.__annotations__, f"a setting of the agent {name!r}")

    @overload
    async def invoke(
        self, messages: Said, thread: Thread | None = None, *, returns: type[T], **options: Unpack[AgentOptions]
    ) -> AgentReply[T]: ...
    @overload
    async def invoke(
        self, messages: Said, thread: Thread | None = None, *, returns: None = None, **options: Unpack[AgentOptions]
    ) -> AgentReply[str]: ...
    @overload
    async def invoke(
        self, messages: Said, thread: Thread | None = None, *, returns: object, **options: Unpack[AgentOptions]
    ) -> AgentReply[Any]: ...
    async def invoke(
        self, messages: Said, thread: Thread | None = None, *, returns: object = None, **options: Unpack[AgentOptions]
    ) -> AgentReply[Any]:
        """Take a turn on a thread, by default a new one, and return the reply.

        ``messages`` are new: a text, a message, or several; ``()`` asks the agent to continue. ``returns`` is the type
        of the answer, or a JSON Schema; by default the answer is text.

        Raises ``ThreadBusy``, ``LimitExceeded`` for new messages larger than the thread's budget, what context
        providers and the reducer raise, and what `Kernel.complete` raises. After an error, the thread is unchanged. A
        ``LimitExceeded`` has the messages up to then: ``thread.add(*new, *error.messages)`` keeps them.
        """
        reply: AgentReply[Any] | None = None
        async with aclosing(self._turn(messages, thread, returns, options, streamed=False)) as events:
            async for event in events:
                reply = event  # type: ignore[assignment]  # the last event is the reply
        assert reply is not None  # noqa: S101 - a turn that does not end raises
        return reply

    @overload
    def stream(
        self, messages: Said, thread: Thread | None = None, *, returns: type[T], **options: Unpack[AgentOptions]
    ) -> AsyncGenerator[AgentEvent[T], None]: ...
    @overload
    def stream(
        self, messages: Said, thread: Thread | None = None, *, returns: None = None, **options: Unpack[AgentOptions]
    ) -> AsyncGenerator[AgentEvent[str], None]: ...
    @overload
    def stream(
        self, messages: Said, thread: Thread | None = None, *, returns: object, **options: Unpack[AgentOptions]
    ) -> AsyncGenerator[AgentEvent[Any], None]: ...
    def stream(
        self, messages: Said, thread: Thread | None = None, *, returns: object = None, **options: Unpack[AgentOptions]
    ) -> AsyncGenerator[AgentEvent[Any], None]:
        """Do what `invoke` does, and yield the events of `Kernel.stream`; the last event is the `AgentReply`.

        The thread is busy from the first event to the last, and has the turn when the last one comes. To stop earlier,
        close the stream, as ``async with contextlib.aclosing(agent.stream(…))`` does. Then the thread is unchanged.
        """
        return self._turn(messages, thread, returns, options, streamed=True)

    def as_function(
        self,
        name: str | None = None,
        *,
        plugin: str | None = None,
        description: str | None = None,
        returns: object = None,
        thread: Thread | None = None,
        effects: bool = False,
        tags: Collection[str] = (),
        **options: Unpack[AgentOptions],
    ) -> Function:
        """Make a function of the agent, for other agents, plans and templates. It takes a message and answers.

        >>> from portico import Kernel
        >>> kernel = Kernel()
        >>> guide = ChatAgent("City guide", kernel=Kernel(), description="Knows its way about Oslo.")
        >>> kernel.add_function(guide.as_function()).spec.parameters["required"]
        ['message']

        Each call is its own conversation, unless there is a ``thread``: then calls wait for each other. The agent works
        in its own kernel, with its own functions, middleware and limits. Functions of agents and of prompts may call
        each other, 16 deep and 1,000 times inside one. The cost of a call is in the usage of the turn that made it.
        ``returns`` is the type of the answer, ``options`` are those of `invoke`.
        """
        checked = require_known(options, _OPTIONS, "an option of an agent's turn")

        async def ask(message: str) -> Any:
            with enter_function(self.name, kind="Agents and prompt functions"):
                reply = await self.invoke(message, thread, returns=returns, **checked)
            spend(reply.usage)
            return reply.value

        kernel = self.kernel
        made = _UNFIT_IN_NAMES.sub("_", self.name).strip("_")
        about = "What the agent is asked, with all that it has to know: it sees nothing else of this conversation."
        return Function(
            name or made,
            ask,
            plugin=plugin,
            description=self.description if description is None else description,
            parameters=(Parameter("message", about, PromptInput.compile(str), required=True),),
            returns=PromptInput.compile(
                str if returns is None else returns, kernel.type_codecs, kernel.schema_validator
            ),
            effects=effects,
            tags=frozenset(tags),
            labels=FunctionLabels(reaches_out=True),  # What it is told may decide what it calls.
        )

    def _turn(
        self, messages: Said, thread: Thread | None, returns: object, options: AgentOptions, *, streamed: bool
    ) -> AsyncGenerator[AgentEvent[Any], None]:
        given = require_known(options, _OPTIONS, "an option of an agent's turn")
        if "functions" in given:
            given["functions"] = _several(given["functions"])
        thread = Thread() if thread is None else thread
        new = _new(messages)
        own = {"chat": self.chat, "limits": self.limits, **self.settings}
        merged = {name: value for name, value in own.items() if value is not None} | given
        return _take_turn(self, thread, new, returns, merged, streamed=streamed)

    def __repr__(self) -> str:
        return f"ChatAgent({self.name!r})"


def _several(functions: Any) -> tuple[Offer, ...] | None:
    if isinstance(functions, str | Function):
        raise TypeError(f"functions= takes several: write functions=[{functions!r}]")
    return None if functions is None else tuple(functions)


def _new(messages: Any) -> tuple[Message, ...]:
    if isinstance(messages, Prompt):
        return messages.messages()
    if isinstance(messages, str):
        return (Message.of("user", messages),)
    new = (messages,) if isinstance(messages, Message) else tuple(messages)
    for each in new:
        if not isinstance(each, Message):
            raise TypeError(f"an agent takes a text, a message, or several messages, not {each!r:.80}")
    History.split_turns(new)
    return new
