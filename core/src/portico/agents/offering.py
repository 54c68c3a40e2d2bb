"""Which functions an agent offers in a turn: its own, or those of its kernel, and those of context providers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from portico.agents.context import Context
from portico.agents.providing import named
from portico.errors import UnsupportedOption
from portico.functions import Function, FunctionPlugin
from portico.turns.values import ChosenFunctions

if TYPE_CHECKING:
    from portico.agents.agent import ChatAgent
    from portico.kernel import Kernel
    from portico.ports.chat_service import ChatService
    from portico.ports.context_provider import ContextProvider

__all__ = ["Offer", "offered"]

Offer: TypeAlias = "str | Function | FunctionPlugin | ChosenFunctions"
"""A function, the name of one, a plugin, the name of one, or functions that were chosen already."""


def offered(
    agent: ChatAgent,
    options: dict[str, Any],
    contexts: Iterable[tuple[ContextProvider, Context]],
    chat: ChatService,
) -> list[Offer]:
    """Return what to offer, as `Kernel.complete` takes it: the turn's choice, the agent's, or the kernel's all.

    The turn's choice is taken out of its ``options``. What providers add they chose for this turn, so the kernel's
    selector does not choose among it again.

    Raises ``ValueError`` for two functions of one name, saying whose they are, and ``UnsupportedOption`` where the
    kernel's were taken for want of a choice and the service calls none.
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


def _each(functions: Iterable[Offer], kernel: Kernel) -> Iterator[Function]:
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
