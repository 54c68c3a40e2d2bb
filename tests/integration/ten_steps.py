"""A plugin for tests of many workers: a planner of ten steps, and functions that write down each time they run.

``calls`` in the folder of the setting ``log`` has a line for each call that begins and one for each that ends: what
happened, the goal, the step, the time. A kill of the process takes no line away.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path

from portico import Answer, FunctionPlugin, Infeasible, Plan, Registration, Services, Step, Task, function
from portico.plans import Emit, Expression, From, ListOf, Value

WORK, PAY = "steps-Work", "steps-Pay"
FIRST = {"s1": [], "s2": ["s1"], "s3": ["s1"], "s4": ["s2", "s3"], "s5": ["s4"]}
SECOND = {"s6": ["s5"], "s7": ["s5"], "s8": ["s6", "s7"], "s9": ["s8"], "s10": ["s9"]}
PAID = frozenset({"s4", "s9"})
"""The steps whose functions have effects."""


@dataclass(frozen=True)
class TenStepsSettings:
    """Where calls are written down, and how long one takes; ``paying`` is how long one with effects does, if not so."""

    log: Path
    seconds: float = 0.05
    paying: float | None = None


@dataclass(frozen=True)
class PlannerSettings:
    """None: the planner has but one plan."""


class TenSteps:
    """The functions of the plan."""

    def __init__(self, settings: TenStepsSettings, services: Services) -> None:
        self._settings = settings

    async def load(self, name: str) -> FunctionPlugin:
        """Return both, one that may run twice and one that must not."""
        settings = self._settings

        async def run(goal: str, step: str, seconds: float) -> str:
            append(settings.log / "calls", f"begins {goal} {step} {time.time():.3f}")
            await asyncio.sleep(seconds)
            append(settings.log / "calls", f"ends {goal} {step} {time.time():.3f}")
            return f"{goal}/{step}"

        class Steps:
            @function(name="Work")
            async def work(self, goal: str, step: str, after: list[str]) -> str:
                """Do what may be done again."""
                return await run(goal, step, settings.seconds)

            @function(name="Pay", effects=True)
            async def pay(self, goal: str, step: str, after: list[str]) -> str:
                """Do what must not be done twice."""
                return await run(goal, step, settings.seconds if settings.paying is None else settings.paying)

        return FunctionPlugin.of(Steps(), name)


class TenStepsPlanner:
    """Propose five steps, then five more with a result."""

    name = "ten-steps"

    def __init__(self, settings: PlannerSettings, services: Services | None) -> None:
        pass

    async def propose(self, task: Task, *, emit: Emit) -> Plan | Answer | Infeasible:
        """Propose the half that has not run."""
        if not task.steps:
            return Plan(task.goal, steps(task.goal, FIRST))
        return Plan(task.goal, steps(task.goal, SECOND), From("s10"))


def steps(goal: str, tree: dict[str, list[str]]) -> tuple[Step, ...]:
    """Return the steps of one half; each takes the results of those before it."""

    def given(before: list[str]) -> Expression:
        return ListOf(tuple(map(From, before)))

    return tuple(
        Step(step, PAY if step in PAID else WORK, {"goal": Value(goal), "step": Value(step), "after": given(before)})
        for step, before in tree.items()
    )


def append(file: Path, line: str) -> None:
    """Add a line whole."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def portico_function_plugins() -> list[Registration]:
    """Register the functions."""
    return [
        Registration(name="ten-steps", factory="ten_steps:TenSteps", settings="ten_steps:TenStepsSettings", summary="s")
    ]


def portico_planners() -> list[Registration]:
    """Register the planner."""
    return [
        Registration(
            name="ten-steps", factory="ten_steps:TenStepsPlanner", settings="ten_steps:PlannerSettings", summary="s"
        )
    ]
