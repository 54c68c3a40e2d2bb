"""What comes of an agent's turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from portico.agents.reducing import WHOLE, Reduced
from portico.chat import ChatDelta, ChatReply, Message, Usage
from portico.turns.values import FunctionsOffered, PartialValue, ToolFinished, ToolStarted, Turn

if TYPE_CHECKING:
    from portico.agents.thread import Thread
    from portico.selection.selection import Selection

__all__ = ["AgentEvent", "AgentReply"]

T = TypeVar("T")

_NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class AgentReply(Generic[T]):
    """What came of an agent's turn: its value, and the thread, which has the turn now.

    ``turn`` is that of the tool loop. ``usage`` counts the tokens of its rounds, of a summary that was made for it, and
    of agents that it called as functions.
    ``selections`` say how functions were chosen, by context providers and then by the kernel's function selector,
    where they were. ``reduced`` says what was sent in place of the oldest turns; `WHOLE` where all were sent.
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
