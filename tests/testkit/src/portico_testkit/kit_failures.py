"""What a kit says of an implementation, for the tests of kits: broken ones must fail, correct ones must not."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

__all__ = ["kit_failures", "names_of_tests"]


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
            except (Exception, pytest.fail.Exception) as error:
                found.setdefault(name, str(error))
    return found


def _cases(test: Any) -> Iterator[dict[str, Any]]:
    """Yield the values of each case of a test, none for one that has no parameters."""
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    for case in itertools.product(*(_rows(*mark.args) for mark in marks)):
        yield {name: value for row in case for name, value in row.items()}


def _rows(names: str | Sequence[str], values: Iterable[Any]) -> list[dict[str, Any]]:
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    return [dict(zip(keys, [value] if len(keys) == 1 else value, strict=True)) for value in values]
