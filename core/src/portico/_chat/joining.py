"""Messages of a user that meet become one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from portico._chat.messages import Message, Source, Text

if TYPE_CHECKING:
    from collections.abc import Iterable


def join_messages(
    before: tuple[Message, ...], after: tuple[Message, ...], *, alike: bool = False
) -> tuple[Message, ...]:
    """Put messages after others; two messages of the user that meet become one.

    The chat templates of many models refuse two messages of one role that follow each other. With ``alike`` only those
    become one in which the same untrusted places had a part.
    """
    if not (before and after) or not before[-1].role == after[0].role == "user":
        return (*before, *after)
    last, first = before[-1], after[0]
    if last.name not in (None, first.name) or (alike and last.untrusted != first.untrusted):
        return (*before, *after)
    # A source ends its line, a text does not.
    meeting = (*last.content[-1:], *first.content[:1])
    apart = len(meeting) == 2 and isinstance(meeting[0], Text) and isinstance(meeting[1], Text | Source)
    between = (Text("\n\n"),) if apart else ()
    return (*before[:-1], replace(first, content=(*last.content, *between, *first.content)), *after[1:])


def join_unlike(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Join the messages of a user that were kept apart since different untrusted places had a part in them."""
    joined: list[Message] = []
    for message in messages:
        if joined and joined[-1].untrusted != message.untrusted:
            joined += join_messages((joined.pop(),), (message,))
        else:
            joined.append(message)
    return tuple(joined)
