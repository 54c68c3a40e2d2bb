"""Who writes a kit subclasses one class, which tells what the kit does not find, and what it finds wrongly."""

from __future__ import annotations

import pytest

from portico_testkit.kit_failures import KnownFaults, kit_failures
from portico_testkit.kit_of_a_kit import KitOfAKit
from portico_testkit.pytest_plugin import is_kit, mistakes_in

pytest_plugins = ["pytester"]

BODY = """
import asyncio
from portico_testkit.kit_failures import KnownFaults
from portico_testkit.kit_of_a_kit import KitOfAKit
from portico_testkit.tasks import in_time

class PoemKit:
    async def test_it_rhymes(self, poem):
        assert poem.text.endswith("ight"), "it does not rhyme"

    def test_it_is_short(self, poem, tmp_path):
        (tmp_path / "poem").write_text(poem.text)
        assert (tmp_path / "poem").stat().st_size < 20, "it is long"

    async def test_it_has_an_end(self, poem):
        await in_time(poem.end(), "it went on")

class Poem:
    text = "Good night"

    async def end(self):
        pass

FAULTS = KnownFaults(PoemKit, lambda kind: {"poem": kind})

@FAULTS.caught_by("it_rhymes", "does not rhyme")
class Prose(Poem):
    text = "Good day"

@FAULTS.caught_by("it_is_short", "long")
class Epic(Poem):
    text = "Good night, good night, good night"

@FAULTS.caught_by("it_has_an_end", r"it went on after 0\\.3 seconds")
class Endless(Poem):
    async def end(self):
        await asyncio.Event().wait()

class TestThePoemKit(KitOfAKit):
    faults = FAULTS
    correct = (Poem,)
"""
OPTIONS = ("-p", "pytest_asyncio.plugin", "-p", "portico_testkit.pytest_plugin", "-p", "no:cacheprovider", "-v")


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    # So that it makes no difference whether the plugin is installed here as well.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(old: str = "", new: str = "") -> pytest.RunResult:
        assert old in BODY
        pytester.makepyfile(test_poem_kit=BODY.replace(old, new, 1) if old else f"{BODY}\n{new}")
        pytester.makeini(
            "[pytest]\nasyncio_mode = strict\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n"
        )
        return pytester.runpytest_inprocess(*OPTIONS)

    return run


def test_each_fault_is_a_test_and_each_correct_one_with_each_test_of_the_kit(run) -> None:
    result = run()
    result.assert_outcomes(passed=3 + 3 + 2)
    caught, right = "test_a_fault_is_caught_by_the_test_that_names_it", "test_nothing_is_wrong_with_what_is_correct"
    result.stdout.fnmatch_lines_random(
        [
            *(
                f"*::TestThePoemKit::{caught}[[]{id}[]] PASSED*"
                for id in ("Prose-test_it_rhymes", "Epic-test_it_is_short")
            ),
            *(
                f"*::TestThePoemKit::{right}[[]Poem-test_it_{id}[]] PASSED*"
                for id in ("rhymes", "is_short", "has_an_end")
            ),
        ]
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"Good day"', '"Goodbye, light"', "test_it_rhymes finds nothing wrong with Prose"),
        ('"does not rhyme"', '"no rhyme"', "test_it_rhymes does not say 'no rhyme' of Prose, but: it does not rhyme"),
        ('@FAULTS.caught_by("it_is_short", "long")', "", "no fault is known that these would catch: test_it_is_short"),
        ('"Good night"', '"Good luck"', "Poem is correct, and test_it_rhymes says: it does not rhyme*"),
        ("    correct = (Poem,)", "", "*TestThePoemKit does not say its correct: correct = (Acme,), *"),
        ("    faults = FAULTS", "", "*TestThePoemKit does not say its faults: faults = FAULTS, *"),
    ],
    ids=["nothing is found", "other words", "no fault", "correct and failing", "no correct ones", "no faults"],
)
def test_what_is_wrong_with_a_kit_is_told(run, old: str, new: str, said: str) -> None:
    result = run(old, new)
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines([f"*{said}*"])


def test_a_broken_one_that_is_in_no_table_is_told(run) -> None:
    result = run("", "class Verse(Poem):\n    pass\n\nclass Limerick(Verse):\n    pass\n")
    result.assert_outcomes(passed=7, failed=1)
    result.stdout.fnmatch_lines(["*in no table, and not among the correct ones: Limerick*"])


def test_a_broken_one_that_a_decorator_makes_anew_is_in_the_table(run) -> None:
    made = "@FAULTS.caught_by('it_rhymes')\n@dataclass(slots=True)\nclass Limerick(Poem):\n    text: str = 'Hello'\n"
    run("", f"from dataclasses import dataclass\n\n{made}").assert_outcomes(passed=9)


def test_a_broken_one_that_has_no_end_stops_only_those_that_name_it(run) -> None:
    result = run("    correct = (Poem,)", "    correct = (Poem,)\n    patience = 0.05")
    result.assert_outcomes(passed=7, failed=1)
    result.stdout.fnmatch_lines(["*it went on after 0.05 seconds*"])


def test_who_subclasses_it_is_held_to_the_rules_of_kits() -> None:
    class TestMine(KitOfAKit):
        def test_each_test_of_the_kit_catches_something(self) -> None: ...

    assert is_kit(KitOfAKit)
    assert [mistake.partition(". ")[0] for mistake in mistakes_in(TestMine)] == [
        "test_each_test_of_the_kit_catches_something overrides a standard test of KitOfAKit"
    ]


async def test_a_kit_that_adds_to_another_is_asked_for_its_own_tests_only() -> None:
    class PoemKit:
        async def test_it_rhymes(self, poem): ...

    class LimerickKit(PoemKit):
        async def test_it_has_five_lines(self, poem): ...

    class TestTheLimerickKit(KitOfAKit):
        faults = KnownFaults(LimerickKit, lambda kind: {"poem": kind}, beyond=PoemKit)
        correct = ()

    found = await kit_failures(TestTheLimerickKit, {}, ["test_each_test_of_the_kit_catches_something"])
    assert list(found.values()) == ["no fault is known that these would catch: test_it_has_five_lines"]
