"""A conversation that is kept: its turns, how it is sent when it grows long, and one turn at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack
from uuid import uuid4

from portico.agents.providing import checked_providers
from portico.agents.reducing import (
    WHOLE,
    CountTokens,
    DropOldest,
    History,
    Reduced,
    Reducer,
    estimated_message_tokens,
    split_turns,
)
from portico.agents.turnstile import Turnstile
from portico.chat import Message, ToolResult, Usage
from portico.errors import ThreadBusy

if TYPE_CHECKING:
    from portico.agents.turnstile import Hold
    from portico.ports.context_provider import ContextProvider

__all__ = ["Thread", "ThreadOptions", "ThreadTurn"]

_WAYS = ("wait", "refuse")
_NO_USAGE = Usage()


class ThreadOptions(TypedDict, total=False):
    """What an application says of a thread, and what is not saved with it; see `Thread`."""

    budget: int | None
    reducer: Reducer | None
    context_providers: Iterable[ContextProvider]
    count_tokens: CountTokens
    when_busy: Literal["wait", "refuse"]


@dataclass(frozen=True, slots=True)
class ThreadTurn:
    """A turn that was taken: all that was said in it, by which agent it was answered, and what it cost."""

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

    It keeps every message of every turn that ended well. With a ``budget`` not all of them may be sent: the budget is
    of tokens, as ``count_tokens`` counts them, and what counts is the history and the new messages of a turn, not the
    instructions, not what context providers add, not the functions, and not what the turn itself adds in its calls.
    When that is more than the budget, ``reducer`` says what is sent of the history: by default the newest turns that
    fit. All of it is sent again once it fits again; `AgentReply.reduced` tells what a turn was taken with.

    Turns on one thread are taken one after the other, in the order in which they were asked for, from one event loop
    or several, in one process; with ``when_busy="refuse"`` a turn that would have to wait raises ``ThreadBusy``. A turn
    that fails, is cancelled, or whose stream is closed before its end leaves the thread as it was before.

    Raises ``ValueError`` for messages that are no conversation: a call without its result, a result without its call.
    """

    def __init__(self, id: str | None = None, *, messages: Sequence[Message] = (), **options: Unpack[ThreadOptions]):
        unknown = options.keys() - ThreadOptions.__annotations__.keys()
        if unknown:
            raise TypeError(f"{min(unknown)!r} is not an option of a thread; {', '.join(_OPTIONS)} are")
        if id is not None and (not id or type(id) is not str):
            raise ValueError(f"the id of a thread is a text, not {id!r}")
        self.id = uuid4().hex if id is None else id
        self.budget = options.get("budget")
        if self.budget is not None and (type(self.budget) is not int or self.budget < 1):
            raise ValueError(f"budget= is at least one token, not {self.budget!r}")
        self.reducer: Reducer = options.get("reducer") or DropOldest()
        if isinstance(self.reducer, type) or not hasattr(self.reducer, "reduce"):
            raise TypeError(f"{self.reducer!r} is no reducer: DropOldest() is one, and Summarise()")
        self.context_providers = checked_providers(options.get("context_providers", ()))
        self.count_tokens = options.get("count_tokens", estimated_message_tokens)
        self.when_busy = options.get("when_busy", "wait")
        if self.when_busy not in _WAYS:
            raise ValueError(f"when_busy= is one of {', '.join(_WAYS)}, not {self.when_busy!r}")
        self._turns = _turns_of(messages)
        self._reduced = WHOLE
        # Turns are only ever added: what was made of them is kept and gone on with.
        self._flat: tuple[tuple[ThreadTurn, ...], tuple[Message, ...]] = ((), ())
        self._said: tuple[tuple[Message, ...], ...] = ()
        self._sizes: tuple[CountTokens, tuple[int, ...]] = (self.count_tokens, ())
        self.turnstile = Turnstile(self.id)

    @property
    def turns(self) -> tuple[ThreadTurn, ...]:
        """The turns that were taken, the oldest first."""
        return self._turns

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, the oldest first, whatever is sent of them."""
        turns, messages = self._flat
        if turns is not self._turns:
            messages = (*messages, *(message for turn in self._turns[len(turns) :] for message in turn.messages))
            self._flat = (self._turns, messages)
        return messages

    @property
    def reduced(self) -> Reduced:
        """How the history was made to fit the last time that not all of it did; `WHOLE` where all did."""
        return self._reduced

    @property
    def busy(self) -> bool:
        """Whether a turn is being taken just now."""
        return self.turnstile.busy

    def add(self, *messages: Message) -> None:
        """Add what was said elsewhere: by a person who took over, or by an agent of another kind.

        Raises ``ThreadBusy`` while a turn is being taken, and ``ValueError`` for what is no conversation.
        """
        if self.busy:
            raise ThreadBusy(f"The thread {self.id!r} is busy with a turn; add to it before or after.")
        self._turns = (*self._turns, *_turns_of(messages))

    def branch(self, turns: int | None = None, *, id: str | None = None) -> Thread:
        """Return a thread of its own that goes on from here, or from after the first so many turns.

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
        from portico.agents.thread_json import thread_to_json

        return thread_to_json(self.id, self._turns, self._reduced)

    @classmethod
    def from_json(cls, document: object, **options: Unpack[ThreadOptions]) -> Thread:
        """Read a thread from JSON values; ``options`` are those of a new one, since they are not saved.

        Raises ``ThreadFormatError`` with the place for a document that is damaged, or that a newer version wrote.
        """
        from portico.agents.thread_json import thread_from_json

        id, turns, reduced = thread_from_json(document)
        thread = cls(id, **options)
        thread._turns, thread._reduced = turns, reduced
        return thread

    async def enter(self) -> Hold:
        """Wait for a turn's place in the order of coming: for agents, who give back the hold when it is over.

        Raises ``ThreadBusy``; see `portico.agents.turnstile`.
        """
        return await self.turnstile.enter(wait=self.when_busy == "wait")

    def history(self) -> History:
        """Return what a reducer sees; tokens are counted once for each turn."""
        count, sizes = self._sizes
        if count is not self.count_tokens or len(sizes) > len(self._turns):
            count, sizes = self.count_tokens, ()
        if len(self._said) > len(self._turns):
            self._said = ()
        self._said = (*self._said, *(turn.messages for turn in self._turns[len(self._said) :]))
        more = (sum(map(count, turn.messages)) for turn in self._turns[len(sizes) :])
        self._sizes = (count, (*sizes, *more))
        return History(self._said, self._reduced, count, self._sizes[1])

    def keep(self, turn: ThreadTurn, reduced: Reduced = WHOLE) -> None:
        """Add a turn that was taken, and how the history was sent in it: for agents, inside of their turn.

        Raises ``ValueError`` for a call without its result, and a result without its call.
        """
        split_turns(turn.messages)
        self._turns = (*self._turns, replace(turn, messages=tuple(map(_without_causes, turn.messages))))
        if reduced != WHOLE:
            self._reduced = reduced  # kept where all was sent this time too: a summary is dear

    def __repr__(self) -> str:
        return f"Thread({self.id!r}, turns={len(self._turns)})"


_OPTIONS = tuple(ThreadOptions.__annotations__)


def _turns_of(messages: Iterable[Message]) -> tuple[ThreadTurn, ...]:
    messages = tuple(messages)
    for each in messages:
        if not isinstance(each, Message):
            raise TypeError(f"a thread is of messages, and {each!r:.80} is none; Message.of(role, …) makes one")
    return tuple(map(ThreadTurn, split_turns(tuple(map(_without_causes, messages)))))


def _without_causes(message: Message) -> Message:
    """Forget what functions raised: a thread would hold their frames, with all that is in them, as long as it lives."""
    if message.role != "tool":
        return message
    parts = (replace(part, cause=None) if isinstance(part, ToolResult) else part for part in message.content)
    return replace(message, content=tuple(parts))
