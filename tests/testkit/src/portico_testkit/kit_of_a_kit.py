"""What every kit must do: find what is broken, and nothing wrong with what is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import ClassVar

import pytest

from portico_testkit.kit_failures import Fault, KnownFaults
from portico_testkit.tasks import with_patience

__all__ = ["KitOfAKit"]

_TOLD = {"faults": "FAULTS, a KnownFaults", "correct": "(Acme,), classes that pass the kit"}
_OF_PYTEST = ("caplog", "monkeypatch", "request", "tmp_path")


class KitOfAKit:
    """Subclass it and give the broken implementations that your kit must find, and the correct ones.

    >>> from portico_testkit.kit_failures import kit_failures
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
    >>> class TestThePoemKit(KitOfAKit):
    ...     faults = FAULTS
    ...     correct = (Poem,)

    pytest makes a test of each fault, and one of each correct implementation with each test of the kit. Here one is
    missing, and that is told:

    >>> import asyncio
    >>> said = asyncio.run(kit_failures(TestThePoemKit, {}, ["test_each_test_of_the_kit_catches_something"]))
    >>> print(*said.values())
    no fault is known that these would catch: test_it_is_short

    Subclasses of the correct implementations in the file of the test are taken for broken ones, each with a place in
    the table. For these, `portico_testkit.tasks` waits no longer than ``patience`` (seconds); what else waits in a kit
    has to have a bound of its own. Tests of the kit and fixtures of the table may ask for pytest's ``caplog``,
    ``monkeypatch``, ``request`` and ``tmp_path``; override the fixture ``given`` for others.
    """

    faults: ClassVar[KnownFaults]
    correct: ClassVar[tuple[type, ...]]
    patience: ClassVar[float] = 0.3

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make a test of each fault, and of each correct implementation with each test of the kit."""
        for name, example in _TOLD.items():
            if not hasattr(self, name):
                pytest.fail(f"{type(self).__name__} does not say its {name}: {name} = {example}", pytrace=False)
        if "fault" in metafunc.fixturenames:
            metafunc.parametrize("fault", self.faults, ids=str)
        if "correct_one" in metafunc.fixturenames:
            metafunc.parametrize("correct_one", self.correct, ids=lambda kind: kind.__name__)
            metafunc.parametrize("test", self.faults.tests)

    @pytest.fixture
    def given(self, request: pytest.FixtureRequest) -> Mapping[str, Callable[[], object]]:
        return {name: partial(request.getfixturevalue, name) for name in _OF_PYTEST}

    @pytest.mark.asyncio
    async def test_a_fault_is_caught_by_the_test_that_names_it(
        self, fault: Fault, given: Mapping[str, Callable[[], object]]
    ) -> None:
        """A test that nothing fails says nothing, and one that fails in other words misleads who reads it."""
        with with_patience(self.patience):
            await self.faults.check(fault, given)

    @pytest.mark.asyncio
    async def test_nothing_is_wrong_with_what_is_correct(
        self, correct_one: type, test: str, given: Mapping[str, Callable[[], object]]
    ) -> None:
        """What the broken ones share is not what is found."""
        said = await self.faults.failures_of(correct_one, test, given=given)
        if said:
            raise AssertionError(f"{correct_one.__name__} is correct, and {test} says: {said[test]}")

    def test_each_test_of_the_kit_catches_something(self) -> None:
        """Nobody has seen the others fail."""
        untried = self.faults.tests_that_catch_nothing()
        if untried:
            raise AssertionError(f"no fault is known that these would catch: {', '.join(untried)}")

    def test_each_broken_one_is_in_the_table(self) -> None:
        """One that is forgotten shows nothing."""
        # By their names: a decorator such as `attrs.frozen` makes another class of the one that is written.
        known = {kind.__qualname__ for kind in (*self.correct, *(fault.kind for fault in self.faults))}
        below = (kind for base in self.correct for kind in _last_of(base) if kind.__module__ == type(self).__module__)
        forgotten = sorted({kind.__qualname__ for kind in below if "<locals>" not in kind.__qualname__} - known)
        if forgotten:
            raise AssertionError(f"in no table, and not among the correct ones: {', '.join(forgotten)}")


def _last_of(kind: type) -> Iterator[type]:
    """Yield the subclasses of a class that have none themselves."""
    below: list[type] = type.__subclasses__(kind)
    for each in below:
        yield from _last_of(each)
    if not below:
        yield kind
