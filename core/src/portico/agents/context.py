"""What a context provider sees of a turn, and what it may add to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from portico.chat import Message

if TYPE_CHECKING:
    from portico.agents.thread import Thread
    from portico.functions import Function
    from portico.selection.selection import Selection
    from portico.turns import Turn

__all__ = ["AgentTurn", "Context", "TurnOutcome"]


@dataclass(frozen=True, slots=True)
class AgentTurn:
    """A turn that is about to be taken: ``earlier`` are the messages of the thread, ``new`` those of this turn."""

    agent: str
    thread: Thread
    earlier: tuple[Message, ...]
    new: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """What one provider adds to one turn.

    ``messages`` come before the new ones, those of the user in one message with them, and are not kept in the thread;
    ``instructions`` follow the agent's own. ``functions`` are offered as they are: a selector does not choose of them.
    ``selection`` tells how the functions were chosen, where they were.
    """

    functions: tuple[Function, ...] = ()
    messages: tuple[Message, ...] = ()
    instructions: str = ""
    selection: Selection | None = None


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """How a turn ended: with ``turn``, or with the ``error`` that ended it (``CancelledError``: stopped)."""

    turn: Turn[Any] | None = None
    error: BaseException | None = field(default=None, repr=False)
