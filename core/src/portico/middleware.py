"""Middleware: code of the application around what a kernel does.

A middleware is an async callable ``(context, proceed)``. It awaits ``proceed()`` for the result. It may change the
context before, change the result after, or not proceed at all. The one that was added first is the outermost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from portico.calls import called

if TYPE_CHECKING:
    from portico.chat import ToolCall, ToolResult
    from portico.functions import Function
    from portico.plans.plan import Plan, Step

__all__ = [
    "FunctionInvocation",
    "Middleware",
    "PlanReview",
    "PromptRender",
    "RequireApproval",
    "StepRun",
    "ToolCallInvocation",
    "call_with_middleware",
    "run_middleware",
]

Context = TypeVar("Context")
Result = TypeVar("Result")


@dataclass(slots=True)
class FunctionInvocation:
    """A function about to be called with Python values."""

    function: Function
    arguments: dict[str, Any]


@dataclass(slots=True)
class PromptRender:
    """A prompt about to be rendered. The result is its text, or a `Prompt` where it may have messages.

    A middleware that returns a plain string makes one user message of it. `Prompt.map` changes a text and keeps the
    roles. For a prompt function, ``name`` is its full name.
    """

    name: str
    arguments: dict[str, Any]


@dataclass(slots=True)
class ToolCallInvocation:
    """A tool call of a model, about to be carried out. The result is the `ToolResult`."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class RequireApproval:
    """The answer of a plan or step middleware when a person must decide first."""

    reason: str


@dataclass(frozen=True, slots=True)
class PlanReview:
    """A checked plan about to run. A middleware returns `RequireApproval` or proceeds; it cannot change the plan."""

    plan: Plan
    run: str


@dataclass(slots=True)
class StepRun:
    """A step about to run. A middleware may return `RequireApproval` instead of the JSON result.

    It may change only ``arguments``, which are JSON values.
    """

    step: Step
    run: str
    arguments: dict[str, Any]


_Around: TypeAlias = Callable[[Context, Callable[[], Awaitable[Result]]], Awaitable[Result]]


@dataclass(slots=True)
class Middleware:
    """The middleware of one kernel, a list for each kind.

    >>> async def loud(context, proceed):
    ...     return (await proceed()).upper()
    >>> Middleware(function=[loud]).function[0].__name__
    'loud'
    """

    function: list[_Around[FunctionInvocation, Any]] = field(default_factory=list)
    prompt: list[_Around[PromptRender, str]] = field(default_factory=list)
    tool_call: list[_Around[ToolCallInvocation, ToolResult]] = field(default_factory=list)
    plan: list[_Around[PlanReview, RequireApproval | None]] = field(default_factory=list)
    step: list[_Around[StepRun, Any]] = field(default_factory=list)


async def call_with_middleware(middleware: Middleware, function: Function, arguments: dict[str, Any]) -> Any:
    """Call a function with Python values inside the function middleware, which may change both."""
    context = FunctionInvocation(function, arguments)

    async def final() -> Any:
        return await called(context.function, context.arguments)

    return await run_middleware(middleware.function, context, final)


async def run_middleware(
    middleware: Sequence[_Around[Context, Result]], context: Context, final: Callable[[], Awaitable[Result]]
) -> Result:
    """Run ``final`` inside ``middleware``."""

    async def proceed(index: int) -> Result:
        if index == len(middleware):
            return await final()
        return await middleware[index](context, lambda: proceed(index + 1))

    return await proceed(0)
