"""Prompt functions that call each other, bounded: one that calls itself would never come to an end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from portico.errors import LimitExceeded

__all__ = ["nested"]

_DEEPEST = 16
_MOST = 1_000


@dataclass(slots=True)
class _Calls:
    """All calls inside of the outermost one."""

    count: int = 0


@dataclass(frozen=True, slots=True)
class _Place:
    names: tuple[str, ...] = ()
    calls: _Calls = field(default_factory=_Calls)


_INSIDE: ContextVar[_Place | None] = ContextVar("portico_prompt_functions", default=None)


@contextmanager
def nested(name: str, *, kind: str = "Prompt functions") -> Iterator[None]:
    """Go into a prompt function, from a template, a model's call or code, in this task or in one that it started.

    Plans that are functions count with them: each may call the other. ``kind`` is how an error speaks of them.

    Raises ``LimitExceeded`` more than 16 deep, and for more than 1,000 calls inside of one: two calls of itself in a
    template would be a million after 20 levels.
    """
    place = _INSIDE.get() or _Place()
    place.calls.count += 1
    if len(place.names) >= _DEEPEST:
        chain = " > ".join([*place.names[-2:], name])
        raise LimitExceeded(f"{kind} call each other at most {_DEEPEST} deep, and here it is … > {chain}.")
    if place.calls.count > _MOST:
        raise LimitExceeded(
            f"{place.names[0]}: {kind[0].lower()}{kind[1:]} are called at most {_MOST:,} times inside of one; "
            f"the last was {name}."
        )
    token = _INSIDE.set(_Place((*place.names, name), place.calls))
    try:
        yield
    finally:
        _INSIDE.reset(token)
