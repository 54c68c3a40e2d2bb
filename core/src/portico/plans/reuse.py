"""Plans kept to be used again: found by their goal and by what the functions are like."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from portico.errors import PlanFormatError, StoreDamaged
from portico.functions import FunctionManual
from portico.plans.json_form import plan_from_json, plan_to_json
from portico.plans.plan import Plan, functions_used
from portico.plans.staleness import fingerprint
from portico.ports.plan_store import PlanStore, SavedPlan

__all__ = ["FoundPlan", "StalePlan", "catalogue_hash", "find_plan", "saved_plan"]


@dataclass(frozen=True, slots=True)
class FoundPlan:
    """A plan that was kept for this goal, whose functions are as they were.

    ``exact`` is False where the catalogue has changed otherwise: the plan can run, but a new one may be better.
    """

    plan: Plan
    saved: SavedPlan
    exact: bool = True


@dataclass(frozen=True, slots=True)
class StalePlan:
    """A plan that was kept for this goal, and the functions that are gone or another since."""

    plan: Plan
    saved: SavedPlan
    gone: tuple[str, ...]
    changed: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"gone: {', '.join(self.gone)}"] if self.gone else []
        parts += [f"changed: {', '.join(self.changed)}"] if self.changed else []
        return f"The plan saved at {self.saved.saved_at} does not fit the functions any more ({'; '.join(parts)})."


def catalogue_hash(manuals: Iterable[FunctionManual]) -> str:
    """Return a hash of all functions: equal in every process and in any order, another when any of them changes.

    >>> catalogue_hash([])
    'e3b0c44298fc1c149afbf4c8996fb924'

    What counts is what plans rest on: name, parameters, result and effects. What a function says that it is for is
    not part of it: who mends a word there does not throw away all plans.
    """
    lines = sorted(f"{manual.name}\0{fingerprint(manual)}\n" for manual in manuals)
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def saved_plan(
    goal: str,
    plan: Plan,
    manuals: Mapping[str, FunctionManual],
    *,
    planner: str = "",
    called: Iterable[str] = (),
    at: datetime | None = None,
) -> SavedPlan:
    """Return a plan as a store keeps it, with a fingerprint of each function that it uses.

    ``called`` are functions that its templates call, which a plan by itself does not tell.
    ``goal`` is what it is found by. Raises ``ValueError`` for a blank goal and a plan without a result, which is a
    move and answers nothing, and ``PlanFormatError`` for values that JSON does not have.
    """
    if not goal.strip():
        raise ValueError("the goal is blank: nothing would find the plan")
    if plan.result is None:
        raise ValueError("a plan without a result answers nothing: it cannot be used again")
    used = sorted({*functions_used(plan), *called})
    prints = {name: fingerprint(manuals[name]) for name in used if name in manuals}
    when = datetime.now(UTC) if at is None else at.astimezone(UTC)
    return SavedPlan(
        goal=goal.strip(),
        catalogue=catalogue_hash(manuals.values()),
        plan=plan_to_json(replace(plan, fingerprints={**plan.fingerprints, **prints})),
        saved_at=when.isoformat(timespec="microseconds"),
        planner=planner,
    )


async def find_plan(store: PlanStore, goal: str, manuals: Mapping[str, FunctionManual]) -> FoundPlan | StalePlan | None:
    """Return the plan that a store has for a goal: one that fits, else one that is stale, else None.

    One made for exactly these functions comes first; else the newest whose own functions are all as they were: what
    else is in the catalogue does not make it wrong. A stale one says what changed. A plan that fits still has to pass
    its check, as every plan does. Raises ``StoreError``, ``StoreDamaged`` for what is kept and is no plan.
    """
    goal = goal.strip()
    exact = await store.get(goal, catalogue_hash(manuals.values()))
    if exact is not None:
        found = _judged(exact, manuals)
        if isinstance(found, FoundPlan):
            return found
    stale: StalePlan | None = None
    for saved in await store.plans():
        if saved.goal.strip() != goal:
            continue
        found = _judged(saved, manuals)
        if isinstance(found, FoundPlan):
            return replace(found, exact=False)
        stale = stale or found
    return stale


def _judged(saved: SavedPlan, manuals: Mapping[str, FunctionManual]) -> FoundPlan | StalePlan:
    try:
        plan = plan_from_json(dict(saved.plan))
    except PlanFormatError as error:
        raise StoreDamaged(
            f"The plan saved for {saved.goal[:60]!r} is no plan: {error} Remove it from the plan store."
        ) from error
    used = functions_used(plan)
    gone = tuple(sorted(name for name in used | plan.fingerprints.keys() if name not in manuals))
    changed = tuple(
        sorted(
            name
            for name, recorded in plan.fingerprints.items()
            if name in manuals and fingerprint(manuals[name]) != recorded
        )
    )
    return StalePlan(plan, saved, gone, changed) if gone or changed else FoundPlan(plan, saved)
