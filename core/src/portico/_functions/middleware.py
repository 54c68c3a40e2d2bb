"""Calls of functions, the middleware around them, and approval by a person."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import CoroutineType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from portico._chat.messages import ToolCall, ToolResult
    from portico._functions.functions import Function
    from portico._plans.plan import Plan, Step
    from portico._plans.task import Answer, Infeasible, Refusal, Task


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


async def call_function(function: Function, arguments: Mapping[str, Any]) -> Any:
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

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        if isinstance(awaitable, CoroutineType):
            awaitable.close()
        raise RuntimeError("an event loop is running here: await instead of calling run_sync")
    return asyncio.run(wait())


async def run_together(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines at the same time and return their results in order.

    The first error stops the others, and is raised itself: not in a group, and with its cause.
    """
    failed: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except BaseExceptionGroup as failures:
        failed = failures.exceptions[0]
    if failed is not None:
        raise failed  # Outside of the handler, so that it keeps its cause and context.
    return [task.result() for task in tasks]


def _in_thread(function: Function, arguments: Mapping[str, Any]) -> Any:
    try:
        return function.callable(**arguments)
    except StopIteration as error:
        # A future cannot hold it: before Python 3.12, the caller would wait for ever.
        raise RuntimeError(f"{function.full_name} raised StopIteration") from error


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
    """A checked plan about to run.

    A middleware proceeds, or returns `RequireApproval`, a `Refusal` that the planner gets, or a `Plan` to run instead.
    ``planner`` made the plan; it is "" where none would make another.
    """

    plan: Plan
    run: str
    planner: str = ""


@dataclass(slots=True)
class StepRun:
    """A step about to run. A middleware may return `RequireApproval` instead of the JSON result.

    It may change only ``arguments``, which are JSON values.
    """

    step: Step
    run: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunInvocation:
    """A run about to begin, or to continue (``resumed``). The result is the `Run`.

    ``plan`` is the plan that runs without a proposal: the one given, or the one that was interrupted. ``origin`` is
    where the run came from: that of the process which submitted it or, of a resumed run, that of its journal.
    """

    run: str
    goal: str
    planner: str
    plan: Plan | None = None
    resumed: bool = False
    origin: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProposalInvocation:
    """A planner about to be asked for a proposal. The result is what it proposes."""

    planner: str
    task: Task


@dataclass(frozen=True, slots=True)
class TurnInvocation:
    """An agent about to take a turn in a thread; both by name."""

    agent: str
    thread: str


_Around: TypeAlias = Callable[[Context, Callable[[], Awaitable[Result]]], Awaitable[Result]]


@dataclass(slots=True)
class Middleware:
    """The middleware of one kernel, a list for each kind.

    That of an agent's ``turn`` takes the turn's events, and yields them. What ``origin`` returns is added to the
    origin of each run that begins, is resumed or is submitted, as JSON.

    >>> async def loud(context, proceed):
    ...     return (await proceed()).upper()
    >>> Middleware(function=[loud]).function[0].__name__
    'loud'
    """

    function: list[_Around[FunctionInvocation, Any]] = field(default_factory=list)
    prompt: list[_Around[PromptRender, str]] = field(default_factory=list)
    tool_call: list[_Around[ToolCallInvocation, ToolResult]] = field(default_factory=list)
    plan: list[_Around[PlanReview, RequireApproval | Refusal | Plan | None]] = field(default_factory=list)
    step: list[_Around[StepRun, Any]] = field(default_factory=list)
    run: list[_Around[RunInvocation, Any]] = field(default_factory=list)
    proposal: list[_Around[ProposalInvocation, Plan | Answer | Infeasible]] = field(default_factory=list)
    turn: list[Callable[[TurnInvocation, AsyncGenerator[Any, None]], AsyncGenerator[Any, None]]] = field(
        default_factory=list
    )
    origin: list[Callable[[], Mapping[str, Any]]] = field(default_factory=list)

    def add_origin(self, origin: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the origin of a run, with what the middleware adds to it."""
        made = dict(origin or {})
        for each in self.origin:
            made |= each()
        return made


async def run_middleware(
    middleware: Sequence[_Around[Context, Result]], context: Context, final: Callable[[], Awaitable[Result]]
) -> Result:
    """Run ``final`` inside ``middleware``."""

    async def proceed(index: int) -> Result:
        if index == len(middleware):
            return await final()
        return await middleware[index](context, lambda: proceed(index + 1))

    return await proceed(0)
