"""Runs what a step does for each item of a list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from portico._plans.plan import Plan
from portico._runs.scheduling import PausedStep, Rows
from portico._schema.values import kind_of
from portico.errors import PlanError

_TOLD = 3


def require_list(items: Any) -> list[Any]:
    """Return what a step runs for; raises ``PlanError`` if it is no list."""
    if not isinstance(items, list):
        raise PlanError(f"it runs for each item of a list, and got {kind_of(items)}")
    return items


async def run_items(items: Sequence[Any], at_once: int, run: Callable[[int, Any], Awaitable[Any]]) -> list[Any]:
    """Run something for the items, in their order and so many at a time, and return the results in that order.

    After a failure, or a step that is held, nothing new begins; what runs comes to its end before that is raised. Other
    things that are raised stop what runs.
    """
    if at_once == 1 or len(items) < 2:
        return [await run(index, item) for index, item in enumerate(items)]
    rows = _Items(items, run)
    await rows.side_by_side(range(min(at_once, len(items))))
    stop = rows.held or rows.failure
    if stop is not None:
        raise stop
    return rows.found


class _Items(Rows):
    def __init__(self, items: Sequence[Any], run: Callable[[int, Any], Awaitable[Any]]) -> None:
        super().__init__()
        self.run = run
        self.waiting = iter(enumerate(items))
        self.found: list[Any] = [None] * len(items)
        self.failure: Exception | None = None

    async def work(self, first: Any) -> None:
        while not (self.held or self.failure or self.stopped) and (one := next(self.waiting, None)) is not None:
            try:
                self.found[one[0]] = await self.run(*one)
            except PausedStep as held:
                self.held = self.held or held
            except Exception as error:  # noqa: BLE001 - raised when what runs beside it has ended
                self.failure = self.failure or error


def count_items(step: str, number: int, function: Any, ended: Collection[str]) -> int:
    """Count the items of a step that have not ended, and with each the steps of the plan that it runs, if it does."""
    plan = function if isinstance(function, Plan) else Plan("")
    if not ended:
        return number * (1 + count_steps(plan))
    ids = (f"{step}[{index}]" for index in range(number))
    return sum(1 + count_steps(plan, ended, f"{id}/") for id in ids if id not in ended)


def count_steps(plan: Plan, ended: Collection[str] = (), within: str = "") -> int:
    """Count the steps of a plan that have not ended, and those of the plans nested in them.

    The steps of a plan that runs for each item of a list count with the items.
    """
    number = 0
    for step in plan.steps:
        if within + step.id not in ended:
            number += 1
            if isinstance(step.function, Plan) and step.each is None:
                number += count_steps(step.function, ended, f"{within}{step.id}/")
    return number


def warn_of(failed: Mapping[str, str], step: str) -> list[str]:
    """Return what the answer says of the items that failed and are skipped.

    >>> warn_of({"s1[1]": "no mail", "s1[2]": "no mail"}, "s1")
    ['2 items of the step s1 failed, and their results are null: s1[1], s1[2]: no mail']
    """
    if not failed:
        return []
    reasons: dict[str, list[str]] = {}
    for id, error in failed.items():
        reasons.setdefault(error, []).append(id)
    shown = [(ids[:_TOLD], error) for error, ids in reasons.items()][:_TOLD]
    told = "; ".join(f"{', '.join(ids)}: {error}" for ids, error in shown)
    left = len(failed) - sum(len(ids) for ids, _ in shown)
    which = "1 item" if len(failed) == 1 else f"{len(failed)} items"
    their = "its result is" if len(failed) == 1 else "their results are"
    more = f"; and {left} more" if left else ""
    return [f"{which} of the step {step} failed, and {their} null: {told}{more}"]
