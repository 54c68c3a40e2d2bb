"""Calling a function with Python values, and the step of a plan that it is called for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import CoroutineType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from portico.functions import Function

__all__ = ["CURRENT_STEP", "INNER_PLAN", "InnerPlan", "StepCall", "called", "current_step", "run_to_end"]

T = TypeVar("T")

CURRENT_STEP: ContextVar[tuple[str, str, int] | None] = ContextVar("portico_step", default=None)
"""Run, step and attempt of the step that runs now; functions read it with `current_step`."""


@dataclass(frozen=True, slots=True)
class InnerPlan:
    """How a plan function that is called for a step runs its plan: as steps inside that step."""

    kernel: object
    function: str
    run: Callable[[Any], Awaitable[Any]]


INNER_PLAN: ContextVar[InnerPlan | None] = ContextVar("portico_inner_plan", default=None)
"""Set while a step calls a plan function, for that function."""


@dataclass(frozen=True, slots=True)
class StepCall:
    """The step that a function is called for: its run, its id, and the attempt, counted from 1.

    >>> StepCall("20261121-1f2e", "s1/a", attempt=2).key
    '20261121-1f2e/s1/a'
    """

    run: str
    step: str
    attempt: int = 1

    @property
    def key(self) -> str:
        """A text that is the same for each attempt of this step, in any process, and different for other steps.

        It can be an idempotency key of a service, so that an action that is requested twice happens once.
        """
        return f"{self.run}/{self.step}"


def current_step() -> StepCall | None:
    """Return the step of a plan that the calling function runs for; None outside of a run."""
    step = CURRENT_STEP.get()
    return None if step is None else StepCall(*step)


async def called(function: Function, arguments: Mapping[str, Any]) -> Any:
    """Call a function and return its result."""
    if function.blocking and not function.is_async:
        return await asyncio.to_thread(_in_thread, function, arguments)
    result = function.callable(**arguments)
    # A decorator may hide that the function is asynchronous.
    return await result if function.is_async or isinstance(result, CoroutineType) else result


def run_to_end(awaitable: Awaitable[T]) -> T:
    """Run an awaitable to its end in a new event loop; ``RuntimeError`` inside a running loop."""

    async def wait() -> T:
        return await awaitable

    if not _loop_is_running():
        return asyncio.run(wait())
    if isinstance(awaitable, CoroutineType):
        awaitable.close()
    raise RuntimeError("an event loop is running here: await instead of calling run_sync")


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _in_thread(function: Function, arguments: Mapping[str, Any]) -> Any:
    try:
        return function.callable(**arguments)
    except StopIteration as error:
        # A future cannot hold it: before Python 3.12, the caller would wait for ever.
        raise RuntimeError(f"{function.full_name} raised StopIteration") from error
