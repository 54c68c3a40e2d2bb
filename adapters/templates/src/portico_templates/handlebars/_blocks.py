"""Blocks over a value: `if`, `unless`, `with`, `each`, and sections, which `blockHelperMissing` decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from portico_templates.handlebars._bodies import Body
from portico_templates.handlebars._calls import apply
from portico_templates.handlebars._running import Later, Round, Scope, drive
from portico_templates.handlebars._unit import Get, Step, Unit, Write
from portico_templates.handlebars.values import MISSING, is_array, is_callable, is_empty, is_true

Chosen = tuple[Body, Scope, tuple[Any, ...] | None]
"""A body, its scope, and its block parameters; None where the block gives none."""

Emit = Callable[[Any, Scope, Write], None]
"""Writes what a block gives for a value."""

Choose = Callable[[Any, Scope], Iterable[Chosen]]
"""Yields the bodies that a block is made of for a value, each with its scope and block parameters."""


def over(subject: Get, emit: Emit, choose: Choose, *, waits: bool, in_order: bool) -> Step:
    """Return the step of a block over a value.

    Where the value comes later, so does the block. ``in_order`` is for blocks in which something is set: their
    bodies follow each other, each when all of the one before is done.
    """

    def step(scope: Scope, write: Write) -> None:
        value = subject(scope)
        if is_callable(value):
            value = apply(scope, value, [], {})
        if type(value) is not Later:
            emit(value, scope, write)
            return
        slot: list[Any] = []
        write(slot)
        scope.run.add(emit_later(value, scope.copy(), slot))

    async def emit_later(later: Later, scope: Scope, slot: list[Any]) -> None:
        value = await later.awaitable
        await drive(scope.run, lambda: emit(value, scope, slot.append))

    def step_in_order(scope: Scope, write: Write) -> None:
        value = subject(scope)
        if is_callable(value):
            value = apply(scope, value, [], {})
        slot: list[Any] = []
        write(slot)
        scope.run.add(emit_in_order(value, scope.copy(), slot))

    async def emit_in_order(value: Any, scope: Scope, slot: list[Any]) -> None:
        if type(value) is Later:
            value = await value.awaitable
        for body, inner, params in choose(value, scope):
            await drive(scope.run, partial(body.enter, inner, slot.append, params))

    if in_order:
        return step_in_order
    return step if waits else _plain(subject, emit)


def _plain(subject: Get, emit: Emit) -> Step:
    def step(scope: Scope, write: Write) -> None:
        value = subject(scope)
        if is_callable(value):
            value = apply(scope, value, [], {})
            if type(value) is Later:
                slot: list[Any] = []
                write(slot)
                scope.run.add(emit_later(value, scope.copy(), slot))
                return
        emit(value, scope, write)

    async def emit_later(later: Later, scope: Scope, slot: list[Any]) -> None:
        value = await later.awaitable
        await drive(scope.run, lambda: emit(value, scope, slot.append))

    return step


def if_(subject: Get, body: Body | None, inverse: Body | None) -> Step:
    """Return the step of a condition whose value is there at once."""
    other = _plain(subject, when(body, inverse, is_true)[0])
    if_true = _nothing if body is None else body.enter_shared if body.params else body.run
    if_false = _nothing if inverse is None else inverse.enter_shared if inverse.params else inverse.run

    def step(scope: Scope, write: Write) -> None:
        value = subject(scope)
        if type(value) is str or value is True or value is False or value is None:
            (if_true if value else if_false)(scope, write)
        elif value is MISSING:
            if_false(scope, write)
        else:
            other(scope, write)

    return step


def when(body: Body | None, inverse: Body | None, test: Callable[[Any], bool]) -> tuple[Emit, Choose]:
    """Return a block that is written in its own context where a test holds."""

    def emit(value: Any, scope: Scope, write: Write) -> None:
        chosen = body if value is True or test(value) else inverse
        if chosen is not None:
            chosen.enter_shared(scope, write)

    def choose(value: Any, scope: Scope) -> Iterator[Chosen]:
        chosen = body if test(value) else inverse
        if chosen is not None:
            yield chosen, scope.copy(), None

    return emit, choose


def with_(body: Body | None, inverse: Body | None) -> tuple[Emit, Choose]:
    """Return a block that is written in the context of its value."""

    def choose(value: Any, scope: Scope) -> Iterator[Chosen]:
        if not is_empty(value):
            if body is not None:
                yield body, scope.inner(value), (value,)
        elif inverse is not None:
            yield inverse, scope.copy(), None

    def emit(value: Any, scope: Scope, write: Write) -> None:
        if body is not None and not is_empty(value):
            body.enter(scope.inner(value), write, (value,))
        elif inverse is not None and is_empty(value):
            inverse.enter_shared(scope, write)

    return emit, choose


def section(unit: Unit, body: Body | None, inverse: Body | None) -> tuple[Emit, Choose]:
    """Return a block over what a name or a function gives: a list is repeated, true and false choose."""
    emit_each, choose_each = each(unit, body, inverse)

    def choose(value: Any, scope: Scope) -> Iterator[Chosen]:
        if is_array(value):
            yield from choose_each(value, scope)
        elif value is None or value is MISSING or value is False:
            if inverse is not None:
                yield inverse, scope.copy(), None
        elif body is not None:
            yield body, scope.copy() if value is True else scope.inner(value), None

    def emit(value: Any, scope: Scope, write: Write) -> None:
        if is_array(value):
            emit_each(value, scope, write)
            return
        for chosen, inner, params in choose(value, scope):
            chosen.enter(inner, write, params)

    return emit, choose


def each(unit: Unit, body: Body | None, inverse: Body | None) -> tuple[Emit, Choose]:
    """Return a block that is repeated for each item of a list, a mapping or an object with fields."""
    cost = (body.cost if body is not None else 0) + 1
    needs_data = body is not None and body.needs_data
    has_params = body is not None and bool(body.params)
    run_body = body.run if body is not None else _nothing
    items_of = unit.setup.fields.items

    def emit(value: Any, scope: Scope, write: Write) -> None:
        items, keys = _items(items_of, value, scope)
        if not items:
            if inverse is not None:
                inverse.enter_shared(scope, write)
            return
        run = scope.run
        run.count(len(items) * cost)
        inner = Scope(None, scope, scope.data, scope.params, scope.around, run)
        data = Round(scope.data)
        if needs_data:
            inner.data = data
        jobs = run.jobs
        begun = len(jobs)
        last = len(items) - 1
        for index, item in enumerate(items):
            if item is MISSING:
                continue
            if len(jobs) != begun:
                # What is under way keeps its scope.
                inner = inner.copy()
                begun = len(jobs)
                if needs_data:
                    data = inner.data = Round(scope.data)
            inner.context = item
            inner.parent = scope.parent if item is scope.context else scope
            if needs_data:
                data.index = index
                data.key = index if keys is None else keys[index]
                data.first = not index
                data.last = index == last
            if has_params:
                inner.params = ((item, index if keys is None else keys[index]), scope.params)
            run_body(inner, write)

    def choose(value: Any, scope: Scope) -> Iterator[Chosen]:
        items, keys = _items(items_of, value, scope)
        if not items:
            if inverse is not None:
                yield inverse, scope.copy(), None
            return
        scope.run.count(len(items) * cost)
        for index, item in enumerate(items):
            if item is MISSING or body is None:
                continue
            key = index if keys is None else keys[index]
            inner = scope.inner(item)
            inner.data = Round(scope.data)
            _set_round(inner.data, index, keys, len(items) - 1)
            yield body, inner, (item, key)

    return emit, choose


def _set_round(data: Any, index: int, keys: Sequence[Any] | None, last: int) -> None:
    data.index = index
    data.key = index if keys is None else keys[index]
    data.first = not index
    data.last = index == last


def _items(
    items_of: Callable[[Any], list[tuple[str, Any]] | None], value: Any, scope: Scope
) -> tuple[Sequence[Any], Sequence[Any] | None]:
    """Return the items of a value, and their keys where they are no indexes."""
    if type(value) is list:
        return value, None
    if is_array(value):
        return list(value), None
    if isinstance(value, Mapping):
        return list(value.values()), list(value)
    pairs = items_of(value)
    if pairs is not None:
        return [item for _, item in pairs], [key for key, _ in pairs]
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray):
        return list(islice(value, scope.run.limits.steps + 1)), None
    return (), None


def _nothing(scope: Scope, write: Write) -> None:
    pass
