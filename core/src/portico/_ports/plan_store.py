"""The PlanStore port: plans that are kept to be used again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """A plan as it was saved: its goal, a hash of the catalogue it was made for, its JSON form, and when (UTC, ISO).

    It is ``edited`` if a store finds another `digest` than it wrote: a person changed the plan, or a disk did.
    """

    goal: str
    catalogue: str
    plan: Mapping[str, Any]
    saved_at: str
    planner: str = ""
    edited: bool = field(default=False, compare=False)

    @property
    def digest(self) -> str:
        """SHA-256 of all but ``edited``, in hexadecimal; the order of keys makes no difference."""
        body = [self.goal, self.catalogue, dict(self.plan), self.saved_at, self.planner]
        return sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


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
