"""Runs the tests of a kit on broken implementations: each must fail where it is expected to."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import pytest

from portico_testkit.tasks import with_patience

__all__ = ["Fault", "KnownFaults", "kit_failures", "names_of_tests"]

_Kind = TypeVar("_Kind", bound=type)
_Fixtures = Mapping[str, Callable[..., object]]


def names_of_tests(kit: type) -> list[str]:
    """Return the names of the tests of a kit, inherited ones too."""
    return [name for name, _ in inspect.getmembers(kit, inspect.isfunction) if name.startswith("test_")]


async def kit_failures(kit: type, fixtures: _Fixtures, tests: Iterable[str] | None = None) -> dict[str, str]:
    """Run tests of a kit, all by default, and return the messages of those that fail.

    >>> class PoemKit:
    ...     async def test_it_rhymes(self, poem):
    ...         assert poem.endswith("ight"), f"{poem!r} does not rhyme"
    ...     async def test_it_is_short(self, poem):
    ...         assert len(poem) < 20
    >>> asyncio.run(kit_failures(PoemKit, {"poem": lambda: "Good day"}))
    {'test_it_rhymes': "'Good day' does not rhyme"}

    ``fixtures`` makes what the kit's tests take, for each test anew; a function's own parameters name other fixtures.
    A parametrised test runs with each of its values until it fails with one. A test that is no coroutine runs in a
    thread, where it may start its own event loop. Raises ``LookupError`` for a fixture that is not given.
    """
    found: dict[str, str] = {}
    for name in names_of_tests(kit) if tests is None else tests:
        made = kit()
        test = getattr(made, name)
        marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
        for value in marks[0].args[1] if marks else (None,):
            before = asyncio.all_tasks()
            drawn = {marks[0].args[0]: partial(_same, value)} if marks else {}
            message = await _failure(test, {**_own_fixtures(made), **fixtures, **drawn})
            for task in asyncio.all_tasks() - before:
                task.cancel()
            if message is not None:
                found[name] = message
                break
    return found


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken implementation, the test of its kit that must find it, and words (a pattern) of the failure."""

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

    ``fixtures`` makes those of an implementation's class, as `kit_failures` takes them. ``attributes`` gives the
    attributes of the kit's class for it, where they differ.
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
        """Mark a broken implementation: ``test``, without its ``test_``, fails for it with ``words``, a pattern."""

        def mark(kind: _Kind) -> _Kind:
            self.append(Fault(kind, f"test_{test}", words))
            return kind

        return mark

    async def check(self, fault: Fault, given: _Fixtures | None = None, *, patience: float = 0.3) -> None:
        """Fail unless the named test fails for the fault, with the expected words.

        ``given`` are further fixtures. Calls of the kit that do not end are given up after ``patience`` seconds.
        """
        kit = type(self.kit.__name__, (self.kit,), dict(self.attributes(fault.kind)))
        with with_patience(patience):
            found = await kit_failures(kit, {**(given or {}), **self.fixtures(fault.kind)}, [fault.test])
        # Raised, not asserted: pytest would show all fixtures below the words that matter.
        said = found.get(fault.test, "nothing")
        if fault.test not in found or not re.search(fault.words, said, re.DOTALL):
            raise AssertionError(f"{fault.test} does not say {fault.words!r} of {fault.kind.__name__}, but: {said}")


def _own_fixtures(kit: object) -> dict[str, Callable[..., object]]:
    """Return the fixtures that a kit has itself, by name."""
    values = {name: inspect.getattr_static(kit, name) for name in dir(type(kit))}
    # The second attribute is how pytest 8.3 marks them.
    marks = ("_fixture_function_marker", "_pytestfixturefunction")
    found = {name: value for name, value in values.items() if any(hasattr(value, mark) for mark in marks)}
    return {name: inspect.unwrap(value).__get__(kit) for name, value in found.items()}


async def _failure(test: Callable[..., Any], fixtures: _Fixtures) -> str | None:
    """Run a test and return its message when it fails."""
    made: dict[str, Any] = {}
    async with AsyncExitStack() as stack:
        arguments = {name: await _make(name, fixtures, made, stack) for name in inspect.signature(test).parameters}
        try:
            if inspect.iscoroutinefunction(test):
                await test(**arguments)
            else:
                await asyncio.to_thread(test, **arguments)
        except (Exception, pytest.fail.Exception) as error:
            return _message(error)
    return None


def _same(value: object) -> object:
    return value


def _message(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):  # Hypothesis raises it for several examples
        return "; ".join(map(_message, error.exceptions))
    return str(error) or repr(error)


async def _make(name: str, fixtures: _Fixtures, made: dict[str, Any], stack: AsyncExitStack) -> Any:
    """Return a fixture of a test, made once, after those that it names itself."""
    if name not in made:
        if name not in fixtures:
            raise LookupError(f'the fixture {name!r} is not given: fixtures={{"{name}": …, …}}')
        factory = fixtures[name]
        needs: list[str] = []
        if inspect.isfunction(factory) or inspect.ismethod(factory):  # the parameters of a class are no fixtures
            parameters = inspect.signature(factory).parameters.values()
            needs = [each.name for each in parameters if each.default is each.empty]
        value: Any = factory(**{need: await _make(need, fixtures, made, stack) for need in needs})
        if inspect.isgenerator(value):
            stack.callback(next, value, None)
            value = next(value)
        elif inspect.isasyncgen(value):
            stack.push_async_callback(anext, value, None)
            value = await anext(value)
        made[name] = value
    return made[name]
