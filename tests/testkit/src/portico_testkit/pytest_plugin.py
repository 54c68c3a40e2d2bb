"""What pytest does with a kit: it runs its tests as they are, or with the reason why one cannot pass.

pytest loads this where `portico-testkit` is installed. It does nothing for tests that are of no kit. In a class of
tests that subclasses a kit:

- a standard test is overridden only with ``xfail(reason=…)``, so that what a service cannot do is on record;
- asynchronous tests and fixtures run in whatever mode pytest-asyncio is;
- each test has an end: after 120 seconds it fails, where `pytest-timeout` is installed and sets no other time-out;
- a failure is a sentence, and others with the same cause are skipped. ``--tb=long`` shows each with all that is known.

Tests of your own, fixtures, class attributes and other methods are free.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Generator, Iterable, Iterator
from typing import Any

import pytest

from portico.ports import PORTS
from portico_testkit._failing import pytest_runtest_makereport, require_port  # noqa: F401 - a hook

# The package's `__init__.py` runs before this and has failures in kits explained; see there.

__all__ = ["KitClass", "is_kit", "mistakes_in", "pytest_configure", "pytest_fixture_setup", "pytest_pycollect_makeitem"]

_SECONDS = 120
"""Seconds for a test of a kit. Most take less than one, and a host may be busy."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers of kits."""
    config.addinivalue_line("markers", "fuzz: a property of what reads things from outside; worth more examples")
    config.addinivalue_line("markers", "portico_kit: a standard test of a kit of portico-testkit")


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

        # A fixture that is pytest-asyncio's already may have a loop of its own.
        if not getattr(made, "_force_asyncio_fixture", False):
            pytest_asyncio.fixture(made)
    value = yield
    if request.node.getparent(KitClass) is not None:
        for port in PORTS:
            if fixturedef.argname == re.sub("(?<!^)(?=[A-Z])", "_", port.name).lower():
                require_port(port, value)
    return value


class KitClass(pytest.Class):
    """A class of tests that subclasses a kit."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Return its tests; raise ``CollectError`` where it breaks a rule of kits."""
        mistakes = list(mistakes_in(self.obj))
        if mistakes:
            raise self.CollectError("\n".join(f"{self.obj.__name__}: {mistake}" for mistake in mistakes))
        limited = self.config.pluginmanager.hasplugin("timeout") and self.get_closest_marker("timeout") is None
        # A mark on the class or the module may say which event loop.
        marked = self.get_closest_marker("asyncio") is not None
        for item in super().collect():
            if isinstance(item, pytest.Function):
                if (
                    not marked
                    and _is_asynchronous(_innermost(item.function))
                    and not item.get_closest_marker("asyncio")
                ):
                    item.add_marker("asyncio")
                if limited and not item.config.getini("timeout"):
                    item.add_marker(pytest.mark.timeout(_SECONDS))
                if any(is_kit(owner) for owner in _owners(self.obj, item.function.__name__)):
                    item.add_marker("portico_kit")
            yield item


def is_kit(cls: type) -> bool:
    """Return whether a class is a kit, or a part of one: each class of this package, and any that is named so."""
    named = cls.__name__.endswith("Kit") and not cls.__name__.startswith("Test")
    return named or cls.__module__.partition(".")[0] == "portico_testkit"


def mistakes_in(cls: type) -> Iterator[str]:
    """Yield a sentence for each standard test that a class of tests overrides without a reason."""
    for name in {name for base in cls.__mro__ for name in vars(base) if name.startswith("test_")}:
        first, *others = _owners(cls, name)
        overridden = next((owner for owner in others if is_kit(owner)), None)
        marks = getattr(inspect.getattr_static(first, name), "pytestmark", ())
        if (
            overridden is not None
            and not is_kit(first)
            and not any(mark.name == "xfail" and mark.kwargs.get("reason") for mark in marks)
        ):
            yield (
                f"{name} overrides a standard test of {overridden.__name__}. "
                'Mark it with pytest.mark.xfail(reason="…"), or rename yours.'
            )


def _owners(cls: type, name: str) -> list[type]:
    """Return the classes that define a test, the one that counts first."""
    return [base for base in cls.__mro__ if name in vars(base)]


def _innermost(test: Any) -> Any:
    """Return the function inside what Hypothesis makes of it."""
    return getattr(getattr(test, "hypothesis", None), "inner_test", test)


def _is_asynchronous(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
