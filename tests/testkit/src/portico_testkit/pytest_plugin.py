"""What pytest does with a kit: it runs its tests as they are, or with the reason why one cannot pass.

pytest loads this where `portico-testkit` is installed. It does nothing for tests that are of no kit, and imports
nothing that they would wait for. A class of tests that subclasses a kit is held to this:

- a standard test is overridden only with ``xfail(reason=…)``, so that what a service cannot do is on record. ``skip``
  and ``skipif`` do not do: ``xfail`` takes a condition and ``run=False`` too, and tells when the reason is gone;
- an override runs what it overrides and takes the fixtures that that one takes, unless ``run=False`` says that it
  cannot be run. A fixture that is not found is an error, where pytest would take it for the failure that is expected;
- a test of a kit of this package is not replaced from outside, nor marked to be skipped or to fail, for all classes at
  once;
- ``xfail`` and ``skip`` have a reason wherever they stand, and no ``xfail`` stands for a whole kit.

A test of a kit has an end: after 120 seconds it fails, and says where it waits. ``time_limit`` of its class gives it
others, or None for as long as it takes; a time-out of `pytest-timeout` counts in place of it.

Tests of one's own, fixtures, class attributes and other methods are free. Asynchronous tests and fixtures of a kit run
in whatever mode pytest-asyncio is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

import pytest

from portico_testkit._time_limit import end_threads, time_limit

# The package's `__init__.py` runs before this and has failures in kits explained; see there.

__all__ = [
    "KitClass",
    "is_kit",
    "mistakes_in",
    "pytest_configure",
    "pytest_fixture_setup",
    "pytest_pycollect_makeitem",
    "pytest_runtest_call",
    "pytest_runtest_makereport",
    "pytest_runtest_setup",
    "pytest_runtest_teardown",
    "pytest_unconfigure",
]

_TESTKIT = "portico_testkit"
_TIME_LIMIT = 120.0
"""Seconds for a test of a kit. Most take less than one, and a host may be busy."""
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


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Have a fixture that a test of a kit names and nobody has be an error, though a failure is expected."""
    report = yield
    lacking = call.excinfo is not None and call.excinfo.errisinstance(pytest.FixtureLookupError)
    if lacking and hasattr(report, "wasxfail") and item.getparent(KitClass) is not None:
        report.outcome = "failed"
        del report.wasxfail
    return report


# The last of the wrappers is the innermost: a time limit of somebody else's is there before.
@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Bound the time that the fixtures of a kit's test take."""
    return (yield from _in_time(item, "is not ready"))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Bound the time that a test of a kit takes."""
    return (yield from _in_time(item, "never ends"))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Bound the time that the fixtures of a kit's test take to be closed."""
    return (yield from _in_time(item, "is over and cannot be closed"))


def _in_time(item: pytest.Item, what: str) -> Generator[None, object, object]:
    kit = item.getparent(KitClass)
    seconds = getattr(kit.obj, "time_limit", _TIME_LIMIT) if kit is not None else None
    if seconds is None or item.config.getoption("usepdb", False) or item.config.getoption("trace", False):
        return (yield)
    with time_limit(seconds, f"{item.name} {what}"):
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Have the process end where a test did not: threads that it left are not waited for."""
    end_threads()


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
    return named or _is_ours(cls.__module__)


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
    for owner, mark in _class_marks(cls):
        if _is_ours(owner.__module__) and mark.name in {"skip", "skipif", "xfail"}:
            yield f"{_subclassed(cls, owner)} was given {mark.name} from outside, for every class. {_IN_ONE}"
        elif mark.name == "xfail":
            yield f"xfail on the class {_HIDES}"
        elif mark.name in {"skip", "skipif"} and not _reason(mark):
            yield f"{mark.name} on the class has no reason. Say reason=…, so that it is on record."
    for name in _names_of_tests(cls):
        yield from _mistakes_in_test(cls, name)


def _mistakes_in_test(cls: type, name: str) -> Iterator[str]:
    owners = _owners(cls, name)
    for owner in owners:
        if _is_ours(owner.__module__) and not _is_ours(getattr(vars(owner)[name], "__module__", None)):
            yield f"{name} of {_subclassed(cls, owner)} was replaced from outside, for every class. {_IN_ONE}"
    overridden = next((owner for owner in owners[1:] if _overrides(owners[0], owner)), None)
    kit = _subclassed(cls, overridden or cls)
    effective = inspect.getattr_static(owners[0], name)
    test = getattr(effective, "__func__", effective)
    if not callable(test):
        if overridden is not None:
            yield f"{name} is {test!r} here: a standard test of {kit} is not taken out. {_HOW}"
        return
    xfails = _marks(test, "xfail")
    spared = (*xfails, *_marks(test, "skip"), *_marks(test, "skipif"))
    if _is_ours(owners[0].__module__):
        for kind in dict.fromkeys(mark.name for mark in spared):
            yield f"{name} of {_subclassed(cls, owners[0])} was given {kind} from outside, for every class. {_IN_ONE}"
        return
    for mark in spared:
        if not _reason(mark):
            yield f'{name} has {mark.name} without a reason. Say reason="…", so that it is on record.'
    if overridden is None:
        return
    if not xfails:
        yield f"{name} overrides a standard test of {kit}. {_HOW}"
    elif any(_never_runs(mark) for mark in xfails):
        return
    elif name not in _names_in(test):
        yield (
            f"{name} is expected to fail and does not run the test of {kit}. "
            f"Call super().{name}(…) in it, or say run=False."
        )
    elif lost := _fixtures(overridden, name) - _fixtures(owners[0], name):
        yield f"{name} does not take {', '.join(sorted(lost))}, as the test of {kit} does. {_ALIKE}"


_HIDES = "would hide every failure. Override the test that cannot pass, and mark that."
_ALIKE = "Give it the same parameters."
_IN_ONE = "Override it in the class that cannot pass it."
_HOW = 'Mark it with pytest.mark.xfail(reason="…"), or rename yours.'


def _overrides(owner: type, other: type) -> bool:
    """Return whether ``owner`` replaces a test of ``other`` that is not its own to change.

    A kit may replace tests of a kit of the same package, which is what made it.
    """
    packages = [cls.__module__.partition(".")[0] for cls in (owner, other)]
    return is_kit(other) and not (is_kit(owner) and packages[0] == packages[1])


def _subclassed(cls: type, owner: type) -> str:
    """Return the name of the kit that a class subclasses and that has ``owner`` for a part, or is it."""
    package = owner.__module__.partition(".")[0]
    kits = (base for base in cls.__mro__ if is_kit(base) and issubclass(base, owner))
    return next((base for base in kits if base.__module__.partition(".")[0] == package), owner).__name__


def _names_of_tests(cls: type) -> Iterable[str]:
    every = ((name, value) for base in cls.__mro__ for name, value in vars(base).items() if name.startswith("test"))
    # `tests`, the folder, is an attribute as others are.
    return dict.fromkeys(name for name, value in every if name.startswith("test_") or callable(value))


def _tests_of(cls: type) -> Iterator[tuple[str, Any]]:
    for name in _names_of_tests(cls):
        test = inspect.getattr_static(cls, name)
        test = getattr(test, "__func__", test)
        if callable(test) and not isinstance(test, type):
            yield name, test


def _owners(cls: type, name: str) -> list[type]:
    """Return the classes that define a test, the one that counts first."""
    return [base for base in cls.__mro__ if name in vars(base)]


def _is_ours(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == _TESTKIT


def _fixtures(owner: type, name: str) -> set[str]:
    """Return the names of what pytest gives to a test of a class."""
    test = vars(owner)[name]
    parameters = list(inspect.signature(getattr(test, "__func__", test)).parameters.values())
    given = parameters if isinstance(test, staticmethod) else parameters[1:]
    return {each.name for each in given if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)}


def _class_marks(cls: type) -> Iterator[tuple[type, pytest.Mark]]:
    for base in cls.__mro__:
        yield from ((base, mark) for mark in _listed(vars(base).get("pytestmark", ())))


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
