"""The plugin for pytest holds a class of tests of a kit to the kit's rules, in either mode of pytest-asyncio."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

KIT = """
import asyncio
import pytest

class PoemKit:
    @pytest.mark.asyncio
    async def test_it_rhymes(self, poem):
        await asyncio.sleep(0)
        assert poem.endswith("ight")

    def test_it_is_short(self, poem):
        assert len(poem) < 20
"""
POEM = """
import asyncio
import pytest
from poem_kit import PoemKit

class TestPoem(PoemKit):
    @pytest.fixture
    async def poem(self):
        await asyncio.sleep(0)
        return "Good day"
"""
OPTIONS = ("-p", "pytest_asyncio.plugin", "-p", "portico_testkit.pytest_plugin", "-p", "no:cacheprovider", "-ra")


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> object:
    # So that it makes no difference whether the plugin is installed here as well.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(poem_kit=KIT)
    pytester.syspathinsert()

    def run(body: str, mode: str = "strict") -> pytest.RunResult:
        pytester.makepyfile(test_contract=POEM + body)
        pytester.makeini(
            f"[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\nasyncio_mode = {mode}\n"
        )
        return pytester.runpytest_inprocess(*OPTIONS)

    return run


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_a_kit_with_an_asynchronous_fixture_runs_in_either_mode_of_pytest_asyncio(run, mode):
    run("", mode).assert_outcomes(passed=1, failed=1)


def test_an_override_is_refused(run):
    result = run("    def test_it_rhymes(self, poem): ...\n")
    assert result.parseoutcomes() == {"errors": 1} or result.parseoutcomes() == {"error": 1}
    assert any("test_it_rhymes overrides a standard test of PoemKit" in line for line in result.outlines)


def test_an_override_with_a_reason_is_collected_and_reported(run):
    body = """
    @pytest.mark.xfail(reason="it is prose")
    async def test_it_rhymes(self, poem):
        await super().test_it_rhymes(poem)

    def test_of_ones_own(self, poem): ...
"""
    result = run(body)
    result.assert_outcomes(passed=2, xfailed=1)
    assert any("it is prose" in line for line in result.outlines)


def test_a_failure_in_a_kit_shows_both_sides_of_its_comparison_and_not_the_kit(run):
    body = """
from portico_testkit.fakes.plan_store import MemoryPlanStore
from portico_testkit.plan_store import PlanStoreKit

class Backwards(MemoryPlanStore):
    async def plans(self):
        return (await super().plans())[::-1]

class TestBackwards(PlanStoreKit):
    @pytest.fixture
    def plan_store(self):
        return Backwards()
"""
    result = run(body)
    result.stdout.fnmatch_lines(["assert ['0', '1', '2', '3', '4', '5'] == ['5', '4', '3', '2', '1', '0']"])
    result.stdout.no_fnmatch_line("*async def test_the_newest_come_first*")


def test_what_fails_for_the_same_cause_is_told_once_with_its_place(run):
    body = """
    @pytest.fixture
    async def poem(self):
        return Poet().poem()

class Poet:
    def poem(self):
        return {}["a title"]

def test_beside_the_kit():
    Poet().poem()
"""
    result = run(body)
    result.assert_outcomes(errors=1, skipped=2)
    result.stdout.fnmatch_lines(["Poet.poem raised KeyError: 'a title' (test_contract.py:*)"])
