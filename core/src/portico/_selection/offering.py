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


async def selected(
    selector: FunctionSelector,
    specs: Mapping[str, FunctionSpec],
    context: Sequence[str],
    *,
    named: Collection[str] = (),
    chosen: Collection[str] = (),
) -> Selection | None:
    """Return what the selector offers of functions for a context; None where all are, and nothing is left out.

    Those ``named`` were asked for one by one: they are offered besides what is chosen of the others, as those are that
    always are, unless there are more of them than the selector offers. Those ``chosen`` already are offered however
    many they are. Raises what the selector does, and ``TypeError`` for one that offers what it was not given.
    """
    given = frozenset(chosen)
    if named and len(named) <= selector.limit:
        given = given.union(named)
    if not given:
        return await _asked(selector, specs, context)
    others = {name: spec for name, spec in specs.items() if name not in given}
    selection = await _asked(selector, others, context) if others else None
    if selection is None:
        return None
    first = tuple(Considered(name, "always") for name in specs if name in given)
    return replace(selection, offered=(*first, *selection.offered), considered=selection.considered + len(first))


async def _asked(
    selector: FunctionSelector, specs: Mapping[str, FunctionSpec], context: Sequence[str]
) -> Selection | None:
    selection = await selector.select(tuple(specs.values()), context)
    strange = [name for name in selection.names if name not in specs]
    if strange:
        raise TypeError(f"the function selector {selector.name!r} offered {strange[0]!r}, which it was not given")
    return None if len(set(selection.names)) >= len(specs) else selection
