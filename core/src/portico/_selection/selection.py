"""Which functions a model is offered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from portico._chat.messages import Message
    from portico._functions.functions import FunctionSpec
    from portico._ports.function_selector import FunctionSelector

_EARLIER = 2

Reason: TypeAlias = Literal["always", "all", "chosen", "beyond the limit", "below the minimum score"]


@dataclass(frozen=True, slots=True)
class Considered:
    """A function and how well it fits the context: ``score`` is fused of ``lexical`` and ``vector``.

    ``vector`` is the best cosine, -1 to 1, with any of the context's requests; ``lexical`` is the best share of a
    request's words, weighed by their rarity, that the function's text has, 0 to 1. All three are 0 where nothing had
    to be measured. ``reason`` says why it is offered ("always", "all", "chosen") or left out.
    """

    name: str
    reason: Reason
    score: float = 0.0
    lexical: float = 0.0
    vector: float = 0.0


@dataclass(frozen=True, slots=True)
class Selection:
    """The functions offered, those that always are first, then the best first; and what was left out.

    ``left_out`` has those that came nearest, the best first, each with its reason; ``considered`` counts all functions
    that there were. ``requests`` are what the context was taken to ask for. ``absent`` names those that are always
    offered, and were not among the functions that there were. ``embedded`` counts the texts that were embedded for it.

    >>> Selection((Considered("Mail-Send", "chosen", 0.7),), considered=9).names
    ('Mail-Send',)
    """

    offered: tuple[Considered, ...]
    left_out: tuple[Considered, ...] = ()
    considered: int = 0
    requests: tuple[str, ...] = ()
    embedded: int = 0
    absent: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the functions offered, in order."""
        return tuple(each.name for each in self.offered)


@dataclass(frozen=True, slots=True)
class FunctionsOffered:
    """There were more functions than a model sees; these are offered, and no others can be called.

    It comes before the model is asked, where a function selector is at work and leaves something out.
    """

    selection: Selection


def recent_texts(messages: Sequence[Message], *, earlier: int = _EARLIER) -> tuple[str, ...]:
    """Return the texts that say what a conversation is about just now, oldest first.

    >>> from portico._chat.messages import Message
    >>> said = [("user", "Any mail?"), ("assistant", "One, from Ada."), ("user", "And the weather?")]
    >>> recent_texts([Message.of(role, words) for role, words in said], earlier=1)
    ('One, from Ada.', 'And the weather?')

    They are the ``earlier`` last messages of the turns before, and all that came since the model spoke last. Messages
    without words, such as calls and their results, do not count; instructions do only where there is nothing else.
    """
    spoken = [message for message in messages if message.role != "system" and message.text.strip()]
    if not spoken:
        return tuple(message.text for message in messages if message.text.strip())
    new = next((place for place, message in enumerate(reversed(spoken)) if message.role == "assistant"), len(spoken))
    return tuple(message.text for message in spoken[max(len(spoken) - new - earlier, 0) :])


async def select_functions(
    selector: FunctionSelector,
    specs: Mapping[str, FunctionSpec],
    context: Sequence[str],
    *,
    named: Collection[str] = (),
    chosen: Collection[str] = (),
) -> Selection | None:
    """Return what the selector offers of functions for a context; None where nothing is left out.

    Functions ``named`` by the caller are offered as well, unless there are more of them than the selector offers.
    Functions ``chosen`` before are offered however many they are. Raises what the selector does, and ``TypeError`` for
    a selector that offers what it was not given.
    """
    always = frozenset(chosen)
    if named and len(named) <= selector.limit:
        always = always.union(named)
    others = {name: spec for name, spec in specs.items() if name not in always}
    if not others:
        return None
    selection = await selector.select(tuple(others.values()), context)
    offered = frozenset(selection.names)
    for name in offered - others.keys():
        raise TypeError(f"the function selector {selector.name!r} offered {name!r}, which it was not given")
    if len(offered) == len(others):
        return None
    first = tuple(Considered(name, "always") for name in specs if name in always)
    return replace(selection, offered=(*first, *selection.offered), considered=selection.considered + len(first))
