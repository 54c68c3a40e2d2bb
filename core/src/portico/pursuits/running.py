"""Running a checked plan: by the dependency graph, not by the order of the list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeAlias

from portico.errors import StepFailed
from portico.filters import Hold
from portico.plans.path import read_path
from portico.plans.plan import INPUT, Expression, From, ListOf, ObjectOf, Plan, Step, TextOf, Value, references

__all__ = ["Broken", "ExecuteStep", "HeldStep", "evaluate", "run_steps"]

ExecuteStep: TypeAlias = Callable[[Step, dict[str, Any]], Awaitable[Any]]
"""Executes one step with JSON arguments and returns its JSON result."""


# Neither of the two is a failure of the step: no filter of the application is to take it for one.
class Broken(BaseException):
    """What stops a plan as a whole: the journal, a listener or a bound raised ``error``."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        super().__init__(str(error))


class HeldStep(BaseException):
    """A step filter held a step."""

    def __init__(self, step: Step, hold: Hold) -> None:
        self.step = step
        self.hold = hold
        super().__init__(hold.reason)


def evaluate(expression: Expression, results: Mapping[str, Any]) -> Any:
    """Return the JSON value of an expression, given the results of the steps it refers to.

    Raises ``LookupError`` when a reference leads to nothing.
    """
    # The two that most arguments are come first: this runs for every argument of every step.
    if type(expression) is Value:
        return expression.value
    if type(expression) is From:
        step, path = expression.step, expression.path
        if step not in results:
            raise LookupError("no input was given" if step == INPUT else f"the step {step} has no result")
        return read_path(results[step], path) if path else results[step]
    match expression:
        case TextOf(parts):
            return "".join(part if isinstance(part, str) else _as_text(evaluate(part, results)) for part in parts)
        case ListOf(items):
            return [evaluate(item, results) for item in items]
        case ObjectOf(members):
            return {name: evaluate(member, results) for name, member in members.items()}
    raise TypeError(f"{expression!r} is no expression")


async def run_steps(
    plan: Plan, results: dict[str, Any], execute: ExecuteStep, *, failed: Collection[str] = ()
) -> list[StepFailed]:
    """Run every step of ``plan`` that has no result, independent ones concurrently, and add to ``results``.

    A step whose predecessor failed is not run, nor is one of those that have ``failed`` before. Returns the failures.

    Nothing that is started is left running. A cancellation, or what is `Broken`, stops it. After a `HeldStep` nothing
    new begins, but what runs comes to its end before it is raised: its results are not lost.
    """
    return await _Running(plan, results, execute, failed).to_the_end()


class _Running:
    __slots__ = ("execute", "failures", "following", "group", "held", "ready", "results", "waiting")

    def __init__(self, plan: Plan, results: dict[str, Any], execute: ExecuteStep, failed: Collection[str]) -> None:
        self.results = results
        self.execute = execute
        self.failures: list[StepFailed] = []
        self.held: HeldStep | None = None
        self.group: asyncio.TaskGroup | None = None
        self.ready: list[Step] = []
        self.waiting: dict[str, int] = {}
        self.following: dict[str, list[Step]] = {}
        following, waiting = self.following, self.waiting
        for step in plan.steps:
            if step.id in results or step.id in failed:
                continue
            count = 0
            for before in _before(step):
                if before not in results:
                    count += 1
                    if before in following:
                        following[before].append(step)
                    else:
                        following[before] = [step]
            if count:
                waiting[step.id] = count
            else:
                self.ready.append(step)

    async def to_the_end(self) -> list[StepFailed]:
        ready = self.ready
        # As long as one step follows another, none of them needs a task of its own.
        while len(ready) == 1 and self.held is None:
            step = ready[0]
            ready = self.released(step.id) if await self.one(step) else []
        if ready and self.held is None:
            await self.side_by_side(ready)
        if self.held is not None:
            raise self.held
        return self.failures

    async def side_by_side(self, ready: list[Step]) -> None:
        broken: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as group:
                self.group = group
                for step in ready:
                    group.create_task(self.row(step))
        except BaseExceptionGroup as errors:
            broken = errors.exceptions[0]
        if broken is not None:
            raise broken  # Outside of the handler, so that it keeps the cause and context that it has.

    async def row(self, step: Step) -> None:
        """Run a step, and in the same task one of those that waited for it alone, and so on."""
        assert self.group is not None  # noqa: S101 - rows are started by the group
        while self.held is None and await self.one(step):
            ready = self.released(step.id)
            if not ready:
                return
            for other in ready[1:]:
                self.group.create_task(self.row(other))
            step = ready[0]

    async def one(self, step: Step) -> bool:
        results = self.results
        try:
            arguments = {name: evaluate(argument, results) for name, argument in step.arguments.items()}
            results[step.id] = await self.execute(step, arguments)
        except HeldStep as held:
            self.held = self.held or held
            return False
        except Exception as error:  # noqa: BLE001 - a step may fail in any way; the failure is data here
            failure = StepFailed(step.id, error)
            failure.__cause__ = error
            self.failures.append(failure)
            return False
        return True

    def released(self, step: str) -> list[Step]:
        """Return the steps that waited for this one only."""
        ready = []
        for following in self.following.get(step, ()):
            left = self.waiting[following.id] - 1
            self.waiting[following.id] = left
            if not left:
                ready.append(following)
        return ready


def _before(step: Step) -> set[str]:
    """Return what a step waits for; the input is there from the beginning, or never comes."""
    before = set(step.after)
    for argument in step.arguments.values():
        if type(argument) is From:
            before.add(argument.step)
        elif type(argument) is not Value:
            before |= {reference.step for reference in references(argument)}
    before.discard(INPUT)
    return before


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
