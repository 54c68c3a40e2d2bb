"""Agents: a model with instructions, functions and a thread; and one turn of it."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, Unpack, cast, overload

from portico._agents.context import added_before, named, told_after
from portico._agents.reducing import WHOLE, History, Reduced, estimated_message_tokens, fitted
from portico._agents.thread import AgentTurn, Context, Thread, ThreadTurn, checked_providers
from portico._agents.turn_lock import spend
from portico._chat.messages import ChatDelta, ChatReply, Message, Source, Text, Usage
from portico._functions.functions import Function, FunctionPlugin, Parameter
from portico._ports.chat_service import ChatService
from portico._ports.template_language import Template
from portico._prompts.functions import PromptInput, nested
from portico._prompts.prompt import Prompt
from portico._selection.selection import FunctionsOffered
from portico._tool_loop.values import (
    ChosenFunctions,
    PartialValue,
    RequestOptions,
    ToolFinished,
    ToolLoopLimits,
    ToolStarted,
    Turn,
    TurnOptions,
)
from portico.errors import LimitExceeded, TemplateError, UnsupportedOption, nearest

if TYPE_CHECKING:
    from portico._agents.thread import ContextProvider
    from portico._agents.turn_lock import Hold
    from portico._kernel_like import KernelLike
    from portico._selection.selection import Selection


T = TypeVar("T")

_NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class AgentReply(Generic[T]):
    """The result of an agent's turn: its value, and the thread with the turn.

    ``turn`` is that of the tool loop. ``usage`` counts its tokens, those of a summary, and those of agents that it
    called. ``selections`` say how functions were chosen; ``reduced`` says what was sent in place of the oldest turns.
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
        """What the turn added to the conversation after the new messages: calls, results, the last reply's."""
        return self.turn.messages

    @property
    def reply(self) -> ChatReply:
        """The chat service's last reply, as it came."""
        return self.turn.reply


AgentEvent: TypeAlias = ChatDelta | FunctionsOffered | ToolStarted | ToolFinished | PartialValue[T] | AgentReply[T]
"""What happens in an agent's turn: all that `Kernel.stream` yields, with the `AgentReply` in place of the `Turn`."""
Offer: TypeAlias = "str | Function | FunctionPlugin | ChosenFunctions"
"""A function, the name of one, a plugin, the name of one, or functions that were chosen already."""


def offered(
    agent: ChatAgent, options: dict[str, Any], contexts: Iterable[tuple[ContextProvider, Context]], chat: ChatService
) -> list[Offer]:
    """Return the functions to offer: those of the turn's ``options``, or the agent's, or all of the kernel.

    Raises ``ValueError`` for two functions of one name, and ``UnsupportedOption`` for a service without tools.
    """
    chosen = options.pop("functions", agent.functions)
    kernel = agent.kernel
    own: list[Offer]
    if chosen is None:
        if kernel.functions and not chat.capabilities.tools:
            raise UnsupportedOption(
                f"The agent {agent.name!r} offers the functions of its kernel, and the chat service {chat.name!r} does "
                "not support tools. Give the agent functions=(), or another service."
            )
        # As plugins: a function that is named one by one is one that the kernel's selector must offer.
        alone = tuple(function for function in kernel.functions.values() if function.plugin is None)
        own = [*kernel.plugins.values(), *([FunctionPlugin("alone", alone)] if alone else [])]
    else:
        own = list(chosen)
    adding = [(provider, context) for provider, context in contexts if context.functions]
    if not adding:
        return own
    whose = "the kernel's" if chosen is None else "the agent's own"
    known: dict[str, tuple[Function, str]]
    known = {function.full_name: (function, whose) for function in _each(own, kernel)}
    added: list[Function] = []
    for provider, context in adding:
        for function in context.functions:
            if not isinstance(function, Function):
                raise TypeError(f"{named(provider)} adds {function!r:.80}, which is no Function")
            bound = function.bound(kernel)
            there, owner = known.setdefault(bound.full_name, (bound, f"of {named(provider)}"))
            if there is not bound:
                raise ValueError(
                    f"The agent {agent.name!r} has two functions called {bound.full_name!r} in one turn: one is "
                    f"{owner}, one of {named(provider)}. A model cannot tell them apart: rename one, or leave it out "
                    "with functions=."
                )
            if bound not in added:
                added.append(bound)
    return [*own, ChosenFunctions(tuple(added))]


def _each(functions: Iterable[Offer], kernel: KernelLike) -> Iterator[Function]:
    for each in functions:
        if isinstance(each, str):
            plugin = kernel.plugins.get(each)
            yield from (kernel.function(each),) if plugin is None else plugin
        elif isinstance(each, FunctionPlugin):
            yield from each.bound(kernel)
        elif isinstance(each, ChosenFunctions):
            yield from _each(each.functions, kernel)
        elif isinstance(each, Function):
            yield each.bound(kernel)


Instructions: TypeAlias = str | Template | Callable[[AgentTurn], str | Awaitable[str]]
"""A text as it is, a compiled template that is rendered at each turn, or a function of the turn."""


async def instructed(
    agent: ChatAgent, turn: AgentTurn, contexts: Sequence[Context], arguments: Mapping[str, Any] | None
) -> tuple[Message, ...]:
    """Return the messages that come before the history: one of the system, where there are instructions.

    A template may write further messages, as examples of how to answer. Raises ``TypeError`` for arguments where there
    is no template, and what rendering does.
    """
    own = await _own(agent, turn, arguments)
    added = [context.instructions for context in contexts if context.instructions.strip()]
    if not added:
        return own
    if own and own[0].role == "system":
        return (Message.of("system", "\n\n".join([own[0].text, *added])), *own[1:])
    return (Message.of("system", "\n\n".join(added)), *own)


async def _own(agent: ChatAgent, turn: AgentTurn, arguments: Mapping[str, Any] | None) -> tuple[Message, ...]:
    given = agent.instructions
    if is_template(given):
        text = await agent.kernel.render_prompt(
            cast("Template", given), {**agent.arguments, **(arguments or {})}, name=agent.name
        )
    elif arguments:
        raise TypeError(
            f"arguments= are for a template, and the instructions of the agent {agent.name!r} are none: "
            "make one with Kernel.template"
        )
    elif isinstance(given, str):
        text = given
    else:
        made = cast("Callable[[AgentTurn], Any]", given)(turn)
        text = await made if inspect.isawaitable(made) else made
        if not isinstance(text, str):
            raise TypeError(f"the instructions of the agent {agent.name!r} came out as {text!r:.80}, not as a text")
    if not text.strip():
        return ()
    messages = _messages(agent.name, text) if isinstance(text, Prompt) else ()
    return messages if len(messages) > 1 else (Message.of("system", messages[0].text if messages else text),)


def _messages(name: str, prompt: Prompt) -> tuple[Message, ...]:
    try:
        return prompt.messages()
    except TemplateError as error:
        raise TemplateError(f"{name}, {error}", line=error.line, column=error.column) from error


def is_template(instructions: object) -> bool:
    """Tell whether instructions are a compiled template."""
    return not isinstance(instructions, str) and hasattr(instructions, "render")


async def take_agent_turn(
    agent: ChatAgent,
    thread: Thread,
    new: tuple[Message, ...],
    returns: object,
    options: Mapping[str, Any],
    *,
    streamed: bool,
) -> AsyncGenerator[AgentEvent[Any], None]:
    """Take a turn when its time has come, and yield what happens in it, the `AgentReply` last."""
    hold = await thread.enter()
    steps = _Turn(agent, thread, hold, new, returns, dict(options)).steps(streamed=streamed)
    try:
        while True:
            # Not around the yield: what the reader of a stream calls is no part of the turn.
            with hold.inside():
                event = await anext(steps, None)
            if event is None:
                return
            if isinstance(event, AgentReply):
                thread.lock.release(hold)
            yield event
    finally:
        hold.closing = True
        try:
            with hold.inside():
                await steps.aclose()
        finally:
            thread.lock.release(hold)


@dataclass(slots=True)
class _Turn:
    """The state of one turn."""

    agent: ChatAgent
    thread: Thread
    hold: Hold
    new: tuple[Message, ...]
    returns: object
    options: dict[str, Any]
    turn: Turn[Any] | None = None
    contexts: Sequence[Context] = ()
    reduced: Reduced = WHOLE
    usage: Usage = _NO_USAGE

    async def steps(self, *, streamed: bool) -> AsyncGenerator[AgentEvent[Any], None]:
        thread = self.thread
        if not self.new and not thread.turns:
            raise ValueError(f"there is nothing to answer: no new message, and the thread {thread.id!r} is empty")
        told = AgentTurn(self.agent.name, thread, thread.messages, self.new)
        # One that is attached to both is one provider still.
        providers = tuple(
            {id(each): each for each in (*self.agent.context_providers, *thread.context_providers)}.values()
        )
        try:
            self.contexts = await added_before(providers, told)
            async with aclosing(self.events(told, providers, streamed=streamed)) as events:
                async for event in events:
                    yield event
        except BaseException as error:
            stopped = asyncio.CancelledError("the stream was closed before its end")
            await told_after(providers, told, stopped if isinstance(error, GeneratorExit) else error)
            raise
        assert self.turn is not None  # noqa: S101 - the turn has ended
        await told_after(providers, told, self.turn)
        # Nothing is awaited from here on: the turn is in the thread whole, or not at all.
        yield self.kept()

    async def events(
        self, told: AgentTurn, providers: Sequence[Any], *, streamed: bool
    ) -> AsyncGenerator[AgentEvent[Any], None]:
        """Ask, and yield all events but the last, which is kept."""
        agent, options = self.agent, self.options
        kernel = agent.kernel
        chosen = options.pop("chat", None)
        chat = kernel.service(ChatService, chosen) if chosen is None or isinstance(chosen, str) else chosen
        functions = offered(agent, options, zip(providers, self.contexts, strict=True), chat)
        first = await instructed(agent, told, self.contexts, options.pop("arguments", None))
        before = await self.before(chat)
        added: tuple[Message, ...] = ()
        for message in (message for context in self.contexts for message in context.messages):
            added = _followed(added, (message,))
        said = (*self.earlier(self.reduced.turns), *_followed(added, self.new))
        messages = (*first, *_followed(before, said))
        if streamed:
            async with aclosing(
                kernel.stream(messages, returns=self.returns, chat=chat, functions=functions, **options)
            ) as events:
                async for event in events:
                    if isinstance(event, Turn):
                        self.turn = event
                    else:
                        yield event
        else:
            self.turn = await kernel.complete(messages, returns=self.returns, chat=chat, functions=functions, **options)

    async def before(self, chat: ChatService) -> tuple[Message, ...]:
        """Reduce the history where it has to be, and return what is sent in place of the turns that are not."""
        thread = self.thread
        if thread.budget is None:
            return ()
        history = thread.history()
        room = self.room(thread.budget)
        self.reduced = await fitted(history, tokens=room, reducer=thread.reducer, kernel=self.agent.kernel, chat=chat)
        if self.reduced not in (WHOLE, history.reduced):
            self.usage = self.reduced.usage
        return history.instead(self.reduced)

    def room(self, budget: int) -> int:
        """Return how many tokens the new messages leave to the history."""
        size = sum(map(self.thread.count_tokens, self.new))
        if size > budget:
            about = "about " if self.thread.count_tokens is estimated_message_tokens else ""
            raise LimitExceeded(
                f"The new messages take {about}{size:,} tokens, and the budget of the thread {self.thread.id!r} is "
                f"{budget:,}. Raise it, or send less."
            )
        return budget - size

    def earlier(self, first: int) -> tuple[Message, ...]:
        """Return the messages of the turns that are sent; what other agents said has their names."""
        thread, own = self.thread, (None, self.agent.name)
        if not first and all(turn.agent in own for turn in thread.turns):
            return thread.messages
        return tuple(
            replace(message, name=turn.agent)
            if message.role == "assistant" and message.name is None and turn.agent not in own
            else message
            for turn in thread.turns[first:]
            for message in turn.messages
        )

    def kept(self) -> AgentReply[Any]:
        """Add the turn to the thread, and return what came of it."""
        turn = self.turn
        assert turn is not None  # noqa: S101 - a turn that does not end raises
        usage = self.usage + turn.usage + self.hold.spent
        self.thread.keep(ThreadTurn((*self.new, *turn.messages), self.agent.name, usage), self.reduced)
        selections = [context.selection for context in self.contexts] + [turn.selection]
        chosen = tuple(selection for selection in selections if selection is not None)
        return AgentReply(turn.value, turn, self.thread, self.agent.name, usage, chosen, self.reduced)


def _followed(before: tuple[Message, ...], after: tuple[Message, ...]) -> tuple[Message, ...]:
    """Put messages after others; where the user speaks on both sides, it is one message.

    What a provider adds and what stands for the oldest turns are the user's messages, and so is what comes after them.
    The chat templates of many models refuse two messages of one role that follow each other.
    """
    if not (before and after) or not before[-1].role == after[0].role == "user":
        return (*before, *after)
    last, first = before[-1], after[0]
    if last.name not in (None, first.name):
        return (*before, *after)
    # Words would run into those that follow; a source ends its own line.
    meeting = (*last.content[-1:], *first.content[:1])
    apart = len(meeting) == 2 and isinstance(meeting[0], Text) and isinstance(meeting[1], Text | Source)
    between = (Text("\n\n"),) if apart else ()
    return (*before[:-1], replace(first, content=(*last.content, *between, *first.content)), *after[1:])


Said: TypeAlias = str | Message | Sequence[Message]
"""What a turn of an agent begins with: words of a user, a rendered prompt, a message, or several."""

_UNFIT_IN_NAMES = re.compile(r"[^0-9A-Za-z_]+")
_OPTIONS = frozenset({*TurnOptions.__annotations__, "arguments"})


class AgentOptions(TurnOptions, total=False):
    """What can be given by name to `ChatAgent.invoke` and `ChatAgent.stream`: it goes before what the agent has.

    ``arguments`` are for instructions that are a template; the agent's own stay where these say nothing. ``functions``
    are offered instead of the agent's own; what context providers add is offered besides.
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

    A turn is the tool loop of `Kernel.complete`, with the same filters and limits. It is sent: the instructions, the
    history of the thread, what ``context_providers`` of the agent and of the thread add, and the new messages.

    ``instructions`` are a text as it is; or a template of `Kernel.template`, rendered at each turn with ``arguments``;
    or a function of the turn, which returns a text. ``functions`` are offered to the model: functions, their names, or
    names of plugins; without it all of the kernel's, and with ``()`` none. Context providers add theirs. ``chat`` is a
    service or the name of one; without it the configured one. ``limits`` and ``settings`` are given to each turn.

    An agent keeps nothing of its turns: it may be used on many threads at once, and changed for the turns to come.
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
        if not (isinstance(instructions, str) or is_template(instructions) or callable(instructions)):
            raise TypeError(f"instructions are a text, a template or a function of the turn, not {instructions!r:.80}")
        if arguments is not None and not is_template(instructions):
            raise TypeError("arguments= are for instructions that are a template: make one with Kernel.template")
        self.name = name
        self.instructions = instructions
        self.kernel = kernel
        self.description = description
        self.context_providers = checked_providers(context_providers)
        self.functions = _several(functions)
        self.chat = chat
        self.limits = limits
        self.arguments = dict(_mapping(arguments))
        self.settings = _known(settings, RequestOptions.__annotations__, f"a setting of the agent {name!r}")

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
        """Take a turn on a thread and return what came of it; without a thread it is the first one of a new one.

        ``messages`` are what is new: words, a message, or several; ``()`` asks the agent to go on. ``returns`` is the
        type of the answer, or a JSON Schema; without it the answer is text.

        Raises ``ThreadBusy``, ``LimitExceeded`` for new messages larger than the thread's budget, what context
        providers and the reducer raise, and what `Kernel.complete` does. Whatever is raised, the thread is as it was.
        A ``LimitExceeded`` has what was said up to then: ``thread.add(*new, *error.messages)`` keeps it.
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
        """Do what `invoke` does, and yield what happens as it happens; the last event is the `AgentReply`.

        The others are those of `Kernel.stream`. The thread is busy from the first event to the last, and has the turn
        when that comes. Who stops before closes the stream, as ``async with contextlib.aclosing(agent.stream(…))``
        does: that ends what is under way, and the thread is as it was.
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
        """Make a function of the agent, for other agents, plans and templates: it is given a message, and answers.

        >>> from portico import Kernel
        >>> kernel = Kernel()
        >>> guide = ChatAgent("City guide", kernel=Kernel(), description="Knows its way about Oslo.")
        >>> kernel.add_function(guide.as_function()).spec.parameters["required"]
        ['message']

        Each call is its own conversation, unless there is a ``thread``: that remembers, and calls wait for each
        other there. The agent works in its own kernel, with its own functions, filters and limits. Functions of agents
        and of prompts may call each other, 16 deep and 1,000 times inside of one. What a call costs is in the usage of
        the agent's turn that made it. ``returns`` is the type of the answer, ``options`` are those of `invoke`.
        """
        checked = _known(options, _OPTIONS, "an option of an agent's turn")

        async def ask(message: str) -> Any:
            with nested(self.name, kind="Agents and prompt functions"):
                reply = await self.invoke(message, thread, returns=returns, **checked)
            spend(reply.usage)
            return reply.value

        kernel = self.kernel
        made = _UNFIT_IN_NAMES.sub("_", self.name).strip("_")
        if name is None and not made:
            raise ValueError(f"the name {self.name!r} makes no name of a function: give one with name=")
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
        )

    def _turn(
        self, messages: Said, thread: Thread | None, returns: object, options: AgentOptions, *, streamed: bool
    ) -> AsyncGenerator[AgentEvent[Any], None]:
        given = _known(options, _OPTIONS, "an option of an agent's turn")
        _mapping(given.get("arguments"))
        if "functions" in given:
            given["functions"] = _several(given["functions"])
        if thread is not None and not isinstance(thread, Thread):
            raise TypeError(f"thread= is a Thread, not {thread!r:.80}; Thread(messages=…) makes one of a conversation")
        thread = Thread() if thread is None else thread
        new = _new(messages)
        own = {"chat": self.chat, "limits": self.limits, **self.settings}
        merged = {name: value for name, value in own.items() if value is not None} | given
        return take_agent_turn(self, thread, new, returns, merged, streamed=streamed)

    def __repr__(self) -> str:
        return f"ChatAgent({self.name!r})"


def _known(options: Mapping[str, Any], known: Collection[str], what: str) -> dict[str, Any]:
    """Return the options that are given; ``TypeError`` for one that there is not."""
    for name in options:
        if name not in known:
            near = nearest(name, sorted(known))
            raise TypeError(f"{name!r} is not {what}" + (f"; {near[0]!r} is" if near else ""))
    return {name: value for name, value in options.items() if value is not None}


def _mapping(arguments: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if arguments is not None and not isinstance(arguments, Mapping):
        raise TypeError(f"arguments= are a mapping, of names to values, not {arguments!r:.80}")
    return arguments or {}


def _several(functions: Any) -> tuple[Offer, ...] | None:
    if isinstance(functions, str | Function):
        raise TypeError(f"functions= takes several: write functions=[{functions!r}]")
    return None if functions is None else tuple(functions)


def _new(messages: Any) -> tuple[Message, ...]:
    if isinstance(messages, Prompt):
        return messages.messages()
    if isinstance(messages, str):
        return (Message.of("user", messages),)
    if not isinstance(messages, Message | Sequence) or isinstance(messages, bytes):
        raise TypeError(f"an agent takes a text, a message, or several messages, not {messages!r:.80}")
    new = (messages,) if isinstance(messages, Message) else tuple(messages)
    for each in new:
        if not isinstance(each, Message):
            raise TypeError(f"an agent is asked with words or messages, and {each!r:.80} is no message")
    History.split_turns(new)
    return new
