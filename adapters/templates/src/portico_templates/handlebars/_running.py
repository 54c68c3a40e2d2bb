"""What happens while a template is rendered: scopes, bodies, calls that have to be awaited, and the output.

A template is rendered without waiting. A call that has to be awaited leaves a slot in the output and a job that fills
it; the jobs run at the same time, afterwards. Only a body in which a `set` stands is rendered in order: it waits for
the jobs before such a step and for those of the step itself.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from portico import Prompt
from portico.errors import LimitExceeded
from portico.plugins import run_together
from portico_templates.handlebars.values import MISSING, declared_fields

if TYPE_CHECKING:
    from portico.ports import CallFunction

Job = Coroutine[Any, Any, Any]
Write = Callable[[Any], Any]


class Limits(NamedTuple):
    """The bounds of one rendering."""

    steps: int = 1_000_000
    characters: int = 16_000_000


@dataclass(slots=True, eq=False)
class Later:
    """A value that has to be awaited. Its receiver awaits it, once."""

    awaitable: Awaitable[Any]


@dataclass(slots=True, eq=False)
class Data:
    """Values whose names begin with ``@``; the ones around are asked for what is not here."""

    values: Mapping[str, Any]
    parent: Data | None = None

    def get(self, name: str, up: int = 0) -> Any:
        """Return a value, after going ``up`` so many levels."""
        data: Data | None = self
        while data is not None:
            if not up and name in data.values:
                return data.values[name]
            data = data.parent
            up = max(0, up - 1)
        return MISSING


@dataclass(slots=True, eq=False)
class Run:
    """One rendering: what it calls, and how much it has done."""

    call: CallFunction
    root: Any
    limits: Limits
    name: str
    steps: int = 0
    characters: int = 0
    made: list[Awaitable[Any]] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)
    missed: set[object] = field(default_factory=set)

    def count(self, steps: int) -> None:
        """Count what is about to be done; raises ``LimitExceeded``."""
        self.steps += steps
        if self.steps > self.limits.steps:
            raise LimitExceeded(
                f"{self.name}: rendering takes more than {self.limits.steps:,} steps (rounds of loops and calls of "
                f"partials, times the tags in them)."
            )

    def grow(self, text: str) -> str:
        """Count a text that is made on the way; raises ``LimitExceeded`` when all of them are too long."""
        self.characters += len(text)
        if self.characters > self.limits.characters:
            limit = f"{self.limits.characters:,} characters"
            raise LimitExceeded(f"{self.name}: the texts made for the rendered prompt have more than {limit}.")
        return text

    def later(self, awaitable: Awaitable[Any]) -> Later:
        """Return a value that comes later; `close` closes it if it is never awaited."""
        self.made.append(awaitable)
        return Later(awaitable)

    def close(self) -> None:
        """Close what was never started."""
        for awaitable in self.made:
            if inspect.iscoroutine(awaitable):
                awaitable.close()
            elif isinstance(awaitable, asyncio.Future):
                awaitable.cancel()


class Surroundings(NamedTuple):
    """What a partial can use in addition to its context: inline partials, and the block that it was called with."""

    inlines: Mapping[str, Inline]
    block: Inline | None = None
    depth: int = 0


class Inline(NamedTuple):
    """A body that partials can call, with what surrounds it where it stands."""

    body: Body
    parent: Scope | None
    params: Any
    around: Surroundings


@dataclass(slots=True, eq=False)
class Scope:
    """Where a body is rendered: its context, the scope around it for ``../``, and what else can be named there.

    ``jobs`` are the calls that are not awaited yet.
    """

    context: Any
    parent: Scope | None
    data: Data
    params: Any
    around: Surroundings
    run: Run
    jobs: list[Job]

    def inner(self, context: Any) -> Scope:
        """Return the scope of a block; one of the same context adds no level to ``../``."""
        own = self.context
        is_same = context is own or (
            type(context) is type(own) and type(context) in {str, int, float, bool} and context == own
        )
        return Scope(
            context, self.parent if is_same else self, self.data, self.params, self.around, self.run, self.jobs
        )

    def copy(self) -> Scope:
        """Return one that can be changed."""
        return Scope(self.context, self.parent, self.data, self.params, self.around, self.run, self.jobs)

    def defer(self, write: Write, fill: Callable[[Scope, Write], Job]) -> None:
        """Reserve a slot in the output, and add the job that fills it. The job's scope has its own list of jobs."""
        slot: list[Any] = []
        write(slot)
        scope = self.copy()
        scope.jobs = []
        job = _fill(fill, scope, slot.append)
        self.run.made.append(job)
        self.jobs.append(job)


async def _fill(fill: Callable[[Scope, Write], Job], scope: Scope, write: Write) -> None:
    await fill(scope, write)
    await perform_jobs(scope.jobs)


Step = Callable[[Scope, Write], Job | None]
"""Writes one statement. A step in which something is set may return what has to be awaited at once."""

Entered = tuple["Body", Scope, tuple[Any, ...] | None, Write]
"""A body that a statement writes, its scope, its block parameters (None if it has none), and where it writes to."""


@dataclass(slots=True, eq=False)
class Body:
    """What stands between two tags: texts, each with the step that follows it, and the text after the last.

    It is filled with `add_text` and `add`, and can be written once it is closed. ``in_order`` are the indexes of the
    steps in which something is set; ``cost`` counts the statements.
    """

    params: tuple[str, ...] = ()
    same_context: bool = field(default=False, kw_only=True)
    needs_data: bool = field(default=False, init=False)
    steps: list[tuple[str, Step, str | None]] = field(default_factory=list, init=False)
    tail: str = field(default="", init=False)
    in_order: set[int] = field(default_factory=set, init=False)
    inlines: list[tuple[str, Body]] = field(default_factory=list, init=False)
    cost: int = field(default=1, init=False)
    run: Callable[[Scope, Write], None] = field(init=False)
    _text: list[str] = field(default_factory=list, init=False)

    def add_text(self, text: str) -> None:
        """Add a text."""
        self._text.append(text)

    def add(self, step: Step, *, in_order: bool = False, field: str | None = None) -> None:
        """Add a step; ``field`` of the context is written instead where it is a text."""
        if in_order:
            self.in_order.add(len(self.steps))
        self.steps.append((Own("".join(self._text)), step, field))
        self._text.clear()

    def close(self) -> None:
        """End the body."""
        self.tail = Own("".join(self._text))
        run = self.run = _runner(tuple(self.steps), self.tail)
        if self.inlines:
            self.run = lambda scope, write: run(self._with_inlines(scope), write)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it."""
        return not (self.steps or self.tail)

    def enter(self, scope: Scope, write: Write, values: tuple[Any, ...] | None = None) -> None:
        """Write the body with these values for its block parameters; the scope must be its own."""
        if self.params:
            scope.params = (values, scope.params)
        self.run(scope, write)

    async def enter_in_order(self, scope: Scope, write: Write, values: tuple[Any, ...] | None = None) -> None:
        """Write the body, and wait where something is set in it."""
        if not self.in_order:
            self.enter(scope, write, values)
            return
        if self.params:
            scope.params = (values, scope.params)
        if self.inlines:
            scope = self._with_inlines(scope)
        for index, (text, step, _) in enumerate(self.steps):
            write(text)
            if index not in self.in_order:
                step(scope, write)
                continue
            await perform_jobs(scope.jobs)
            waiting = step(scope, write)
            if waiting is not None:
                await waiting
            await perform_jobs(scope.jobs)
        write(self.tail)

    def add_inlines(self, scope: Scope, parent: Scope | None, around: Surroundings) -> Surroundings:
        """Return the surroundings with the inline partials of this body added."""
        if not self.inlines:
            return around
        inlines = dict(around.inlines)
        for name, body in self.inlines:
            inlines[name] = Inline(body, parent, scope.params, scope.around)
        return around._replace(inlines=inlines)

    def _with_inlines(self, scope: Scope) -> Scope:
        inner = scope.copy()
        inner.around = self.add_inlines(scope, scope if self.same_context else scope.parent, scope.around)
        return inner


def _runner(steps: tuple[tuple[str, Step, str | None], ...], tail: str) -> Callable[[Scope, Write], None]:
    if not steps:
        return lambda scope, write: write(tail)
    if len(steps) == 1 and steps[0][2] is None:
        text, only, _ = steps[0]

        # A separate function: CPython 3.11 is slow where the same code calls itself.
        def run_one(scope: Scope, write: Write) -> None:
            write(text)
            only(scope, write)
            write(tail)

        return run_one

    # The last class and its fields; one name, since templates are rendered in several threads.
    known: tuple[type, frozenset[str]] = (dict, frozenset())

    def run(scope: Scope, write: Write) -> None:
        nonlocal known
        context = scope.context
        kind: Any = type(context)
        is_dict = kind is dict
        last, names = known
        if not is_dict and last is not kind:
            names = frozenset(declared_fields(kind))
            known = (kind, names)
        for text, step, name in steps:
            if text:
                write(text)
            value = None
            if name is not None:
                if is_dict:
                    value = context.get(name)
                elif name in names:
                    value = getattr(context, name, None)
            if type(value) is str:
                write(value)
            else:
                step(scope, write)
        if tail:
            write(tail)

    return run


def compound_step(
    getters: Sequence[Callable[[Scope], Any]],
    entered: Callable[..., Iterator[Entered]],
    *,
    in_order: bool,
    now: Callable[[Any, Scope, Write], None] | None = None,
) -> Step:
    """Return the step of a statement that writes bodies.

    ``entered(scope, write, *values)`` yields them when the values have come. ``now(value, scope, write)`` is a
    faster way for a single value that is there at once.
    """

    def enter(scope: Scope, write: Write, values: list[Any]) -> None:
        for body, inner, params, target in entered(scope, write, *values):
            body.enter(inner, target, params)

    async def late(scope: Scope, write: Write, values: list[Any]) -> None:
        enter(scope, write, await await_values(values))

    def step(scope: Scope, write: Write) -> None:
        values = [get(scope) for get in getters]
        if any(type(value) is Later for value in values):
            scope.defer(write, lambda inner, fill: late(inner, fill, values))
        else:
            enter(scope, write, values)

    async def step_in_order(scope: Scope, write: Write) -> None:
        values = await await_values([get(scope) for get in getters])
        for body, inner, params, target in entered(scope, write, *values):
            await body.enter_in_order(inner, target, params)
            await perform_jobs(inner.jobs)

    if in_order:
        return step_in_order
    if now is None or len(getters) != 1:
        return step
    (only,) = getters

    def step_now(scope: Scope, write: Write) -> None:
        value = only(scope)
        if type(value) is Later:
            scope.defer(write, lambda inner, fill: late(inner, fill, [value]))
        else:
            now(value, scope, write)

    return step_now


async def await_values(values: list[Any]) -> list[Any]:
    """Await all values that come later, at the same time."""
    places = [index for index, value in enumerate(values) if type(value) is Later]
    results = await perform([values[index].awaitable for index in places]) if places else []
    for index, result in zip(places, results, strict=True):
        values[index] = result
    return values


async def perform_jobs(jobs: list[Job]) -> None:
    """Perform the jobs that are left, and forget them."""
    if jobs:
        left = jobs[:]
        jobs.clear()
        await perform(left)


async def perform(awaitables: list[Any]) -> list[Any]:
    """Await several at the same time; the first that fails stops the others, and its error comes through."""
    if len(awaitables) == 1:
        return [await awaitables[0]]
    return await run_together(map(_awaiting, awaitables))


async def _awaiting(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;", "`": "&#x60;", "=": "&#x3D;"}
_TABLE = str.maketrans(_ESCAPED)
_NEEDS_ESCAPE = re.compile("[&<>\"'`=]")
_MARKUP = "<message"


def escape_html(text: str) -> str:
    """Replace the seven characters that handlebars.js replaces."""
    return text.translate(_TABLE) if _NEEDS_ESCAPE.search(text) else text


class Own(str):
    """A text that the template itself wrote, or that is trusted; every other string in the output is a value."""

    __slots__ = ()


class OfBlock(Prompt):
    """What a helper receives of its block; where it returns that, the template's text stays the template's."""

    __slots__ = ()


class Indented(list[Any]):
    """Parts of the output, each line of which is indented."""

    def __init__(self, indent: str) -> None:
        super().__init__()
        self.indent = indent


def join_output(parts: list[Any], limit: int, name: str) -> str:
    """Return the text of parts, as a `Prompt` where a message opens in what is no value.

    Raises ``LimitExceeded`` above ``limit`` characters.
    """
    try:
        text = "".join(parts) if sum(map(len, parts)) <= limit else None
    except TypeError:  # There are parts within.
        text = None
    if text is None:
        parts = flatten(parts, limit, name)
        text = "".join(parts)
    if _MARKUP in text:
        pieces = split_values(parts)
        if any(_MARKUP in text for text, is_value in pieces if not is_value):
            return Prompt(pieces)
    return text


def split_values(parts: Iterable[str]) -> list[tuple[str, bool]]:
    """Return texts, each with whether it is a value."""
    return join_own_text((part, type(part) is not Own) for part in parts)


def join_own_text(pieces: Iterable[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Join neighbours that the template wrote; a value stays its own piece, since an empty one parts them too."""
    merged: list[tuple[str, bool]] = []
    for is_value, group in groupby(pieces, key=itemgetter(1)):
        if is_value:
            merged += group
        else:
            merged.append(("".join([text for text, _ in group]), False))
    return merged


def flatten(parts: list[Any], limit: int, name: str) -> list[str]:
    """Return texts in order, with those that are within other parts, indented where they are."""
    found: list[str] = []
    left = limit
    for part in parts:
        inner = flatten(part, limit, name) if isinstance(part, list) else [part]
        left -= sum(map(len, inner))
        if left < 0:
            break
        found += inner
    if isinstance(parts, Indented):
        # Counted before it is made: each line gets the indent.
        left -= len(parts.indent) * sum(part.count("\n") for part in found)
        if left >= 0:
            found = _indent(found, parts.indent)
            left = limit - sum(map(len, found))
    if left < 0:
        raise LimitExceeded(f"{name}: the rendered prompt has more than {limit:,} characters.")
    return found


def _indent(parts: Iterable[str], indent: str) -> list[str]:
    """Put the indent before each line; after a line end that is the last character there is none."""
    result: list[str] = []
    begins_line = True
    for part in parts:
        if begins_line and part:
            result.append(Own(indent))
        if part:
            begins_line = part.endswith("\n")
        body = part.removesuffix("\n")
        text = body.replace("\n", "\n" + indent) + part[len(body) :]
        result.append(Own(text) if type(part) is Own else text)
    return result
