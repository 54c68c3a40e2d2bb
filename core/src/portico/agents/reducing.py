"""What of a long conversation is sent: all of it, its newest turns, or these and what stands for the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, Unpack

from portico.chat import File, Image, Message, Reasoning, Source, Text, ToolCall, ToolResult, Usage
from portico.errors import LimitExceeded
from portico.tokens import estimated_tokens

if TYPE_CHECKING:
    from portico.ports.chat_service import ChatService
    from portico.turns import Asked, Turn, TurnOptions

__all__ = [
    "WHOLE",
    "Asks",
    "CountTokens",
    "DropOldest",
    "History",
    "Reduced",
    "Reducer",
    "estimated_message_tokens",
    "fitted",
    "split_turns",
    "turns_with_room",
]

CountTokens: TypeAlias = Callable[[Message], int]
"""Counts the tokens of one message."""

_NO_USAGE = Usage()
_AROUND = 4
"""Tokens around a message, a call or a result: who speaks, its id, where it ends."""
_IMAGE = 1_000
_BYTES_A_TOKEN = 3


@dataclass(frozen=True, slots=True)
class Reduced:
    """What is sent in place of the oldest turns: ``messages`` instead of the first ``turns`` ones.

    Whole turns only, so that no call is ever sent without its results, and no result without its call. Messages of the
    system that a conversation begins with are sent in any case. ``usage`` is what it cost to make.
    """

    turns: int = 0
    messages: tuple[Message, ...] = ()
    usage: Usage = _NO_USAGE


WHOLE = Reduced()
"""Nothing is left out."""


@dataclass(frozen=True, slots=True)
class History:
    """A conversation as a reducer sees it: its turns, each whole, and how it was reduced the last time.

    >>> said = [Message.of("user", "Hello"), Message.of("assistant", "Good day!"), Message.of("user", "How are you?")]
    >>> history = History(split_turns(said))
    >>> [message.text for message in history.sent(Reduced(turns=1))]
    ['How are you?']

    ``sizes`` are the tokens of the turns, as ``count`` counts them.
    """

    turns: tuple[tuple[Message, ...], ...]
    reduced: Reduced = WHOLE
    count: CountTokens = lambda message: estimated_message_tokens(message)  # noqa: PLW0108 - it stands below
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.sizes) != len(self.turns):
            object.__setattr__(self, "sizes", tuple(sum(map(self.count, turn)) for turn in self.turns))

    @property
    def beginning(self) -> tuple[Message, ...]:
        """The messages of the system that it begins with; they are sent when their turn is not, too."""
        return tuple(takewhile(lambda message: message.role == "system", self.turns[0])) if self.turns else ()

    def instead(self, reduced: Reduced) -> tuple[Message, ...]:
        """Return what is sent in place of the turns that are not."""
        return (*self.beginning, *reduced.messages) if reduced.turns else reduced.messages

    def sent(self, reduced: Reduced) -> tuple[Message, ...]:
        """Return what is sent of it, reduced in this way."""
        return (*self.instead(reduced), *(message for turn in self.turns[reduced.turns :] for message in turn))

    def tokens(self, reduced: Reduced) -> int:
        """Count the tokens of what is sent of it, reduced in this way."""
        return sum(map(self.count, self.instead(reduced))) + sum(self.sizes[reduced.turns :])


class Asks(Protocol):
    """Who asks a model for a reducer: a kernel, see `Kernel.complete`."""

    async def complete(self, messages: Asked, *, returns: None = None, **options: Unpack[TurnOptions]) -> Turn[str]:
        """Ask, and return the turn with the text of the answer."""
        ...


class Reducer(Protocol):
    """Makes a history fit.

    Behaviour: it is asked only where what would be sent has too many tokens, ``history.reduced`` tried before. What
    it gives is kept with the thread, and used until that has too many tokens too. The turns themselves stay in the
    thread, whatever is sent. One reducer may serve several threads at once.
    Errors: what it raises ends the turn, and the thread stays as it was.
    """

    async def reduce(
        self, history: History, *, tokens: int, kernel: Asks, chat: ChatService | str | None = None
    ) -> Reduced:
        """Return what to send of a history within so many tokens.

        ``kernel`` and ``chat``, the service that the turn is about to ask, are there for reducers that ask a model.
        """
        ...


class DropOldest:
    """Leave the oldest turns out, each whole, until the others fit.

    >>> import asyncio
    >>> from portico import Kernel
    >>> history = History(((Message.of("user", "a" * 300),), (Message.of("user", "Hello"),)))
    >>> asyncio.run(DropOldest().reduce(history, tokens=50, kernel=Kernel())).turns
    1

    ``share`` is how much of the room the turns that stay may take, once some have to go. Below 1, more is left out at
    a time and less often: the beginning of what is sent stays the same for several turns, which services cache.
    """

    def __init__(self, *, share: float = 1.0) -> None:
        if not 0 <= share <= 1:
            raise ValueError(f"share= is from 0 to 1, not {share!r}")
        self.share = share

    async def reduce(
        self, history: History, *, tokens: int, kernel: Asks, chat: ChatService | str | None = None
    ) -> Reduced:
        """Return how many turns are left out."""
        return Reduced(len(history.turns) - turns_with_room(history, int(tokens * self.share)))

    def __repr__(self) -> str:
        return "DropOldest()" if self.share == 1 else f"DropOldest(share={self.share})"


def turns_with_room(history: History, tokens: int) -> int:
    """Return how many of the newest turns have room in so many tokens, beside what the conversation begins with."""
    if sum(history.sizes) <= tokens:
        return len(history.turns)
    tokens -= sum(map(history.count, history.beginning))
    kept = 0
    for size in reversed(history.sizes):
        tokens -= size
        if tokens < 0:
            break
        kept += 1
    return kept


async def fitted(
    history: History, *, tokens: int, reducer: Reducer, kernel: Asks, chat: ChatService | str | None = None
) -> Reduced:
    """Return how a history is sent within so many tokens.

    All of it as long as it fits, then reduced as the last time as long as that fits, then as ``reducer`` says.
    Raises ``LimitExceeded`` when that is too much still, and ``TypeError`` for what is no `Reduced` of this history.
    """
    for known in (WHOLE, history.reduced):
        if history.tokens(known) <= tokens:
            return known
    reduced: Any = await reducer.reduce(history, tokens=tokens, kernel=kernel, chat=chat)
    if not isinstance(reduced, Reduced) or not 0 <= reduced.turns <= len(history.turns):
        raise TypeError(
            f"the reducer {reducer!r} gave {reduced!r:.200}, and not a Reduced of the {len(history.turns)} turns"
        )
    split_turns(reduced.messages)
    if history.tokens(reduced) > tokens:
        raise LimitExceeded(
            f"The reducer {reducer!r} left {history.tokens(reduced):,} tokens of the history, and there is room for "
            f"{tokens:,}. Raise the thread's budget, or let it leave less."
        )
    return reduced


def estimated_message_tokens(message: Message) -> int:
    """Estimate, rather too high, how many tokens a message is.

    >>> estimated_message_tokens(Message.of("user", "What is a port?"))
    9

    Words, sources, calls with their arguments, results and reasoning count by `estimated_tokens`, one for three bytes;
    a message, a call and a result 4 besides; an image 1,000, whatever its size; a file one for three of its bytes.
    """
    total = _AROUND + (estimated_tokens(message.name) if message.name else 0)
    for part in message.content:
        match part:
            case Text(text):
                total += estimated_tokens(text)
            case Image():
                total += _IMAGE
            case File():
                total += len(part.data) // _BYTES_A_TOKEN + _AROUND
            case Source():
                total += estimated_tokens(f"{part.name or ''}{part.link or ''}{part.text}") + _AROUND
            case ToolCall():
                total += estimated_tokens(part.name + part.arguments) + _AROUND
            case ToolResult():
                total += estimated_tokens(part.content) + _AROUND
            case Reasoning():
                total += estimated_tokens(json.dumps(part.data, default=str, ensure_ascii=False))
    return total


def split_turns(messages: Sequence[Message]) -> tuple[tuple[Message, ...], ...]:
    """Split a conversation into turns: what was said, and all that answered it, calls and results included.

    >>> said = [Message.of(role, role) for role in ("system", "user", "assistant", "user", "assistant", "assistant")]
    >>> [len(turn) for turn in split_turns(said)]
    [3, 3]

    Raises ``ValueError`` for a call without a result, and for a result without a call: no service takes them.
    """
    turns: list[list[Message]] = []
    calls: list[str] = []
    answered = True
    for place, message in enumerate(messages):
        asking = message.role in ("user", "system")
        if not turns or (asking and answered and not calls):
            turns.append([])
        answered = not asking
        turns[-1].append(message)
        for part in message.content:
            if isinstance(part, ToolCall):
                calls.append(part.id)
            elif isinstance(part, ToolResult):
                if part.id not in calls:
                    raise ValueError(f"messages[{place}]: there is no call before the result of {part.id!r}")
                calls.remove(part.id)
    if calls:
        raise ValueError(f"the call {calls[0]!r} has no result")
    return tuple(map(tuple, turns))
