"""Filters: code of the application around what a kernel does.

A filter is an async callable ``(context, proceed)``; it awaits ``proceed()`` for the result, may change the
context before and the result after, or not proceed at all. Filters run in the order in which they were added,
the first one outermost. Where none is added, none costs anything.
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
    "Filters",
    "FunctionInvocation",
    "Hold",
    "PlanReview",
    "PromptRender",
    "StepRun",
    "ToolCallInvocation",
    "call_filtered",
    "run_filters",
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
    """A prompt about to be rendered; the result is its text, a `Prompt` where messages may stand in it.

    A filter that returns a plain string makes it one user message; `Prompt.map` changes a text and keeps the roles.
    Functions of prompts give their full name.
    """

    name: str
    arguments: dict[str, Any]


@dataclass(slots=True)
class ToolCallInvocation:
    """A model's call about to be carried out; the result is the `ToolResult`."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class Hold:
    """A plan or step filter's answer when a person must decide first."""

    reason: str


@dataclass(frozen=True, slots=True)
class PlanReview:
    """A checked plan about to run; the filter returns a `Hold`, or proceeds. It cannot change the plan."""

    plan: Plan
    run: str


@dataclass(slots=True)
class StepRun:
    """A step about to run; the filter may return a `Hold` instead of the JSON result.

    Of the context only ``arguments``, JSON values, are the filter's to change.
    """

    step: Step
    run: str
    arguments: dict[str, Any]


_Filter: TypeAlias = Callable[[Context, Callable[[], Awaitable[Result]]], Awaitable[Result]]


@dataclass(slots=True)
class Filters:
    """The filters of one kernel, a list for each kind.

    >>> async def loud(context, proceed):
    ...     return (await proceed()).upper()
    >>> Filters(function=[loud]).function[0].__name__
    'loud'
    """

    function: list[_Filter[FunctionInvocation, Any]] = field(default_factory=list)
    prompt: list[_Filter[PromptRender, str]] = field(default_factory=list)
    tool_call: list[_Filter[ToolCallInvocation, ToolResult]] = field(default_factory=list)
    plan: list[_Filter[PlanReview, Hold | None]] = field(default_factory=list)
    step: list[_Filter[StepRun, Any]] = field(default_factory=list)


async def call_filtered(filters: Filters, function: Function, arguments: dict[str, Any]) -> Any:
    """Call a function with Python values inside the filters of functions, which may change both."""
    context = FunctionInvocation(function, arguments)

    async def final() -> Any:
        return await called(context.function, context.arguments)

    return await run_filters(filters.function, context, final)


async def run_filters(
    filters: Sequence[_Filter[Context, Result]], context: Context, final: Callable[[], Awaitable[Result]]
) -> Result:
    """Run ``final`` inside ``filters``."""

    async def proceed(index: int) -> Result:
        if index == len(filters):
            return await final()
        return await filters[index](context, lambda: proceed(index + 1))

    return await proceed(0)
