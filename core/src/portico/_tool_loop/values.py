"""Turns of a model: what one may cost, what happens in it, what comes of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypedDict, TypeVar

from portico._chat.messages import ChatDelta, ChatReply, ChatRequest, Message, ToolCall, ToolChoice, ToolResult, Usage
from portico._selection.selection import FunctionsOffered
from portico.errors import nearest

if TYPE_CHECKING:
    from portico._functions.functions import Function, FunctionPlugin
    from portico._ports.chat_service import ChatService
    from portico._selection.selection import Selection
    from portico._tool_loop.toolset import Toolset


T = TypeVar("T")

Asked: TypeAlias = str | Sequence[Message] | ChatRequest
"""What a turn begins with: a question, a rendered prompt, a conversation, or a whole request with settings."""


def require_known(options: Mapping[str, Any], known: Collection[str], what: str) -> dict[str, Any]:
    """Return the options that are not None; ``TypeError`` for an unknown one, with the nearest known one."""
    for name in options:
        if name not in known:
            near = nearest(name, sorted(known))
            raise TypeError(f"{name!r} is not {what}" + (f"; {near[0]!r} is" if near else ""))
    return {name: value for name, value in options.items() if value is not None}


class RequestOptions(TypedDict, total=False):
    """What can be said by name of each request of a turn; see `TurnOptions`, and `ChatRequest` for the last six."""

    tool_choice: ToolChoice | Literal["auto", "required", "none"]
    strict: bool
    response_name: str
    response_strict: bool
    parallel_tool_calls: bool
    temperature: float
    top_p: float
    max_tokens: int
    stop: tuple[str, ...]
    seed: int
    extras: Mapping[str, Any]


class TurnOptions(RequestOptions, total=False):
    """What can be given by name to `Kernel.complete`, `Kernel.stream` and `Kernel.invoke_prompt`.

    ``functions`` are offered to the model: functions, their names, or the names of plugins; none by default, all
    of the kernel's where only ``tool_choice`` is given. A kernel with a function selector offers those of them that
    the conversation is about, where they are more than it allows; what ``tool_choice`` includes, and what is named
    one by one beside plugins, is offered in any case, and so are `ChosenFunctions`. ``tool_choice`` is "auto",
    "required" (until it has called), "none", or a `ToolChoice` with function names to include and exclude. ``chat`` is
    a service, or the name of one that is configured. ``strict=False`` offers tools as they are to a service that could
    hold the model to them: it saves the time that such services take over a schema that they see for the first time.
    ``response_strict=False`` does the same with the schema of the answer; ``response_name`` is what the service is told
    that it is called, in place of the type's name or the schema's title. ``parallel_tool_calls=False`` asks for one
    call at a time where a service has that option, and carries out those that come all the same one after another. With
    ``auto_invoke=False`` the first reply with calls ends the turn, and the application carries them out. The others are
    settings of the request, over those of a request that is given; see `ChatRequest`.
    """

    functions: Iterable[str | Function | FunctionPlugin | ChosenFunctions]
    chat: ChatService | str
    limits: ToolLoopLimits
    auto_invoke: bool


@dataclass(frozen=True, slots=True)
class ChosenFunctions:
    """Functions that were chosen for a turn already: no function selector chooses among them again.

    ``tool_choice`` may name those in ``among`` too: all that they were chosen of. ``again`` chooses anew after each
    round of calls, for the messages that the turn has added and its calls, names and results; functions that were
    called are offered in any case. ``selection`` says how it chose.
    """

    functions: tuple[Function, ...]
    among: tuple[Function, ...] = ()
    again: ChooseAgain | None = None
    selection: Selection | None = None


ChooseAgain: TypeAlias = Callable[[Sequence[Message], Sequence[tuple[str, str]]], Awaitable[ChosenFunctions]]


@dataclass(frozen=True, slots=True)
class ToolLoopLimits:
    """What one turn may cost; reaching a limit raises ``LimitExceeded``.

    ``rounds`` are replies asked for, those that mend a malformed one included; ``calls`` are tool calls;
    ``tokens`` are those read and written, ``cost`` is what they cost in US dollars, both looked at after each reply;
    with ``cost``, a service of unknown price is refused with ``UnsupportedOption``. ``seconds`` are of the whole turn;
    ``repairs`` are how often a reply that is not of its form is sent back; ``result_characters`` is how much of a
    tool's result the model is shown, with a note where it was cut.
    """

    rounds: int = 16
    calls: int = 64
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    repairs: int = 2
    result_characters: int = 100_000

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None and not value >= 0:  # a number that is none is not, either
                raise ValueError(f"a limit is at least 0, and {name} is {value!r}")


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool call is about to be carried out; its name and arguments are the function's own."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool call was carried out, in so many seconds; ``result.cause`` has what was raised."""

    call: ToolCall
    result: ToolResult
    seconds: float


@dataclass(frozen=True, slots=True)
class PartialValue(Generic[T]):
    """What a reply with a form amounts to so far.

    Fields that have not come have their default, or None where they have none; what does not fit yet is left
    out. A later one has more of it, unless a reply was not of its form and is written anew. Of a reply with hundreds
    of values not every piece makes one.
    """

    value: T


@dataclass(frozen=True, slots=True)
class Turn(Generic[T]):
    """A turn that came to its end: its value, and all that was said on the way.

    ``messages`` are those that the turn added to the conversation: calls, results, and the last reply's.
    ``usage`` is of all its rounds together. ``selections`` say which functions were offered and why, where a function
    selector left some out: one of the turn, or one of each round where it chooses in each. With ``auto_invoke=False`` a
    turn may end with ``reply.tool_calls``, for `Kernel.call_tool` with the functions ``offered``; its value is then the
    words beside them, or None where a type was asked for.
    """

    value: T
    reply: ChatReply
    messages: tuple[Message, ...]
    usage: Usage
    rounds: int
    selections: tuple[Selection, ...] = ()
    offered: Toolset | None = field(default=None, repr=False, compare=False)

    @property
    def selection(self) -> Selection | None:
        """The last selection; None where all functions were offered that there are."""
        return self.selections[-1] if self.selections else None

    @property
    def text(self) -> str:
        """The words of the last reply."""
        return self.reply.text


TurnEvent: TypeAlias = ChatDelta | FunctionsOffered | ToolStarted | ToolFinished | PartialValue[T] | Turn[T]
