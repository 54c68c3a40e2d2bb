"""Budgets in money: what replies cost is held to a limit before each call of a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from portico._chat.messages import Usage
from portico.errors import LimitExceeded, UnsupportedOption

if TYPE_CHECKING:
    from portico._chat.messages import ChatReply
    from portico._ports.chat_service import ChatService

_NOTHING = Usage()
_current: ContextVar[Purse | None] = ContextVar("purse", default=None)


@dataclass(slots=True)
class Purse:
    """What a run may spend on models, in US dollars, within what a run around it may."""

    limit: float
    outer: Purse | None = None
    usage: Usage = _NOTHING

    @property
    def spent(self) -> float:
        """US dollars so far."""
        return self.usage.cost or 0.0

    @property
    def empty(self) -> bool:
        """Whether no model may be asked any more: the money is spent, or it is not known how much of it."""
        unknown = self.usage.cost is None and self.usage != _NOTHING
        return unknown or self.spent >= self.limit or (self.outer is not None and self.outer.empty)

    def open_for(self, chat: ChatService) -> None:
        """Raise ``LimitExceeded`` where it is empty, ``UnsupportedOption`` for a service of unknown price."""
        if getattr(chat, "knows_cost", True) is False:
            raise unknown_price(chat.name)
        if self.spent >= self.limit:
            raise LimitExceeded(
                f"The run may cost {self.limit:g} US dollars, and its models have cost {self.spent:.6g}. Allow more "
                "with the budget's cost, in portico.toml max_cost of [planner]."
            )
        if self.outer is not None:
            self.outer.open_for(chat)

    def pay(self, chat: ChatService, reply: ChatReply) -> None:
        """Count a reply; raises ``UnsupportedOption`` where it does not say what it cost."""
        self.usage += reply.usage
        require_cost(chat, reply)
        if self.outer is not None:
            self.outer.pay(chat, reply)


def require_cost(chat: ChatService, reply: ChatReply) -> None:
    """Raise ``UnsupportedOption`` for a reply of a model that does not say what it cost."""
    if reply.usage.cost is None and (reply.usage != _NOTHING or chat.capabilities.language_model):
        raise unknown_price(chat.name)


def unknown_price(service: str) -> UnsupportedOption:
    """Return the error for a budget in money and a service that does not say what replies cost."""
    return UnsupportedOption(
        f"It is not known what replies of the chat service {service!r} cost, so a budget in US dollars cannot be kept. "
        "Set the price of its model (the setting price) where it counts tokens, or leave the budget's cost out."
    )


def purse() -> Purse | None:
    """Return what the run under way may spend; None for no bound."""
    return _current.get()


@contextmanager
def spending(limit: float | None, usage: Usage = _NOTHING) -> Iterator[None]:
    """Hold the model calls of a block to ``limit`` US dollars, of which ``usage`` is spent; None for no bound."""
    if limit is None:
        yield
        return
    token = _current.set(Purse(limit, _current.get(), usage))
    try:
        yield
    finally:
        _current.reset(token)
