"""The ContextProvider port."""

from __future__ import annotations

from typing import Protocol

from portico.agents.context import AgentTurn, Context, TurnOutcome

__all__ = ["AgentTurn", "Context", "ContextProvider", "TurnOutcome"]


class ContextProvider(Protocol):
    """Adds to each turn of an agent: functions, messages, instructions; and sees what came of it.

    Behaviour: `before` is called once before each turn, those of all providers at the same time; what they give is put
    together in the order of the providers, those of the agent first, and is for this turn only. Messages of the user
    that end it are sent as one with what the user says. Functions are offered whatever the kernel's selector chooses.
    `after` is called once after each turn that `before` was called for, with the same ``turn``, whether it ended well,
    failed or was cancelled, and before the thread has the turn. One that is attached to the agent and to the thread is
    asked once. A provider may serve several agents and threads at once: what it remembers, it keeps by
    ``turn.thread.id``.
    Errors: what `before` raises ends the turn, and the thread stays as it was; what `after` raises does too. Of a turn
    that has failed already it is noted with that error, and of one that was stopped it is logged.
    """

    async def before(self, turn: AgentTurn) -> Context | None:
        """Return what to add to this turn; None is nothing."""
        ...

    async def after(self, turn: AgentTurn, outcome: TurnOutcome) -> None:
        """See how the turn ended."""
        ...
