"""A plan store that forgets everything with the process."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime

from portico.errors import StoreError
from portico.ports import SavedPlan

__all__ = ["MemoryPlanStore"]


class MemoryPlanStore:
    """Keep plans as texts in a dictionary.

    >>> store = MemoryPlanStore()
    >>> saved = SavedPlan("Greet", "c1", {"version": 1, "goal": "Greet", "steps": []}, "2026-01-01T00:00:00+00:00")
    >>> async def keep():
    ...     await store.put(saved)
    ...     return await store.get(" Greet ", "c1")
    >>> asyncio.run(keep()) == saved
    True

    Each call gives way to other tasks first, as a store with a disk would.
    """

    name = "memory"

    def __init__(self) -> None:
        self._plans: dict[tuple[str, str], tuple[str, SavedPlan]] = {}

    async def get(self, goal: str, catalogue: str) -> SavedPlan | None:
        """Return the plan of a goal for a catalogue, or None."""
        await asyncio.sleep(0)
        kept = self._plans.get((goal.strip(), catalogue))
        return None if kept is None else _with_plan(*kept)

    async def put(self, saved: SavedPlan) -> None:
        """Keep a plan; ``StoreError`` for what is not JSON or has no time."""
        await asyncio.sleep(0)
        try:
            text = json.dumps(dict(saved.plan), allow_nan=False)
            _moment(saved.saved_at)
        except (TypeError, ValueError, RecursionError) as error:
            raise StoreError(f"The plan for {saved.goal[:60]!r} cannot be kept: {error}.") from error
        self._plans[saved.goal.strip(), saved.catalogue] = (text, saved)

    async def remove(self, goal: str, catalogue: str) -> bool:
        """Forget a plan; False when there was none."""
        await asyncio.sleep(0)
        return self._plans.pop((goal.strip(), catalogue), None) is not None

    async def plans(self) -> list[SavedPlan]:
        """Return all plans, the newest first."""
        await asyncio.sleep(0)
        kept = [_with_plan(*each) for each in self._plans.values()]
        return sorted(kept, key=lambda saved: _moment(saved.saved_at), reverse=True)


def _with_plan(text: str, saved: SavedPlan) -> SavedPlan:
    return SavedPlan(saved.goal.strip(), saved.catalogue, json.loads(text), saved.saved_at, saved.planner)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
