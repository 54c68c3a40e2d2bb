"""Which functions a model is offered, for the messages of a conversation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from portico._selection.selection import Considered, Selection

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from portico._chat.messages import Message
    from portico._functions.functions import FunctionSpec
    from portico._ports.function_selector import FunctionSelector

_EARLIER = 2
_RESULTS, _SHOWN = 4, 300


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
    calls: Sequence[tuple[str, str]] = (),
) -> Selection | None:
    """Return what the selector offers of functions for a context; None where nothing is left out.

    Functions ``named`` by the caller are offered as well, unless there are more of them than the selector offers.
    Functions ``chosen`` before are offered however many they are, and so are those of ``calls``: names and results. The
    beginnings of the last results are part of the context. Raises what the selector does, and ``TypeError`` for a
    selector that offers what it was not given.
    """
    always = frozenset(chosen)
    if named and len(named) <= selector.limit:
        always = always.union(named)
    others = {name: spec for name, spec in specs.items() if name not in always}
    if not others:
        return None
    # Those called stay among the others, so that a selector gets the same functions in each round.
    called = tuple(dict.fromkeys(name for name, _ in calls if name in others))
    texts = (*context, *(result[:_SHOWN] for _, result in calls[-_RESULTS:]))
    limit = selector.limit + len(called) if called else None
    selection = await selector.select(tuple(others.values()), texts, limit=limit)
    offered = frozenset(selection.names)
    for name in offered - others.keys():
        raise TypeError(f"the function selector {selector.name!r} offered {name!r}, which it was not given")
    if len(offered) == len(others):
        return None
    if called:
        selection = selection.keep(called, selector.limit)
    first = tuple(Considered(name, "always") for name in specs if name in always)
    return replace(selection, offered=(*first, *selection.offered), considered=selection.considered + len(first))
