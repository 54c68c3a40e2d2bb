"""The PlanStore port: plans that are kept to be used again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from portico._plans.saved import SavedPlan


class PlanStore(Protocol):
    """Keeps plans by their goal and the catalogue that they were made for.

    Behaviour: one plan for each pair; saving again replaces it, whole or not at all. Goals are compared as they are,
    but for white space around them. Calls may run concurrently.
    Errors: ``StoreError``; ``StoreDamaged`` for what is no saved plan, naming where it lies.
    """

    name: str

    async def get(self, goal: str, catalogue: str) -> SavedPlan | None:
        """Return the plan of a goal for a catalogue, or None."""
        ...

    async def put(self, saved: SavedPlan) -> None:
        """Keep a plan, in place of an earlier one of its goal and catalogue."""
        ...

    async def remove(self, goal: str, catalogue: str) -> bool:
        """Forget a plan; False when there was none."""
        ...

    async def plans(self) -> list[SavedPlan]:
        """Return all plans, the newest first."""
        ...
