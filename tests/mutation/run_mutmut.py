"""Run mutmut in this folder on the mutants of some modules that are not checked yet: `run_mutmut.py 2 filter`.

A program of its own, since it must import neither `portico`, which mutmut replaces by the mutated one, nor this
repository's `tests`. mutmut by itself checks what is named again and again, or else everything. It also goes by a
process that has imported everything: each mutant is a fork of that, so that what was called before the fork, at an
import or for a cache, would never be the mutant. See `imports.py` for what is done about both.
"""

from __future__ import annotations

import resource
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

_FIRST = 12
_SECONDS = 10.0
_NOT_RUN = 2
"""pytest's status of a run that was interrupted: it says nothing of the mutant."""


def main(children: int, wanted: list[str]) -> None:
    """Check the mutants of these modules and packages, or all; so many processes at a time."""
    # Here, since pytest reads every file of this folder for examples, and mutmut has an environment of its own.
    import imports
    from mutmut import __main__ as mutmut
    from mutmut.runners.harness import BadTestExecutionCommandsException, PytestRunner
    from mutmut.state import state
    from mutmut.utils.format_utils import get_module_from_key, mangled_name_from_mutant_name

    collect, execute, run_stats, run_tests = (
        mutmut.collect_source_file_mutation_data,
        PytestRunner.execute_pytest,
        PytestRunner.run_stats,
        PytestRunner.run_tests,
    )
    functions_of: Counter[str] = Counter()
    calls = imports.Calls(Path("at-import.json").absolute())

    def collect_wanted(*, mutant_names: Any) -> Any:
        mutants, data = collect(mutant_names=mutant_names)
        return [each for each in mutants if within(get_module_from_key(each[1]))], data

    def within(module: str) -> bool:
        return any(f"{module}.".startswith(f"portico.{name}.") for name in wanted)

    def execute_uncached(self: Any, params: list[str], plugins: Iterable[Any] = ()) -> Any:
        # A file that cannot be read any more is a failure, where pytest would call it interrupted.
        options = ["--continue-on-collection-errors", *params]
        return execute(self, options, plugins=[*plugins, imports.WithoutCaches()])

    def run_stats_with_imports(self: Any, *, tests: Iterable[str]) -> int:
        with calls.recorded(state()) as plugin:
            PytestRunner.execute_pytest = lambda self, params, plugins=(): execute_uncached(
                self, params, [plugin, *plugins]
            )
            try:
                return int(run_stats(self, tests=tests))
            finally:
                PytestRunner.execute_pytest = execute_uncached

    def run_tests_anew(self: Any, *, mutant_name: str | None, tests: Iterable[str]) -> int:
        if not functions_of:  # best before the first fork, in the run of all tests on no mutant
            functions_of.update(Counter(chain.from_iterable(state().tests_by_mangled_function_name.values())))
        if mutant_name is None:
            return int(run_tests(self, mutant_name=None, tests=tests))
        if mangled_name_from_mutant_name(mutant_name) in calls.names():
            imports.forget(Path("mutants").absolute())
        seconds = state().duration_by_test
        for some in tried(list(tests), functions_of, seconds):
            limit(sum(seconds[test] for test in some))
            try:
                status = int(run_tests(self, mutant_name=mutant_name, tests=dict.fromkeys(map(selected, some))))
            except BadTestExecutionCommandsException:
                return _NOT_RUN
            if status:
                return status
        return 0

    if wanted:
        mutmut.collect_source_file_mutation_data = collect_wanted
    PytestRunner.execute_pytest = execute_uncached
    PytestRunner.run_stats = run_stats_with_imports
    PytestRunner.run_tests = run_tests_anew
    mutmut._run((), children)


def tried(tests: list[str], functions: Mapping[str, int], seconds: Mapping[str, float]) -> Iterator[list[str]]:
    """Give the tests of a mutant: first a few that call the fewest functions, which are those that are about it.

    Then the quick ones, up to `_SECONDS` of them all: what survives those is said to survive.
    """
    first = sorted(tests, key=lambda test: (seconds[test] > _SECONDS / 10, functions[test], seconds[test]))[:_FIRST]
    yield first
    spent = sum(seconds[test] for test in first)
    others = []
    for test in sorted(set(tests) - set(first), key=seconds.__getitem__):
        spent += seconds[test]
        if spent > _SECONDS:
            break
        others.append(test)
    if others:
        yield others


def selected(test: str) -> str:
    """Return how pytest is told to run a test: by its function where its name has an escape, which it does not find.

    >>> selected("tests/a.py::test_paths[x/y]"), selected(r"tests/a.py::test_words[caf\\xe9]")
    ('tests/a.py::test_paths[x/y]', 'tests/a.py::test_words')
    """
    return test.partition("[")[0] if "\\" in test else test


def limit(seconds: float) -> None:
    """End this process when it has computed for far longer than its tests take: a mutant that runs without end.

    mutmut's own limit is thirty times what all tests of a mutant take, which is minutes.
    """
    so_far = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    most = int(so_far.ru_utime + so_far.ru_stime + 10 * seconds + 10)
    resource.setrlimit(resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
