"""How a function is called with Python values: at once, awaited, or in a thread; and for which step of a plan."""

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
"""Run, step and attempt of the step that is being carried out; `current_step` is how functions see it."""


@dataclass(frozen=True, slots=True)
class InnerPlan:
    """How the function of a plan, called for a step, has its plan run: as steps inside of that one."""

    kernel: object
    function: str
    run: Callable[[Any], Awaitable[Any]]


INNER_PLAN: ContextVar[InnerPlan | None] = ContextVar("portico_inner_plan", default=None)
"""Set while a step calls the function of a plan, for that function, which takes it."""


@dataclass(frozen=True, slots=True)
class StepCall:
    """The step that a function is called for: its run, its id in it, and the attempt, counted from 1.

    >>> StepCall("20261121-1f2e", "s1/a", attempt=2).key
    '20261121-1f2e/s1/a'
    """

    run: str
    step: str
    attempt: int = 1

    @property
    def key(self) -> str:
        """A text that is the same each time this step is tried, in any process, and no other step's.

        Services take one as an idempotency key, so that what is asked for twice happens once.
        """
        return f"{self.run}/{self.step}"


def current_step() -> StepCall | None:
    """Return the step of a plan that the function calling this is carried out for; None outside of a pursuit."""
    step = CURRENT_STEP.get()
    return None if step is None else StepCall(*step)


async def called(function: Function, arguments: Mapping[str, Any]) -> Any:
    """Call a function and return what it returns; what it raises comes through."""
    if function.blocking and not function.is_async:
        return await asyncio.to_thread(_in_thread, function, arguments)
    result = function.callable(**arguments)
    # A decorator may hide that what it wraps is asynchronous.
    return await result if function.is_async or isinstance(result, CoroutineType) else result


def run_to_end(awaitable: Awaitable[T]) -> T:
    """Run something to its end in a loop of its own; ``RuntimeError`` inside of a loop that runs."""

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
        # No future can hold one: before Python 3.12, who waits for it waits for ever.
        raise RuntimeError(f"{function.full_name} raised StopIteration") from error
