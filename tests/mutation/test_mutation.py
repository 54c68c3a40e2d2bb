"""The results of mutmut are read right."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st
from tests.mutation.__main__ import report
from tests.mutation.imports import Calls, WithoutCaches
from tests.mutation.results import Mutant, Verdict, changed, modules, results
from tests.mutation.run_mutmut import tried

from portico._plans.xml_form.steps import full_name


@given(*[st.lists(st.sampled_from(["a", "b"]), max_size=4)] * 4)
def test_a_change_is_the_lines_between_the_first_and_the_last_that_differ(
    start: list[str], before: list[str], after: list[str], end: list[str]
) -> None:
    removed, added = changed([*start, *before, *end], [*start, *after, *end])
    assert len(removed) <= len(before)
    assert len(added) <= len(after)
    assert len(before) - len(removed) == len(after) - len(added)
    assert (removed == added == ()) == (before == after)


SOURCE = """\
def x_f__mutmut_orig(a):
    return a + 1
def x_f__mutmut_1(a):
    return a - 1
def x_f__mutmut_2(a):
    return a + 2

class C:
    def xǁCǁg__mutmut_orig(self, b=1):
        return b
    def xǁCǁg__mutmut_1(self, b=2):
        return b
"""


def left_behind(folder: Path, statuses: list[int | None]) -> Path:
    for place, text in {"src": "", "mutants/src": SOURCE}.items():
        file = folder / place / "portico" / "plans" / "one.py"
        file.parent.mkdir(parents=True)
        file.write_text(text, "utf-8")
    names = [
        "portico._plans.one.x_f__mutmut_1",
        "portico._plans.one.x_f__mutmut_2",
        "portico._plans.one.xǁCǁg__mutmut_1",
    ]
    spans = {"x_f__mutmut_orig": (1, 2), "x_f__mutmut_1": (3, 4), "x_f__mutmut_2": (5, 6)}
    spans |= {"xǁCǁg__mutmut_orig": (9, 10), "xǁCǁg__mutmut_1": (11, 12)}
    file.with_suffix(".py.meta").write_text(json.dumps({"exit_code_by_key": dict(zip(names, statuses, strict=True))}))
    file.with_suffix(".py.spans").write_text(json.dumps({"version": 1, "spans": spans}))
    return folder


def test_mutants_are_read_with_their_place_their_lines_and_what_became_of_them(tmp_path: Path) -> None:
    ((module, meta),) = modules(left_behind(tmp_path, [1, 0, None])).items()
    assert list(results(module, meta)) == [
        (Mutant("plans.one:f", ("return a + 1",), ("return a - 1",)), Verdict.KILLED),
        (Mutant("plans.one:f", ("return a + 1",), ("return a + 2",)), Verdict.SURVIVED),
        (Mutant("plans.one:C.g", ("def g(self, b=1):",), ("def g(self, b=2):",)), Verdict.UNCHECKED),
    ]


@pytest.mark.parametrize(
    ("statuses", "share", "wrong"),
    [
        ([1, 1, None], "100.0%", []),
        ([1, -24, 1], "100.0%", []),
        ([1, 33, 3], "66.7%", ["Fewer than 85%"]),
        ([0, 1, 1], "66.7%", ["Fewer than 85%"]),
        ([None, None, None], "-", ["Fewer than 85%"]),
    ],
)
def test_the_share_is_of_what_was_checked_and_too_small_a_one_fails(
    statuses: list[int | None],
    share: str,
    wrong: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("tests.mutation.__main__.FOLDER", left_behind(tmp_path, statuses))
    assert report(["plans"]) == (1 if wrong else 0)
    said = capsys.readouterr()
    assert f" {share}" in said.out
    assert ("plans.one:" in said.out) == (share == "66.7%")
    assert [line[: len(words)] for line, words in zip(said.err.splitlines(), wrong, strict=True)] == wrong
    assert report(["filter"]) == 2


def test_the_whole_fails_with_a_mutant_that_is_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.mutation.__main__.LEAST", 0.5)
    monkeypatch.setattr("tests.mutation.__main__.FOLDER", left_behind(tmp_path, [1, 0, None]))
    assert report(["plans"]) == 0
    assert report([]) == 1
    assert capsys.readouterr().err == "1 are not checked.\n"


@cache
def one_of_a_test() -> str:
    return "kept"


def test_a_test_begins_with_the_caches_of_core_and_of_tests_empty() -> None:
    for kept in (full_name, one_of_a_test):
        kept.cache_clear()
    full_name("Paris")
    one_of_a_test()
    WithoutCaches().pytest_runtest_setup()
    assert [kept.cache_info().currsize for kept in (full_name, one_of_a_test)] == [0, 0]


def test_what_an_import_calls_is_tried_by_the_tests_of_the_file_and_of_its_package(tmp_path: Path) -> None:
    state = SimpleNamespace(
        tests_by_mangled_function_name=defaultdict(
            set, {"portico._plans.limits.x_least": {"first"}, "portico._plans.limits.x_items": {"tests/b.py::limits"}}
        )
    )
    calls = Calls(tmp_path / "at-import.json")
    with calls.recorded(state) as plugin:
        plugin.tests_in["tests/a.py"] = {"tests/a.py::one", "tests/a.py::two"}
        plugin.called["portico._plans.limits.x_least"] = {"tests/c.py"}
        plugin.called["portico._plans.form.x_schema"] = {"tests/a.py"}
        plugin.called["portico._plans.marks.x_all"] = {"tests/c.py"}
    assert state.tests_by_mangled_function_name == {
        "portico._plans.limits.x_least": {"first", "tests/b.py::limits"},
        "portico._plans.limits.x_items": {"tests/b.py::limits"},
        "portico._plans.form.x_schema": {"first", "tests/b.py::limits", "tests/a.py::one", "tests/a.py::two"},
        "portico._plans.marks.x_all": {"first", "tests/b.py::limits"},
    }
    assert Calls(calls.file).names() == plugin.called.keys()


def test_a_mutant_is_tried_by_the_tests_that_are_about_it_first_and_by_slow_ones_last_or_not_at_all() -> None:
    about, quick, slow = ([f"{name}{number}" for number in range(20)] for name in ("about", "quick", "slow"))
    functions = {**dict.fromkeys(about, 2), **dict.fromkeys([*quick, *slow], 300)}
    seconds = {**dict.fromkeys(about, 0.2), **dict.fromkeys(quick, 0.1), **dict.fromkeys(slow, 4.0)}
    first, others = tried([*slow, *quick, *about], functions, seconds)
    assert set(first) < set(about)
    assert set(others) >= {*quick, *about} - set(first)
    assert len(set(others) & set(slow)) == 1  # ten seconds in all
    assert list(tried(slow[:1], functions, seconds)) == [slow[:1]]
