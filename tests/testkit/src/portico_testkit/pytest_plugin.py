"""What pytest does with a kit: it runs its tests as they are, or with the reason why one cannot pass.

pytest loads this where `portico-testkit` is installed. It does nothing for tests that are of no kit, and imports
nothing that they would wait for. A class of tests that subclasses a kit is held to this:

- a standard test is overridden only with ``xfail(reason=…)``, so that what a service cannot do is on record. ``skip``
  and ``skipif`` do not do: ``xfail`` takes a condition and ``run=False`` too, and tells when the reason is gone;
- an override runs what it overrides, unless ``run=False`` says that it cannot be run;
- ``xfail`` and ``skip`` have a reason wherever they stand, and no ``xfail`` stands for a whole kit.

Tests of one's own, fixtures, class attributes and other methods are free. Asynchronous tests and fixtures of a kit run
in whatever mode pytest-asyncio is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

import pytest

# The package's `__init__.py` runs before this and has failures in kits explained; see there.

__all__ = [
    "KitClass",
    "is_kit",
    "mistakes_in",
    "pytest_configure",
    "pytest_fixture_setup",
    "pytest_pycollect_makeitem",
]

_TESTKIT = "portico_testkit"
_MARKERS = {
    "fuzz": "a property of what reads things from outside; worth more examples than usual",
    "portico_kit": "a standard test of a kit of portico-testkit",
}


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers of kits."""
    for name, meaning in _MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> pytest.Collector | None:
    """Collect a class that subclasses a kit as a `KitClass`."""
    if isinstance(obj, type) and any(is_kit(base) for base in obj.__mro__[1:]) and collector.istestclass(obj, name):
        made: pytest.Collector = KitClass.from_parent(collector, name=name, obj=obj)
        return made
    return None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Have pytest-asyncio make an asynchronous fixture that a kit asks for, in its strict mode too."""
    made = getattr(fixturedef.func, "__func__", fixturedef.func)
    if _is_asynchronous(made) and request.node.getparent(KitClass) is not None:
        import pytest_asyncio

        # A fixture that is pytest-asyncio's already may have a loop of its own. What this returns is not needed:
        # it marks the function.
        if not getattr(made, "_force_asyncio_fixture", False):
            pytest_asyncio.fixture(made)
    return (yield)


class KitClass(pytest.Class):
    """A class of tests that subclasses a kit."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Return its tests; raise ``CollectError`` where it breaks a rule of kits."""
        mistakes = list(mistakes_in(self.obj))
        if self.parent is not None and any(self.parent.iter_markers("xfail")):
            mistakes.append(f"xfail on the module {_HIDES}")
        if mistakes:
            raise self.CollectError("\n".join(f"{self.obj.__name__}: {mistake}" for mistake in mistakes))
        # One on the class or the module may say which event loop.
        marked = self.get_closest_marker("asyncio") is not None
        for name, test in _tests_of(self.obj):
            # Not the class: pytest-asyncio warns of the mark on a test that is no coroutine.
            if not marked and _is_asynchronous(_innermost(inspect.unwrap(test))) and not _marks(test, "asyncio"):
                pytest.mark.asyncio(test)
            if any(is_kit(owner) for owner in _owners(self.obj, name)) and not _marks(test, "portico_kit"):
                pytest.mark.portico_kit(test)
        return super().collect()


def is_kit(cls: type) -> bool:
    """Return whether a class is a kit, or a part of one: each class of this package, and any that is named so.

    Classes that pytest collects by themselves are none, whatever else they are named: they are not there to be
    subclassed. Nor are those of `unittest`, which pytest runs in another way.

    >>> class PoemKit:
    ...     def test_it_rhymes(self, poem): ...
    >>> is_kit(PoemKit), is_kit(dict)
    (True, False)
    """
    if any(base.__name__ == "TestCase" and base.__module__ == "unittest.case" for base in cls.__mro__):
        return False
    named = cls.__name__.endswith("Kit") and not cls.__name__.startswith("Test")
    return named or cls.__module__.partition(".")[0] == _TESTKIT


def mistakes_in(cls: type) -> Iterator[str]:
    """Yield a sentence for each rule of kits that a class of tests breaks.

    >>> class PoemKit:
    ...     def test_it_rhymes(self, poem): ...
    >>> class TestLimerick(PoemKit):
    ...     __module__ = "test_contract"
    ...     def test_it_rhymes(self, poem): ...
    >>> print(*mistakes_in(TestLimerick))
    test_it_rhymes overrides a standard test of PoemKit. Mark it with pytest.mark.xfail(reason="…"), or rename yours.
    """
    for mark in _class_marks(cls):
        if mark.name == "xfail":
            yield f"xfail on the class {_HIDES}"
        elif mark.name in {"skip", "skipif"} and not _reason(mark):
            yield f"{mark.name} on the class has no reason. Say reason=…, so that it is on record."
    for name in dict.fromkeys(name for base in cls.__mro__ for name in vars(base) if name.startswith("test")):
        owners = _owners(cls, name)
        overridden = next((owner for owner in owners[1:] if _overrides(owners[0], owner)), None)
        effective = inspect.getattr_static(owners[0], name)
        test = getattr(effective, "__func__", effective)
        if not callable(test):
            if overridden is not None:
                yield f"{name} is {test!r} here: a standard test of {overridden.__name__} is not taken out. {_HOW}"
            continue
        xfails = _marks(test, "xfail")
        for mark in (*xfails, *_marks(test, "skip"), *_marks(test, "skipif")):
            if not _reason(mark):
                yield f'{name} has {mark.name} without a reason. Say reason="…", so that it is on record.'
        if overridden is None:
            continue
        if not xfails:
            yield f"{name} overrides a standard test of {overridden.__name__}. {_HOW}"
        elif not any(_never_runs(mark) for mark in xfails) and name not in _names_in(test):
            yield (
                f"{name} is expected to fail and does not run the test of {overridden.__name__}. "
                f"Call super().{name}(…) in it, or say run=False."
            )


_HIDES = "would hide every failure. Override the test that cannot pass, and mark that."
_HOW = 'Mark it with pytest.mark.xfail(reason="…"), or rename yours.'


def _overrides(owner: type, other: type) -> bool:
    """Return whether ``owner`` replaces a test of ``other`` that is not its own to change.

    A kit may replace tests of a kit of the same package, which is what made it.
    """
    packages = [cls.__module__.partition(".")[0] for cls in (owner, other)]
    return is_kit(other) and not (is_kit(owner) and packages[0] == packages[1])


def _tests_of(cls: type) -> Iterator[tuple[str, Any]]:
    for name in dict.fromkeys(name for base in cls.__mro__ for name in vars(base) if name.startswith("test")):
        test = inspect.getattr_static(cls, name)
        test = getattr(test, "__func__", test)
        if callable(test) and not isinstance(test, type):
            yield name, test


def _owners(cls: type, name: str) -> list[type]:
    """Return the classes that define a test, the one that counts first."""
    return [base for base in cls.__mro__ if name in vars(base)]


def _class_marks(cls: type) -> Iterator[pytest.Mark]:
    for base in cls.__mro__:
        yield from _listed(vars(base).get("pytestmark", ()))


def _marks(test: Any, name: str) -> list[pytest.Mark]:
    return [mark for mark in _listed(getattr(test, "pytestmark", ())) if mark.name == name]


def _listed(marks: Any) -> list[pytest.Mark]:
    """Return marks as a list: `pytestmark` may be one mark, or its decorator."""
    every: Iterable[Any] = marks if isinstance(marks, list | tuple) else [marks]
    return [getattr(mark, "mark", mark) for mark in every]


def _reason(mark: pytest.Mark) -> bool:
    reason = mark.kwargs.get("reason", mark.args[0] if mark.name == "skip" and mark.args else "")
    return isinstance(reason, str) and bool(reason.strip())


def _never_runs(mark: pytest.Mark) -> bool:
    """Return whether an ``xfail`` says that the test is not run, whatever the circumstances."""
    return mark.kwargs.get("run", True) is False and not mark.args and "condition" not in mark.kwargs


def _names_in(test: Callable[..., Any]) -> frozenset[str]:
    """Return the names of attributes that the code of a test uses."""
    code = getattr(_innermost(inspect.unwrap(test)), "__code__", None)
    return frozenset(code.co_names) if code is not None else frozenset()


def _innermost(test: Any) -> Any:
    """Return the function inside what Hypothesis makes of it."""
    return getattr(getattr(test, "hypothesis", None), "inner_test", test)


def _is_asynchronous(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
