"""What a kit says of an implementation, for the tests of kits: broken ones must fail, correct ones must not."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

import pytest

__all__ = ["Fault", "KnownFaults", "kit_failures", "names_of_tests"]

_Kind = TypeVar("_Kind", bound=type)


def names_of_tests(kit: type) -> list[str]:
    """Return the names of the tests of a kit, inherited ones too."""
    return [name for name, _ in inspect.getmembers(kit, inspect.isfunction) if name.startswith("test_")]


async def kit_failures(
    kit: type, fixtures: Mapping[str, Callable[[], object]], tests: Iterable[str] | None = None
) -> dict[str, str]:
    """Run the tests of a kit and return those that fail, with what they say first.

    >>> class PoemKit:
    ...     async def test_it_rhymes(self, poem):
    ...         assert poem.endswith("ight"), f"{poem!r} does not rhyme"
    ...     async def test_it_is_short(self, poem):
    ...         assert len(poem) < 20
    >>> asyncio.run(kit_failures(PoemKit, {"poem": lambda: "Good day"}))
    {'test_it_rhymes': "'Good day' does not rhyme"}

    ``fixtures`` makes, for each test anew, what the kit has its subclasses give: at least the implementation. A test
    that is parametrised is run with each of its values and fails if one of them does. A test that is no coroutine
    is run in a thread, where it may start an event loop of its own. ``tests`` are the names of those to run, by
    default all. A test that is skipped skips the caller: an implementation that is to be broken is not tried by it.
    """
    found: dict[str, str] = {}
    for name in names_of_tests(kit) if tests is None else tests:
        test = getattr(kit(), name)
        wanted = list(inspect.signature(test).parameters)
        for values in _cases(test):
            given = {key: values[key] if key in values else fixtures[key]() for key in wanted}
            try:
                if inspect.iscoroutinefunction(test):
                    await test(**given)
                else:
                    await asyncio.to_thread(test, **given)
            except (Exception, pytest.fail.Exception, asyncio.CancelledError) as error:
                task = asyncio.current_task()
                if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                    raise  # somebody gave this call up: it is not the implementation that says so
                found.setdefault(name, str(error) or repr(error))
    return found


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken implementation, the test of its kit that must find it, and words (a pattern) of what that says."""

    kind: type
    test: str
    words: str = ""

    def __str__(self) -> str:
        return f"{self.kind.__name__}-{self.test}"


class KnownFaults(Sequence[Fault]):
    """The broken implementations with which a kit is tried: each fails the test that is named for it.

    >>> class PoemKit:
    ...     async def test_it_rhymes(self, poem):
    ...         assert poem.text.endswith("ight"), f"{poem.text!r} does not rhyme"
    ...     async def test_it_is_short(self, poem):
    ...         assert len(poem.text) < 20
    >>> class Poem:
    ...     text = "Good night"
    >>> FAULTS = KnownFaults(PoemKit, lambda kind: {"poem": kind})
    >>> @FAULTS.caught_by("it_rhymes", "does not rhyme")
    ... class Prose(Poem):
    ...     text = "Good day"
    >>> asyncio.run(FAULTS.check(Fault(Prose, "test_it_rhymes")))
    >>> asyncio.run(FAULTS.failures_of(Poem))
    {}
    >>> FAULTS.tests_that_catch_nothing()
    ['test_it_is_short']

    ``fixtures`` makes those of an implementation's class, as `kit_failures` takes them. A test of a kit is
    parametrised with the table itself, a sequence of each `Fault`.
    """

    def __init__(self, kit: type, fixtures: Callable[[Any], Mapping[str, Callable[[], object]]]) -> None:
        self.kit = kit
        self.fixtures = fixtures
        self._faults: list[Fault] = []

    def caught_by(self, test: str, words: str = "") -> Callable[[_Kind], _Kind]:
        """Mark a broken implementation: ``test``, without its ``test_``, finds it and says ``words``, a pattern."""
        name = f"test_{test}"
        if name not in names_of_tests(self.kit):
            raise ValueError(f"{self.kit.__name__} has no {name}")

        def mark(kind: _Kind) -> _Kind:
            self._faults.append(Fault(kind, name, words))
            return kind

        return mark

    def __len__(self) -> int:
        return len(self._faults)

    @overload
    def __getitem__(self, index: int) -> Fault: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Fault]: ...
    def __getitem__(self, index: int | slice) -> Fault | Sequence[Fault]:
        return self._faults[index]

    async def check(self, fault: Fault) -> None:
        """Fail unless the test that is named finds the fault, and says so in the words that are told."""
        found = await self.failures_of(fault.kind, fault.test)
        assert fault.test in found, f"{fault.test} finds nothing wrong with {fault.kind.__name__}"
        said = found[fault.test]
        assert re.search(fault.words, said, re.DOTALL), f"{fault.test} says {said!r}, without {fault.words!r}"

    async def failures_of(self, kind: type, *tests: str) -> dict[str, str]:
        """Return the tests that fail for an implementation, by default of all, with what they say first."""
        return await kit_failures(self.kit, self.fixtures(kind), tests or None)

    def tests_that_catch_nothing(self) -> list[str]:
        """Return the tests of the kit for which no fault is known: nobody has seen them fail."""
        caught = {fault.test for fault in self}
        return [name for name in names_of_tests(self.kit) if name not in caught]


def _cases(test: Any) -> Iterator[dict[str, Any]]:
    """Yield the values of each case of a test, none for one that has no parameters."""
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    for case in itertools.product(*(_rows(*mark.args) for mark in marks)):
        yield {name: value for row in case for name, value in row.items()}


def _rows(names: str | Sequence[str], values: Iterable[Any]) -> list[dict[str, Any]]:
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    return [dict(zip(keys, [value] if len(keys) == 1 else value, strict=True)) for value in values]
