"""A sequence of statements, compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from portico_templates.handlebars._running import Inline, Scope, Surroundings
from portico_templates.handlebars._unit import Step, Write
from portico_templates.handlebars._writing import Own


class Body:
    """What stands between two tags, ready to be written in a scope.

    ``steps`` are texts and what follows each; a step that is ``exclusive`` waits for the jobs before it, and what
    follows waits for its own. ``cost`` counts the statements.
    """

    __slots__ = ("_exclusive", "_inlines", "_pairs", "_tail", "cost", "may_set", "needs_data", "params", "run",
                 "same_context")  # fmt: skip

    def __init__(
        self,
        steps: Sequence[tuple[str, Step]],
        tail: str,
        *,
        exclusive: Sequence[int] = (),
        inlines: Sequence[tuple[Callable[[Scope], str], Body]] = (),
        params: tuple[str, ...] = (),
        same_context: bool = False,
        needs_data: bool = False,
        cost: int = 1,
    ) -> None:
        self._pairs = tuple((Own(text), step) for text, step in steps)
        self._tail = Own(tail)
        self._exclusive = frozenset(exclusive)
        self._inlines = tuple(inlines)
        self.params = params
        self.same_context = same_context
        self.needs_data = needs_data
        self.cost = cost
        self.may_set = bool(exclusive)
        self.run: Step = self._chosen()

    def _chosen(self) -> Step:
        if self._exclusive:
            return self._run_in_order
        if self._inlines:
            return self._run_with_inlines
        return _running(self._pairs, self._tail)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it."""
        return not (self._pairs or self._tail)

    def enter(self, scope: Scope, write: Write, values: tuple[Any, ...] | None = None) -> None:
        """Write the body with these values for its block parameters; the scope must be its own.

        None is for blocks that give none.
        """
        if self.params:
            scope.params = (values, scope.params)
        self.run(scope, write)

    def enter_shared(self, scope: Scope, write: Write) -> None:
        """Write the body in a scope that others use too."""
        if self.params:
            scope = scope.copy()
            scope.params = (None, scope.params)
        self.run(scope, write)

    def surroundings(self, scope: Scope, parent: Scope | None, around: Surroundings) -> Surroundings:
        """Return the surroundings with the inline partials of this body added."""
        if not self._inlines:
            return around
        inlines = dict(around.inlines)
        for name, body in self._inlines:
            inlines[name(scope)] = Inline(body, parent, scope.params, scope.around)
        return Surroundings(inlines, around.block, around.depth)

    def _with_inlines(self, scope: Scope) -> Scope:
        inner = scope.copy()
        inner.around = self.surroundings(scope, scope if self.same_context else scope.parent, scope.around)
        return inner

    def _run_with_inlines(self, scope: Scope, write: Write) -> None:
        self._go_on(self._with_inlines(scope), write, 0)

    def _run_in_order(self, scope: Scope, write: Write) -> None:
        self._go_on(self._with_inlines(scope) if self._inlines else scope, write, 0)

    def _go_on(self, scope: Scope, write: Write, begin: int, *, inside: bool = False) -> None:
        run = scope.run
        exclusive = self._exclusive
        for index in range(begin, len(self._pairs)):
            text, step = self._pairs[index]
            if not inside:
                write(text)
            inside = False
            if index not in exclusive:
                step(scope, write)
                continue
            if run.jobs or run.resume:
                self._stop(scope, write, index, inside=True)
                return
            step(scope, write)
            if run.jobs or run.resume:
                self._stop(scope, write, index + 1, inside=False)
                return
        write(self._tail)

    def _stop(self, scope: Scope, write: Write, index: int, *, inside: bool) -> None:
        """Leave the rest for when all that has begun is done."""
        rest: list[Any] = []
        write(rest)
        scope.run.resume.append(partial(self._go_on, scope, rest.append, index, inside=inside))


def _running(pairs: tuple[tuple[str, Step], ...], tail: str) -> Step:
    if not pairs:
        return lambda scope, write: write(tail)
    if len(pairs) == 1:
        text, only = pairs[0]
        if not text and not tail:
            return only

        def run_one(scope: Scope, write: Write) -> None:
            write(text)
            only(scope, write)
            write(tail)

        return run_one

    def run(scope: Scope, write: Write) -> None:
        for text, step in pairs:
            if text:
                write(text)
            step(scope, write)
        if tail:
            write(tail)

    return run
