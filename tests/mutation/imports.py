"""What is called while modules are imported, and what stays in caches: mutants that a fork does not show by itself."""

from __future__ import annotations

import functools
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

_CACHE = type(functools.lru_cache(maxsize=None)(lambda: None))


class WithoutCaches:
    """A pytest plugin: each test begins with the caches of core and of the tests empty, and calls what it is about."""

    def __init__(self) -> None:
        self.modules = 0
        self.caches: list[Any] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        if len(sys.modules) != self.modules:
            self.modules = len(sys.modules)
            self.caches = list(_caches())
        for cache in self.caches:
            cache.cache_clear()


class Calls:
    """The functions that are called while modules are imported, kept in a file beside mutmut's own."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._names: frozenset[str] | None = None

    def names(self) -> frozenset[str]:
        """Return the functions, as mutmut names them."""
        if self._names is None:
            self._names = frozenset(json.loads(self.file.read_text("utf-8"))) if self.file.exists() else frozenset()
        return self._names

    @contextmanager
    def recorded(self, state: Any) -> Iterator[_AtImport]:
        """Give the plugin for the run that finds out which test calls what, and keep what it has found."""
        plugin = _AtImport(state)
        yield plugin
        tests_of = state.tests_by_mangled_function_name
        for name, tests in plugin.tests(tests_of).items():
            tests_of[name] |= tests
        self._names = frozenset(plugin.called)
        self.file.write_text(json.dumps(sorted(self._names)), "utf-8")


class _AtImport:
    """A pytest plugin: takes down what is called while a file of tests is read; mutmut gives that to the next test."""

    def __init__(self, state: Any) -> None:
        self.state = state
        self.called: dict[str, set[str]] = defaultdict(set)
        self.tests_in: dict[str, set[str]] = defaultdict(set)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        report = yield
        # By the file, or by a module of core that it is the first to import: one cannot tell.
        for name in self.state._stats:
            self.called[name].add(collector.nodeid)
        self.state._stats.clear()
        return report

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            self.tests_in[item.nodeid.partition("::")[0]].add(item.nodeid)

    def tests(self, tests_of: dict[str, set[str]]) -> dict[str, set[str]]:
        """Return the tests that would show a mutant: of the files that called it, and of its package's functions.

        Of the package, since what a function makes at an import may be called by another module: a rule in a table.
        """
        of_package: dict[str, set[str]] = defaultdict(set)
        for name, tests in tests_of.items():
            of_package[_package_of(name)] |= tests
        return {
            name: of_package[_package_of(name)].union(*(self.tests_in[file.partition("::")[0]] for file in files))
            for name, files in self.called.items()
        }


def forget(folder: Path) -> None:
    """Have everything imported again that is of Portico or of this folder."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if name.partition(".")[0] in {"portico", "portico_testkit", "conftest"} or file.startswith(f"{folder}/"):
            del sys.modules[name]


def _caches() -> Iterator[Any]:
    """Find the caches of core and of its tests: in modules, and in the classes and objects that stand there."""
    for name, module in list(sys.modules.items()):
        if f"{name}.".startswith("portico.") or name.rpartition(".")[2].startswith("test_"):
            for value in list(vars(module).values()):
                inner = () if isinstance(value, ModuleType) else list(getattr(value, "__dict__", {}).values())
                yield from (one for one in (value, *inner) if type(one) is _CACHE)


def _package_of(name: str) -> str:
    return name.rpartition(".")[0].rpartition(".")[0]
