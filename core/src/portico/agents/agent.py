"""An agent: a name, instructions, functions and a kernel, asked turn by turn on threads."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Unpack, overload

from portico.agents.instructing import Instructions, is_template
from portico.agents.providing import checked_providers
from portico.agents.reducing import split_turns
from portico.agents.replies import AgentEvent, AgentReply
from portico.agents.thread import Thread
from portico.agents.turn_taking import take_agent_turn
from portico.agents.turnstile import spend
from portico.chat import Message
from portico.errors import nearest
from portico.functions import Function, Parameter
from portico.prompts.inputs import compiled_input
from portico.prompts.nesting import nested
from portico.prompts.prompt import Prompt
from portico.turns.values import RequestOptions, TurnLimits, TurnOptions

if TYPE_CHECKING:
    from portico.agents.offering import Offer
    from portico.kernel import Kernel
    from portico.ports.chat_service import ChatService
    from portico.ports.context_provider import ContextProvider

__all__ = ["AgentOptions", "ChatAgent", "Said"]

T = TypeVar("T")

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
        kernel: Kernel,
        description: str = "",
        context_providers: Iterable[ContextProvider] = (),
        functions: Iterable[Offer] | None = None,
        chat: ChatService | str | None = None,
        limits: TurnLimits | None = None,
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
        A ``TurnLimitExceeded`` has what was said up to then: ``thread.add(*new, *error.messages)`` keeps it.
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
        >>> kernel.add_function(guide.as_function()).manual.parameters["required"]
        ['message']

        Each call is a conversation of its own, unless there is a ``thread``: that remembers, and calls wait for each
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
            parameters=(Parameter("message", about, compiled_input(str), required=True),),
            returns=compiled_input(str if returns is None else returns, kernel.type_codecs, kernel.schema_validator),
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
        raise TypeError(f"an agent is asked with words, a message, or several, and not with {messages!r:.80}")
    new = (messages,) if isinstance(messages, Message) else tuple(messages)
    for each in new:
        if not isinstance(each, Message):
            raise TypeError(f"an agent is asked with words or messages, and {each!r:.80} is no message")
    split_turns(new)
    return new
