"""Threads: the messages of a conversation, and their JSON form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, Unpack, get_args
from uuid import uuid4

from portico._agents.reducing import (
    WHOLE,
    CountTokens,
    History,
    HistoryReducer,
    Reduced,
    TrimHistory,
    estimated_message_tokens,
)
from portico._agents.turn_lock import TurnLock
from portico._chat.json_form import (
    count_from,
    form_error,
    number_from,
    one_of,
    part_from_json,
    record,
    several,
    text_from,
    to_json,
    usage_from_json,
)
from portico._chat.messages import Message, Role, ToolChoice, ToolResult, Usage
from portico._tool_loop.values import require_known
from portico.errors import ThreadBusy, ThreadFormatError

if TYPE_CHECKING:
    from portico._agents.turn_lock import Hold
    from portico._functions.functions import Function
    from portico._selection.selection import Selection
    from portico._tool_loop.values import ChooseAgain, Turn


VERSION = 1


def thread_to_json(id: str, turns: Sequence[ThreadTurn], reduced: Reduced) -> dict[str, Any]:
    """Return a thread as JSON values, without what is empty. See `Thread.to_json`."""
    written = [to_json(turn, f"$.turns[{index}]", (ThreadTurn,)) for index, turn in enumerate(turns)]
    document: dict[str, Any] = {"version": VERSION, "id": id, "turns": written}
    if reduced != WHOLE:
        document["reduced"] = to_json(reduced, "$.reduced", (Reduced,))
    return document


def thread_from_json(document: object) -> tuple[str, tuple[ThreadTurn, ...], Reduced]:
    """Read the id, the turns, and how the history was reduced; see `Thread.from_json`."""
    version = document.get("version", VERSION) if isinstance(document, dict) else VERSION
    if version != VERSION or type(version) is bool:
        raise form_error("$.version", f"{VERSION} (a newer Portico may have written the thread)", version)
    turn = record(ThreadTurn, {"messages": _messages}, {"agent": text_from, "usage": usage_from_json})
    reduced = record(Reduced, {"turns": count_from, "messages": _messages}, {"usage": usage_from_json})
    members = {"version": number_from, "id": text_from, "turns": several(turn)}
    body = record(dict, members, {"reduced": reduced})(document, "$")
    id, turns, reduced_to = body["id"], body["turns"], body.get("reduced", WHOLE)
    if not id:
        raise form_error("$.id", "a text that is not empty", id)
    if reduced_to.turns > len(turns):
        raise ThreadFormatError(
            f"$.reduced.turns: {reduced_to.turns} turns are reduced, and the thread has {len(turns)}."
        )
    return id, turns, reduced_to


def _messages(document: object, place: str) -> tuple[Message, ...]:
    members = {"role": one_of(get_args(Role)), "content": several(part_from_json)}
    message = record(Message, members, {"name": text_from, "untrusted": several(text_from)})
    messages: tuple[Message, ...] = several(message)(document, place)
    try:
        History.split_turns(messages)
    except ValueError as error:
        raise ThreadFormatError(f"{place}: {error}.") from error
    return messages


_WAYS = ("wait", "refuse")
_NO_USAGE = Usage()
_ANY = ToolChoice()


class ThreadOptions(TypedDict, total=False):
    """The options of a `Thread`; they are not saved with it."""

    budget: int | None
    reducer: HistoryReducer | None
    context_providers: Iterable[ContextProvider]
    count_tokens: CountTokens
    when_busy: Literal["wait", "refuse"]


@dataclass(frozen=True, slots=True)
class ThreadTurn:
    """A turn that was taken: its messages, the agent that answered, and the cost."""

    messages: tuple[Message, ...]
    agent: str | None = None
    usage: Usage = _NO_USAGE


class Thread:
    """Keep a conversation between its turns.

    >>> thread = Thread("t1", messages=[Message.of("user", "Hello"), Message.of("assistant", "Good day!")])
    >>> thread
    Thread('t1', turns=1)
    >>> Thread.from_json(thread.to_json()).messages == thread.messages
    True

    It keeps every message of every turn that ended well. The ``budget`` is in tokens, as ``count_tokens`` counts them.
    The history and the new messages of a turn count; the instructions, what context providers add, the functions and
    the calls of the turn do not. When they are more than the budget, ``reducer`` decides what is sent of the history:
    by default the newest turns that fit. All of it is sent again when it fits again. `AgentReply.reduced` says what was
    sent in a turn.

    Turns on one thread are taken one after the other, in the order of the calls, on one event loop at a time. With
    ``when_busy="refuse"`` a turn that would have to wait raises ``ThreadBusy``. A turn that fails, is cancelled, or
    whose stream is closed before its end leaves the thread unchanged.

    Raises ``ValueError`` for messages that are no conversation: a call without its result, a result without its call.
    """

    def __init__(self, id: str | None = None, *, messages: Sequence[Message] = (), **options: Unpack[ThreadOptions]):
        require_known(options, ThreadOptions.__annotations__, "an option of a thread")
        if id is not None and (not id or type(id) is not str):
            raise ValueError(f"the id of a thread is a text, not {id!r}")
        self.id = uuid4().hex if id is None else id
        self.budget = options.get("budget")
        if self.budget is not None and (type(self.budget) is not int or self.budget < 1):
            raise ValueError(f"budget= is at least one token, not {self.budget!r}")
        self.reducer: HistoryReducer = options.get("reducer") or TrimHistory()
        self.context_providers = list(options.get("context_providers", ()))
        self.count_tokens = options.get("count_tokens", estimated_message_tokens)
        self.when_busy = options.get("when_busy", "wait")
        if self.when_busy not in _WAYS:
            raise ValueError(f"when_busy= is one of {', '.join(_WAYS)}, not {self.when_busy!r}")
        self._turns = _turns_of(messages)
        self._reduced = WHOLE
        self._sizes: list[int] = []
        self.lock = TurnLock(self.id)

    @property
    def turns(self) -> tuple[ThreadTurn, ...]:
        """The turns that were taken, the oldest first."""
        return self._turns

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, the oldest first, whatever is sent of them."""
        return tuple(message for turn in self._turns for message in turn.messages)

    @property
    def reduced(self) -> Reduced:
        """How the history was made to fit the last time that not all of it did; `WHOLE` where all did."""
        return self._reduced

    @property
    def busy(self) -> bool:
        """Whether a turn is being taken just now."""
        return self.lock.busy

    def add(self, *messages: Message) -> None:
        """Add what was said elsewhere: by a person who took over, or by an agent of another kind.

        Raises ``ThreadBusy`` while a turn is being taken, and ``ValueError`` for what is no conversation.
        """
        if self.busy:
            raise ThreadBusy(f"The thread {self.id!r} is busy with a turn; add to it before or after.")
        self._turns = (*self._turns, *_turns_of(messages))

    def branch(self, turns: int | None = None, *, id: str | None = None) -> Thread:
        """Return its own thread that goes on from here, or from after the first so many turns.

        A negative number leaves as many of the last turns out: ``thread.branch(-1)`` is the way to ask the last
        question again. Budget, reducer, providers and all else are those of this thread.
        """
        thread = Thread(
            id,
            budget=self.budget,
            reducer=self.reducer,
            context_providers=self.context_providers,
            count_tokens=self.count_tokens,
            when_busy=self.when_busy,
        )
        thread._turns = self._turns[:turns]
        if self._reduced.turns <= len(thread._turns):
            thread._reduced = self._reduced
        return thread

    def to_json(self) -> dict[str, Any]:
        """Return the thread as JSON values, to save it: every message, and how it was reduced the last time.

        While a turn is being taken that is the thread before the turn. Raises ``ThreadFormatError`` with the place for
        what JSON does not have, such as an object of a service in a `Reasoning`.
        """
        return thread_to_json(self.id, self._turns, self._reduced)

    @classmethod
    def from_json(cls, document: object, **options: Unpack[ThreadOptions]) -> Thread:
        """Read a thread from JSON values; ``options`` are those of a new one, since they are not saved.

        Raises ``ThreadFormatError`` with the place for a document that is damaged, or that a newer version wrote.
        """
        id, turns, reduced = thread_from_json(document)
        thread = cls(id, **options)
        thread._turns, thread._reduced = turns, reduced
        return thread

    async def enter(self) -> Hold:
        """Wait for a turn's place in the order of coming: for agents, who give back the hold when it is over.

        Raises ``ThreadBusy``; see `portico._agents.turn_lock`.
        """
        return await self.lock.enter(wait=self.when_busy == "wait")

    def history(self) -> History:
        """Return what a reducer sees; tokens are counted once for each turn."""
        more = self._turns[len(self._sizes) :]
        self._sizes += [sum(map(self.count_tokens, turn.messages)) for turn in more]
        said = tuple(turn.messages for turn in self._turns)
        return History(said, self._reduced, self.count_tokens, tuple(self._sizes))

    def keep(self, turn: ThreadTurn, reduced: Reduced = WHOLE) -> None:
        """Add a turn that was taken, and how the history was sent in it: for agents, inside of their turn.

        Raises ``ValueError`` for a call without its result, and a result without its call.
        """
        History.split_turns(turn.messages)
        self._turns = (*self._turns, replace(turn, messages=tuple(map(_without_causes, turn.messages))))
        if reduced != WHOLE:
            self._reduced = reduced  # kept where all was sent this time too: a summary is dear

    def __repr__(self) -> str:
        return f"Thread({self.id!r}, turns={len(self._turns)})"


def _turns_of(messages: Iterable[Message]) -> tuple[ThreadTurn, ...]:
    messages = tuple(messages)
    for each in messages:
        if not isinstance(each, Message):
            raise TypeError(f"a thread is of messages, and {each!r:.80} is none; Message.of(role, …) makes one")
    return tuple(map(ThreadTurn, History.split_turns(tuple(map(_without_causes, messages)))))


def _without_causes(message: Message) -> Message:
    """Forget what functions raised: a thread would hold their frames, with all that is in them, as long as it lives."""
    if message.role != "tool":
        return message
    parts = (replace(part, cause=None) if isinstance(part, ToolResult) else part for part in message.content)
    return replace(message, content=tuple(parts))


@dataclass(frozen=True, slots=True)
class AgentTurn:
    """A turn that is about to be taken: ``earlier`` are the messages of the thread, ``new`` those of this turn.

    ``tool_choice`` names the functions that may be offered in it.
    """

    agent: str
    thread: Thread
    earlier: tuple[Message, ...]
    new: tuple[Message, ...]
    tool_choice: ToolChoice = _ANY


@dataclass(frozen=True, slots=True)
class Context:
    """What one provider adds to one turn.

    ``messages`` come before the new ones, those of the user in one message with them, and are not kept in the thread.
    Where a policy is enforced, they are not said by the user, unless their ``untrusted`` is ``()``. ``instructions``
    follow the agent's own. ``functions`` are offered as they are: a selector does not choose of them.
    ``selection`` tells how the functions were chosen, where they were, and ``among`` are all that they were chosen of:
    ``tool_choice`` may name those. ``again`` chooses anew after each round of calls, see `ChosenFunctions`.
    """

    functions: tuple[Function, ...] = ()
    messages: tuple[Message, ...] = ()
    instructions: str = ""
    selection: Selection | None = None
    among: tuple[Function, ...] = ()
    again: ChooseAgain | None = None


class ContextProvider(Protocol):
    """Adds functions, messages and instructions to each turn of an agent, and sees its outcome.

    Behaviour: `before` is called once before each turn, for all providers at the same time. Their additions are for
    this turn only, in the order of the providers, those of the agent first. A message of the user at the end is joined
    with the user's own. Functions are offered whatever the kernel's selector chooses. `after` is called once after each
    turn that `before` was called for, with the same ``turn``, whether it ended well, failed or was cancelled, and
    before the thread has the turn. A provider of both the agent and the thread is asked once. A provider may serve
    several agents and threads at once; it keeps what it remembers by ``turn.thread.id``.
    Errors: what `before` or `after` raises ends the turn, and the thread stays as it was. After a turn that has failed,
    errors of `after` are logged.
    """

    async def before(self, turn: AgentTurn) -> Context | None:
        """Return what to add to this turn; None is nothing."""
        ...

    async def after(self, turn: AgentTurn, outcome: Turn[Any] | BaseException) -> None:
        """See how the turn ended: with a turn, or with the error that ended it (``CancelledError``: it was stopped)."""
        ...
