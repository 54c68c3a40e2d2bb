"""Runs the steps of a plan in the order of their references, independent ones at the same time."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from portico._plans.plan import INPUT, Expression, Plan, Step, evaluate, evaluate_arguments
from portico.errors import StepFailed

if TYPE_CHECKING:
    from portico._functions.middleware import RequireApproval

ExecuteStep: TypeAlias = Callable[[Step, dict[str, Any]], Awaitable[Any]]
"""Executes one step with JSON arguments and returns its JSON result."""
Evaluate: TypeAlias = Callable[[Expression, Mapping[str, Any]], Any]
Decide: TypeAlias = Callable[[Step, dict[str, Any]], Awaitable[Any]]
"""Executes a step with ``each`` or ``when``, given the results so far, and returns its JSON result."""


# Neither of the two is a failure of the step: the application's middleware must not take it for one.
class Broken(BaseException):
    """What stops a plan as a whole: the journal, a listener or a bound raised ``error``."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        super().__init__(str(error))


class PausedStep(BaseException):
    """Step middleware paused a step."""

    def __init__(self, step: Step, hold: RequireApproval) -> None:
        self.step = step
        self.hold = hold
        super().__init__(hold.reason)


async def run_steps(
    plan: Plan,
    results: dict[str, Any],
    execute: ExecuteStep,
    evaluate: Evaluate = evaluate,
    *,
    failed: Iterable[str] = (),
    decide: Decide | None = None,
) -> list[StepFailed]:
    """Run every step of ``plan`` that has no result, independent ones concurrently, and add to ``results``.

    A step whose predecessor failed is not run, nor is one of those that have ``failed`` before. Returns the failures.

    Nothing that is started is left running. A cancellation, or what is `Broken`, stops it. After a `PausedStep` nothing
    new begins, but what runs comes to its end before it is raised: its results are not lost.
    """
    return await _Running(plan, results, execute, evaluate, failed={*failed}, decide=decide).to_the_end()


class Rows(ABC):
    """Tasks side by side, each a row of work that ends when `work` does."""

    def __init__(self) -> None:
        self.held: PausedStep | None = None
        self.rows: set[asyncio.Task[None]] = set()
        self.running = 0
        self.over: asyncio.Future[None] | None = None
        self.broken: BaseException | None = None
        self.stopped = False

    @abstractmethod
    async def work(self, first: Any) -> None:
        """Do the work of a row; what it raises stops all others."""

    async def side_by_side(self, firsts: Iterable[Any]) -> None:
        """Run a row for each of what they begin with, one at least, to the end of all."""
        # What a task group does, at half its price: no callback for each task, which wakes the loop once more.
        self.over = asyncio.get_running_loop().create_future()
        for first in firsts:
            self.begin(first)
        cancelled: asyncio.CancelledError | None = None
        try:
            await self.over
        except asyncio.CancelledError as error:
            cancelled = error
            self.stop(None)
        while left := [row for row in self.rows if not row.done()]:
            try:
                await asyncio.wait(left)
            except asyncio.CancelledError as error:
                cancelled = error
        self.rows.clear()
        stop = cancelled or self.broken
        if stop is not None:
            raise stop  # Outside of the handler, so that it keeps the cause and context that it has.

    def begin(self, first: Any) -> None:
        """Begin a row, unless all are stopped."""
        if not self.stopped:
            self.rows.add(asyncio.create_task(self._row(first)))
            self.running += 1

    def stop(self, error: BaseException | None) -> None:
        """Cancel what runs; nothing new begins."""
        assert self.over is not None  # noqa: S101 - made before any row
        self.broken = self.broken or error
        if not self.stopped:
            self.stopped = True
            this = asyncio.current_task()
            for row in self.rows:
                if row is not this:
                    row.cancel()
        if not self.over.done():
            self.over.set_result(None)

    async def _row(self, first: Any) -> None:
        try:
            await self.work(first)
        except BaseException as error:  # noqa: BLE001 - whoever waits for all of them raises it
            # Also a cancellation that came from elsewhere: the step must not vanish.
            if not (self.stopped and isinstance(error, asyncio.CancelledError)):
                self.stop(error)
        self.running -= 1
        assert self.over is not None  # noqa: S101 - made before any row
        if not self.running and not self.over.done():
            self.over.set_result(None)


class _Running(Rows):
    def __init__(
        self,
        plan: Plan,
        results: dict[str, Any],
        execute: ExecuteStep,
        evaluate: Evaluate,
        *,
        failed: set[str],
        decide: Decide | None,
    ) -> None:
        super().__init__()
        self.decide = decide
        self.results = results
        self.evaluate = evaluate
        self.execute = execute
        self.failures: list[StepFailed] = []
        self.ready: list[Step] = []
        self.waiting: dict[str, int] = {}
        self.following: dict[str, list[Step]] = {}
        following, waiting = self.following, self.waiting
        for step in plan.steps:
            if step.id in results or step.id in failed:
                continue
            count = 0
            for before in step.depends_on():
                # The input is there from the beginning, or never comes.
                if before not in results and before != INPUT:
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
        # As long as one step follows another, none of them needs its own task.
        while len(ready) == 1 and self.held is None:
            step = ready[0]
            ready = self.release(step.id) if await self.one(step) else []
        if ready and self.held is None:
            await self.side_by_side(ready)
        if self.held is not None:
            raise self.held
        return self.failures

    async def work(self, first: Step) -> None:
        """Run a step, and in the same task one of those that waited for it alone, and so on."""
        step = first
        while self.held is None and await self.one(step):
            ready = self.release(step.id)
            if not ready or self.stopped:
                return
            for other in ready[1:]:
                self.begin(other)
            step = ready[0]

    async def one(self, step: Step) -> bool:
        results = self.results
        try:
            if (step.each is not None or step.when is not None) and self.decide is not None:
                results[step.id] = await self.decide(step, results)
            else:
                results[step.id] = await self.execute(step, evaluate_arguments(step, results, self.evaluate))
        except PausedStep as held:
            self.held = self.held or held
            return False
        except Exception as error:  # noqa: BLE001 - a step may fail in any way; the failure is data here
            failure = StepFailed(step.id, error)
            failure.__cause__ = error
            self.failures.append(failure)
            return False
        return True

    def release(self, step: str) -> list[Step]:
        """Return the steps that waited for this one only."""
        ready = []
        for following in self.following.get(step, ()):
            left = self.waiting[following.id] - 1
            self.waiting[following.id] = left
            if not left:
                ready.append(following)
        return ready
