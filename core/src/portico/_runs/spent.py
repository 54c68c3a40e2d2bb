"""What a run has used of its budget."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from portico._plans.plan import Step
from portico._runs.attempts import RunLimit
from portico._runs.scheduling import Broken
from portico.errors import LimitExceeded

if TYPE_CHECKING:
    from portico._plans.task import Budget, StepRecord

_COMPOSED, _COMPOSED_A_STEP = 32_000_000, 320_000


@dataclass(slots=True)
class Spent:
    """What the steps of a run have used of its ``budget``."""

    budget: Budget
    composed: int = 0
    """The bytes of all that the steps put together."""
    steps: int = 0
    """How many steps have run or may still run for what runs now."""
    items: int = 0
    """How many items of lists, with the steps that run for them, have run or may still run for what runs now."""

    def count(self, more: int, within: Step | None = None) -> None:
        """Count further steps; raises `Broken` beyond the budget. Those inside of a call for an item are items."""
        if within is not None and within.repeated:
            try:
                self.count_items(more, within)
            except RunLimit as error:
                raise Broken(error) from None
            return
        self.steps += more
        if self.steps > self.budget.steps:
            who = "The run" if within is None else f"With what the step {within.id} calls, the run"
            limit = f"{who} would run more than its {self.budget.steps} steps. Allow more with the budget's steps."
            raise Broken(LimitExceeded(limit))

    def count_items(self, more: int, step: Step) -> None:
        """Count further items of a step; raises `RunLimit` beyond the budget."""
        left = self.budget.items - self.items
        if more > left:
            most = f"the run has {left:,} of {self.budget.items:,} left"
            mend = "Allow more with the budget's items, in portico.toml max_items of [planner]."
            raise RunLimit(f"The step {step.id} needs {more:,} items, and {most}. {mend}")
        self.items += more

    def spend(self, size: int) -> None:
        """Count what was put together, in bytes; raises `RunLimit` when the steps of a run make too much."""
        self.composed += size
        if self.composed > (most := max(_COMPOSED, self.budget.steps * _COMPOSED_A_STEP)):
            limit = f"The steps of a run put together at most {most:,} bytes of texts, lists and objects."
            raise RunLimit(f"{limit} Allow more steps in its budget, and these are more.")


def ran(records: Iterable[StepRecord]) -> tuple[int, int]:
    """Return how many steps have run, and how many items of lists with the steps that ran for them."""
    repeated = [record.step.repeated for record in records]
    return repeated.count(False), repeated.count(True)
