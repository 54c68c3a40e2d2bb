"""Runs what a step does for each item of a list."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from portico._runs.scheduling import Broken, PausedStep
from portico._schema.values import kind_of
from portico.errors import PlanError

_TOLD = 3
_ORDER = (Broken, asyncio.CancelledError, PausedStep, Exception)


def require_list(items: Any) -> list[Any]:
    """Return what a step runs for; raises ``PlanError`` if it is no list."""
    if not isinstance(items, list):
        raise PlanError(f"it runs for each item of a list, and got {kind_of(items)}")
    return items


async def run_items(items: Sequence[Any], at_once: int, run: Callable[[int, Any], Awaitable[Any]]) -> list[Any]:
    """Run something for the items, in their order and so many at a time, and return the results in that order.

    After a failure, or a step that is held, nothing new begins; what runs comes to its end before that is raised.
    """
    if at_once == 1:
        return [await run(index, item) for index, item in enumerate(items)]
    found: list[Any] = [None] * len(items)
    waiting = iter(enumerate(items))
    stops: list[BaseException] = []

    async def row() -> None:
        for index, item in waiting:
            try:
                found[index] = await run(index, item)
            except BaseException as error:  # noqa: BLE001 - raised below, when what runs beside it has ended
                stops.append(error)
            if stops:
                return

    await asyncio.gather(*(asyncio.create_task(row()) for _ in range(min(at_once, len(items)))))
    for kind in _ORDER:
        for stop in stops:
            if isinstance(stop, kind):
                raise stop
    return found


def warn_of(failed: Mapping[str, str], step: str) -> list[str]:
    """Return what the answer says of the items that failed and are skipped."""
    if not failed:
        return []
    shown = "; ".join(f"{id}: {error}" for id, error in list(failed.items())[:_TOLD])
    more = f"; and {len(failed) - _TOLD} more" if len(failed) > _TOLD else ""
    return [f"{len(failed)} items of the step {step} failed and are left out: {shown}{more}"]
