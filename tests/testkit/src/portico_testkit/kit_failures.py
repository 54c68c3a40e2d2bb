"""What a kit says of an implementation, for the tests of kits: broken ones must fail, correct ones must not."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from portico_testkit.tasks import with_patience

__all__ = ["Fault", "KnownFaults", "kit_failures", "names_of_tests"]

_Kind = TypeVar("_Kind", bound=type)
_Fixtures = Mapping[str, Callable[..., object]]

_ROW = type(pytest.param())
"""What ``pytest.param`` makes, a class without a public name."""
_LONGEST = 10.0
"""Seconds that a task has which an implementation left behind, before the next test is run all the same."""


def names_of_tests(kit: type) -> list[str]:
    """Return the names of the tests of a kit, inherited ones too."""
    return [name for name, _ in inspect.getmembers(kit, inspect.isfunction) if name.startswith("test_")]


async def kit_failures(kit: type, fixtures: _Fixtures, tests: Iterable[str] | None = None) -> dict[str, str]:
    """Run the tests of a kit and return those that fail, with what they say first.

    >>> class PoemKit:
    ...     async def test_it_rhymes(self, poem):
    ...         assert poem.endswith("ight"), f"{poem!r} does not rhyme"
    ...     async def test_it_is_short(self, poem):
    ...         assert len(poem) < 20
    >>> asyncio.run(kit_failures(PoemKit, {"poem": lambda: "Good day"}))
    {'test_it_rhymes': "'Good day' does not rhyme"}

    ``fixtures`` makes, for each test anew, what the kit has its subclasses give: at least the implementation; the
    kit's own fixtures make the rest. As with pytest, a function is given the fixtures that its parameters name, and
    one that yields is run to its end after the test; both may be asynchronous. A test that is parametrised is run with
    each of its values until it fails with one. A test that is no coroutine is run in a thread, where it may start an
    event loop of its own. ``tests`` are the names of those to run, by default all. A test that is skipped skips the
    caller: an implementation that is to be broken is not tried by it. Tasks that an implementation leaves behind are
    cancelled.

    Raises ``LookupError`` for a fixture that a test takes and nobody makes; pytest's own are among these.
    """
    found: dict[str, str] = {}
    for name in names_of_tests(kit) if tests is None else tests:
        made = kit()
        test = getattr(made, name)
        for values in _cases(test):
            before = asyncio.all_tasks()
            try:
                said = await _run(test, {**_own_fixtures(made), **fixtures}, values)
            finally:
                await _end(asyncio.all_tasks() - before)
            if said is not None:
                found[name] = said
                break
    return found


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken implementation, the test of its kit that must find it, and words (a pattern) of what that says."""

    kind: type
    test: str
    words: str = ""

    def __str__(self) -> str:
        return f"{self.kind.__name__}-{self.test}"


class KnownFaults(list[Fault]):
    """A few broken implementations with which a kit is tried: each fails the test that is named for it.

    >>> class PoemKit:
    ...     async def test_it_rhymes(self, poem):
    ...         assert poem.text.endswith("ight"), f"{poem.text!r} does not rhyme"
    >>> class Poem:
    ...     text = "Good night"
    >>> FAULTS = KnownFaults(PoemKit, lambda kind: {"poem": kind})
    >>> @FAULTS.caught_by("it_rhymes", "does not rhyme")
    ... class Prose(Poem):
    ...     text = "Good day"
    >>> for fault in FAULTS:
    ...     asyncio.run(FAULTS.check(fault))

    ``fixtures`` makes those of an implementation's class, as `kit_failures` takes them. ``attributes`` gives what the
    kit's class needs for it, where a kit makes its implementations itself.
    """

    def __init__(
        self,
        kit: type,
        fixtures: Callable[[Any], _Fixtures],
        *,
        attributes: Callable[[Any], Mapping[str, object]] = lambda kind: {},
    ) -> None:
        super().__init__()
        self.kit = kit
        self.fixtures = fixtures
        self.attributes = attributes

    def caught_by(self, test: str, words: str = "") -> Callable[[_Kind], _Kind]:
        """Mark a broken implementation: ``test``, without its ``test_``, finds it and says ``words``, a pattern."""

        def mark(kind: _Kind) -> _Kind:
            self.append(Fault(kind, f"test_{test}", words))
            return kind

        return mark

    async def check(self, fault: Fault, given: _Fixtures | None = None, *, patience: float = 0.3) -> None:
        """Fail unless the named test finds the fault, and says so in the words that are expected.

        ``given`` are further fixtures. Calls of the kit that do not end are given up after ``patience`` seconds.
        """
        kit = type(self.kit.__name__, (self.kit,), dict(self.attributes(fault.kind)))
        with with_patience(patience):
            found = await kit_failures(kit, {**(given or {}), **self.fixtures(fault.kind)}, [fault.test])
        # Raised, not asserted: pytest would show the table and its fixtures below the words that matter.
        if fault.test not in found:
            raise AssertionError(f"{fault.test} finds nothing wrong with {fault.kind.__name__}")
        said = found[fault.test]
        if not re.search(fault.words, said, re.DOTALL):
            raise AssertionError(f"{fault.test} does not say {fault.words!r} of {fault.kind.__name__}, but: {said}")


async def _run(test: Callable[..., Any], fixtures: _Fixtures, values: Mapping[str, Any]) -> str | None:
    """Run one case of a test and return what it says when it fails."""
    async with AsyncExitStack() as stack:
        made = dict(values)
        given = {name: await _make(name, fixtures, made, stack) for name in inspect.signature(test).parameters}
        try:
            if inspect.iscoroutinefunction(test):
                await test(**given)
            else:
                await asyncio.to_thread(test, **given)
        except (Exception, pytest.fail.Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # somebody gave this call up: it is not the implementation that says so
            return _said(error)
    return None


def _said(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):  # such as Hypothesis raises for several examples
        return "; ".join(map(_said, error.exceptions))
    return str(error) or repr(error)


def _own_fixtures(kit: object) -> dict[str, Callable[..., object]]:
    """Return the fixtures that a kit has, by the names that tests take them by."""
    found = {}
    for attribute in dir(type(kit)):
        value = inspect.getattr_static(kit, attribute)
        # The second is how pytest 8.3 marks them.
        mark = getattr(value, "_fixture_function_marker", getattr(value, "_pytestfixturefunction", None))
        if mark is not None:
            found[mark.name or attribute] = inspect.unwrap(value).__get__(kit)
    return found


async def _make(name: str, fixtures: _Fixtures, made: dict[str, Any], stack: AsyncExitStack) -> Any:
    """Return a fixture of a test, made once, after those that it names itself."""
    if name not in made:
        if name not in fixtures:
            raise LookupError(f'the fixture {name!r} is not given: fixtures={{"{name}": …, …}}')
        factory = fixtures[name]
        needs: list[str] = []
        if inspect.isfunction(factory) or inspect.ismethod(factory):  # what a class needs is its own affair
            asked = inspect.signature(factory).parameters.values()
            needs = [each.name for each in asked if each.default is each.empty]
        value: Any = factory(**{need: await _make(need, fixtures, made, stack) for need in needs})
        if inspect.isgenerator(value):
            stack.callback(next, value, None)
            value = next(value)
        elif inspect.isasyncgen(value):
            stack.push_async_callback(anext, value, None)
            value = await anext(value)
        elif inspect.iscoroutine(value):
            value = await value
        made[name] = value
    return made[name]


async def _end(left: set[asyncio.Task[Any]]) -> None:
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=_LONGEST)


def _cases(test: Any) -> Iterator[dict[str, Any]]:
    """Yield the values of each case of a test, none for one that has no parameters."""
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    for case in itertools.product(*(_rows(*mark.args, **mark.kwargs) for mark in marks)):
        yield {name: value for row in case for name, value in row.items()}


def _rows(argnames: str | Sequence[str], argvalues: Iterable[Any], **_how: object) -> list[dict[str, Any]]:
    """Return the rows of a mark, whose parameters pytest takes by name too; ``ids`` and the like are for people."""
    keys = [name.strip() for name in argnames.split(",") if name.strip()] if isinstance(argnames, str) else argnames
    alone = isinstance(argnames, str) and len(keys) == 1
    rows = []
    for value in argvalues:
        if not isinstance(value, _ROW):
            rows.append([value] if alone else value)
        elif not any(mark.name == "skip" for mark in value.marks):
            rows.append(value.values)
    return [dict(zip(keys, row, strict=True)) for row in rows]
