"""What goes on while a template is rendered: scopes, calls that are under way, and the order of things.

A template is rendered in one go, without waiting. A call that has to be awaited leaves a slot in the output and a job
that fills it; the jobs run at the same time when the go is over. Where a `set` stands, the go stops until the jobs
that it has left are done; what follows is kept as something to resume.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from portico.errors import LimitExceeded
from portico_templates.handlebars.values import MISSING

# They belong to modules above this one.
Body: TypeAlias = Any

if TYPE_CHECKING:
    from portico.ports import CallFunction


Job = Coroutine[Any, Any, Any]
Write = Callable[[Any], None]


class Limits:
    """The bounds of one rendering."""

    __slots__ = ("characters", "partials", "steps")

    def __init__(self, *, steps: int = 1_000_000, characters: int = 16_000_000, partials: int = 64) -> None:
        self.steps = steps
        self.characters = characters
        self.partials = partials


class Later:
    """A value that has to be awaited; whoever is given one awaits it, once."""

    __slots__ = ("awaitable",)

    def __init__(self, awaitable: Awaitable[Any]) -> None:
        self.awaitable = awaitable


class Data:
    """Values whose names begin with ``@``; what is not here is looked for in the one around."""

    __slots__ = ("parent", "values")

    def __init__(self, values: Mapping[str, Any], parent: Data | None = None) -> None:
        self.values = values
        self.parent = parent

    def get(self, name: str, up: int = 0) -> Any:
        """Return a value, after going ``up`` so many levels."""
        if not up and name in self.values:
            return self.values[name]
        if self.parent is None:
            return MISSING
        return self.parent.get(name, up - 1 if up else 0)


class Round(Data):
    """The values of one round of a loop: ``@index``, ``@key``, ``@first`` and ``@last``."""

    __slots__ = ("first", "index", "key", "last")

    def __init__(self, parent: Data) -> None:
        super().__init__({}, parent)
        self.index: Any = 0
        self.key: Any = 0
        self.first = True
        self.last = False

    def get(self, name: str, up: int = 0) -> Any:
        """Return a value, after going ``up`` so many levels."""
        if up:
            return self.parent.get(name, up - 1) if self.parent is not None else MISSING
        if name in _OF_A_ROUND:
            return getattr(self, name)
        return self.parent.get(name) if self.parent is not None else MISSING


_OF_A_ROUND = frozenset({"index", "key", "first", "last"})


class Surroundings:
    """What a partial can reach besides its context: inline partials, and the block that it was called with."""

    __slots__ = ("block", "depth", "inlines")

    def __init__(self, inlines: Mapping[str, Inline], block: Inline | None = None, depth: int = 0) -> None:
        self.inlines = inlines
        self.block = block
        self.depth = depth


class Inline:
    """A partial that stands in a template, with what surrounds it there."""

    __slots__ = ("around", "body", "params", "parent")

    def __init__(self, body: Body, parent: Scope | None, params: Any, around: Surroundings | None) -> None:
        self.body = body
        self.parent = parent
        self.params = params
        self.around = around


class Scope:
    """Where a body is rendered: its context, the scope around it for ``../``, and what else can be named there."""

    __slots__ = ("around", "context", "data", "params", "parent", "run")

    def __init__(  # noqa: PLR0917 - one is made for every block that is entered
        self, context: Any, parent: Scope | None, data: Data, params: Any, around: Surroundings, run: Run
    ) -> None:
        self.context = context
        self.parent = parent
        self.data = data
        self.params = params
        self.around = around
        self.run = run

    def inner(self, context: Any) -> Scope:
        """Return the scope of a block; one of the same context adds no level to ``../``."""
        parent = self.parent if is_same(context, self.context) else self
        return Scope(context, parent, self.data, self.params, self.around, self.run)

    def copy(self) -> Scope:
        """Return one that can be changed."""
        return Scope(self.context, self.parent, self.data, self.params, self.around, self.run)

    @property
    def root(self) -> Any:
        """The arguments of the template, and what `set` has added to them."""
        return self.run.root


def is_same(left: Any, right: Any) -> bool:
    """Tell whether two contexts are one: the same object, or equal texts, numbers or bools."""
    return left is right or (type(left) is type(right) and type(left) in {str, int, float, bool} and left == right)


class Run:
    """One rendering: what it calls, what it has left to do, and how much it has done."""

    __slots__ = ("call", "jobs", "limits", "made", "name", "resume", "root", "steps", "unknown")

    def __init__(self, call: CallFunction, root: Any, limits: Limits, name: str) -> None:
        self.call = call
        self.root = root
        self.limits = limits
        self.name = name
        self.steps = 0
        self.jobs: list[Job] = []
        self.resume: list[Callable[[], None]] = []
        self.made: list[Awaitable[Any]] = []
        self.unknown: set[str] = set()

    def count(self, steps: int) -> None:
        """Count what is about to be done; raises ``LimitExceeded``."""
        self.steps += steps
        if self.steps > self.limits.steps:
            raise LimitExceeded(
                f"{self.name}: rendering takes more than {self.limits.steps:,} steps (rounds of loops and calls of "
                f"partials, times the tags in them)."
            )

    def later(self, awaitable: Awaitable[Any]) -> Later:
        """Return a value that comes later; what no one awaits is closed at the end."""
        self.made.append(awaitable)
        return Later(awaitable)

    def add(self, job: Job) -> None:
        """Leave something to do."""
        self.made.append(job)
        self.jobs.append(job)

    def close(self) -> None:
        """Close what was never started."""
        for awaitable in self.made:
            if inspect.iscoroutine(awaitable):
                awaitable.close()
            elif isinstance(awaitable, asyncio.Future):
                awaitable.cancel()


async def settled(values: list[Any]) -> list[Any]:
    """Await all values that come later, at the same time."""
    places = [index for index, value in enumerate(values) if type(value) is Later]
    results = await perform([values[index].awaitable for index in places])
    for index, result in zip(places, results, strict=True):
        values[index] = result
    return values


async def perform(awaitables: list[Any]) -> list[Any]:
    """Await several at the same time; the first that fails stops the others, and its error comes through."""
    if len(awaitables) == 1:
        return [await awaitables[0]]
    failed: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_awaiting(awaitable)) for awaitable in awaitables]
    except BaseExceptionGroup as failures:
        failed = failures.exceptions[0]
    if failed is not None:
        raise failed  # Outside of the handler, so that it keeps the cause and context that it has.
    return [task.result() for task in tasks]


def _awaiting(awaitable: Awaitable[Any]) -> Coroutine[Any, Any, Any]:
    if inspect.iscoroutine(awaitable):
        return awaitable

    async def wait() -> Any:
        return await awaitable

    return wait()


async def drive(run: Run, first: Callable[[], None]) -> None:
    """Render a part of a template to its end, with all that it leaves to do, in the order that `set` asks for."""
    waiting = [first]
    jobs: list[Job] = []
    while waiting:
        part = waiting.pop(0)
        outside = run.jobs, run.resume
        run.jobs, run.resume = jobs, []
        try:
            part()
        finally:
            resume = run.resume
            run.jobs, run.resume = outside
        if resume:
            left, jobs = jobs, []
            await perform(left) if left else None
            waiting[:0] = resume
    if jobs:
        await perform(jobs)
