"""The plugin for pytest costs nothing where no kit is used, and holds a kit to its rules where one is."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from portico_testkit.schema_validator import SchemaValidatorKit
from portico_testkit.vector_store import VectorStoreKit

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

    @pytest.mark.fuzz
    def test_it_is_text(self, poem):
        assert poem
"""
PLUGINS = ("-p", "pytest_asyncio.plugin", "-p", "portico_testkit.pytest_plugin")
OPTIONS = (*PLUGINS, "-p", "no:cacheprovider", "--strict-markers", "-ra")
INI = "[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n"


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    # So that it makes no difference whether the plugin is installed here as well.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(poem_kit=KIT)
    pytester.syspathinsert()
    return Project(pytester)


class Project:
    """An author's project with one file of tests."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester

    def run(self, body: str, *options: str, mode: str = "strict") -> pytest.RunResult:
        source = f"import asyncio\nimport pytest\nfrom poem_kit import PoemKit\n\n{body}"
        self.pytester.makepyfile(test_contract=source)
        return self.again(*options, mode=mode)

    def again(self, *options: str, mode: str = "strict") -> pytest.RunResult:
        self.pytester.makeini(f"{INI}asyncio_mode = {mode}\n")
        return self.pytester.runpytest_inprocess(*OPTIONS, *options)

    def refusal(self, body: str) -> str:
        """Return what is said of a class that is not collected."""
        result = self.run(body)
        assert result.ret == pytest.ExitCode.INTERRUPTED, f"it was collected:\n{result.stdout}"
        assert result.parseoutcomes() == {"errors": 1} or result.parseoutcomes() == {"error": 1}
        return "\n".join(result.outlines)


POEM = """
    @pytest.fixture
    def poem(self):
        return "Good night"
"""


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_a_kit_runs_in_either_mode_of_pytest_asyncio(project: Project, mode: str) -> None:
    body = "class TestLimerick(PoemKit):" + POEM.replace("def poem", "async def poem")
    project.run(body, mode=mode).assert_outcomes(passed=3)


def test_a_fixture_that_is_an_asynchronous_generator_is_closed_in_strict_mode(project: Project) -> None:
    body = """
closed = []

class TestLimerick(PoemKit):
    @pytest.fixture
    async def poem(self):
        yield "Good night"
        await asyncio.sleep(0)
        closed.append(True)

def test_each_was_closed():
    assert closed == [True] * 3
"""
    project.run(body).assert_outcomes(passed=4)


def test_a_fixture_of_a_module_is_made_for_a_kit_too(project: Project) -> None:
    body = "@pytest.fixture\nasync def poem():\n    return 'Good night'\n\nclass TestLimerick(PoemKit):\n    pass\n"
    project.run(body).assert_outcomes(passed=3)


def test_asynchronous_tests_of_ones_own_run_in_strict_mode_too(project: Project) -> None:
    body = f"""
class TestLimerick(PoemKit):
    {POEM}
    async def test_it_is_the_night(self, poem):
        await asyncio.sleep(0)
        assert "day" in poem
"""
    result = project.run(body)
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*assert 'day' in 'Good night'*"])


def test_a_mark_that_says_which_event_loop_stands(project: Project) -> None:
    body = f"""
class TestLimerick(PoemKit):
    pytestmark = pytest.mark.asyncio(loop_scope="class")
    loops = set()
    {POEM}
    async def test_one(self):
        self.loops.add(asyncio.get_running_loop())

    async def test_two(self):
        self.loops.add(asyncio.get_running_loop())
        assert len(self.loops) == 1
"""
    project.run(body, "-k", "one or two").assert_outcomes(passed=2, deselected=3)


def test_an_asynchronous_property_runs_in_strict_mode_too(project: Project) -> None:
    body = f"""
from hypothesis import given, strategies as st

class TestLimerick(PoemKit):
    poem = "Good night"
    {POEM}
    @given(st.integers(0, 3))
    async def test_it_holds(self, number):
        await asyncio.sleep(0)
        assert number < 3
"""
    result = project.run(body)
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*assert 3 < 3*"])


def test_fixtures_attributes_and_tests_of_ones_own_are_free(project: Project) -> None:
    body = f"""
class TestLimerick(PoemKit):
    longest = 5
    {POEM}
    def test_it_is_longer_than_its_word(self, poem):
        assert len(poem) > self.longest

    @pytest.mark.xfail(reason="limericks are English")
    def test_it_is_german(self, poem):
        assert poem == "Gute Nacht"
"""
    project.run(body).assert_outcomes(passed=4, xfailed=1)


def test_an_attribute_whose_name_begins_as_that_of_a_test_is_free(project: Project) -> None:
    body = f"""
class FoldedKit(PoemKit):
    tests = None

    def testedAsWell(self): ...

class TestLimerick(FoldedKit):
    tests = "here"
    {POEM}
"""
    project.run(body).assert_outcomes(passed=4)
    said = project.refusal(f"{body}\n    testedAsWell = None\n")
    assert "testedAsWell is None here" in said


def test_classes_that_subclass_no_kit_are_left_alone(project: Project) -> None:
    body = """
class TestBase:
    def test_one(self):
        assert True

@pytest.mark.xfail
class TestMore(TestBase):
    def test_one(self):
        assert False

    @pytest.mark.xfail
    def test_two(self):
        assert False
"""
    project.run(body).assert_outcomes(passed=1, xfailed=2)


def test_classes_that_are_no_kits_may_be_named_as_one(project: Project) -> None:
    body = """
import unittest

class TestSewingKit:
    def test_one(self):
        assert True

class TestLargeSewingKit(TestSewingKit):
    def test_one(self):
        assert True

class DoorKit(unittest.TestCase):
    def test_one(self):
        self.fail("this one is overridden")

class TestDoors(DoorKit):
    def setUp(self):
        self.open = True

    def test_one(self):
        self.assertTrue(self.open)

del DoorKit
"""
    project.run(body).assert_outcomes(passed=3)


SUPER = "super().test_it_is_short(poem)"
OVERRIDES = {
    "no mark": ("", SUPER, 'overrides a standard test of PoemKit. Mark it with pytest.mark.xfail(reason="…")'),
    "skip": ('@pytest.mark.skip(reason="too long")', "pass", "overrides a standard test of PoemKit"),
    "skipif": ('@pytest.mark.skipif(True, reason="too long")', "pass", "overrides a standard test of PoemKit"),
    "no reason": ("@pytest.mark.xfail", SUPER, "has xfail without a reason"),
    "an empty reason": ('@pytest.mark.xfail(reason=" ")', SUPER, "has xfail without a reason"),
    "another test": ('@pytest.mark.xfail(reason="long")', "assert False", f"Call {SUPER.replace('poem', '…')} in it"),
    "not run, perhaps": ('@pytest.mark.xfail(False, reason="long", run=False)', "pass", "or say run=False"),
}
EXPECTED = '@pytest.mark.xfail(reason="long")'


@pytest.mark.parametrize("case", OVERRIDES)
def test_an_override_is_refused(project: Project, case: str) -> None:
    mark, statement, expected = OVERRIDES[case]
    said = project.refusal(
        f"class TestLimerick(PoemKit):{POEM}\n    {mark}\n    def test_it_is_short(self, poem):\n        {statement}\n"
    )
    assert "TestLimerick: test_it_is_short" in said
    assert expected in said


@pytest.mark.parametrize("parameters", ["self, peom", "self", "self, *fixtures", "self, **poem"])
def test_an_override_takes_the_fixtures_of_what_it_overrides(project: Project, parameters: str) -> None:
    said = project.refusal(
        f"class TestLimerick(PoemKit):{POEM}\n    {EXPECTED}\n    def test_it_is_short({parameters}):\n"
        "        super().test_it_is_short('Good night')\n"
    )
    assert "TestLimerick: test_it_is_short does not take poem, as the test of PoemKit does" in said


def test_an_override_may_take_fixtures_besides(project: Project) -> None:
    body = f"""
class TestLimerick(PoemKit):{POEM}
    @staticmethod
    {EXPECTED}
    def test_it_is_text(poem, tmp_path):
        PoemKit().test_it_is_text("")

    {EXPECTED}
    def test_it_is_short(self, *, tmp_path, poem):
        super().test_it_is_short(str(tmp_path))
"""
    project.run(body).assert_outcomes(passed=1, xfailed=2)


def test_a_fixture_that_nobody_has_is_not_the_failure_that_is_expected(project: Project) -> None:
    body = f"""
class TestLimerick(PoemKit):{POEM}
    {EXPECTED}
    def test_it_is_short(self, poem, tmp_paht):
        super().test_it_is_short(poem)

    {EXPECTED}
    def test_my_own(self, peom):
        pass
"""
    result = project.run(body)
    result.assert_outcomes(passed=2, errors=2)
    result.stdout.fnmatch_lines(["*fixture 'tmp_paht' not found*", "*fixture 'peom' not found*"])


def test_an_override_of_a_test_with_parameters_has_them_too(project: Project) -> None:
    kit = (
        KIT
        + """
    @pytest.mark.parametrize("times", [1, 2])
    def test_it_can_be_repeated(self, poem, times):
        assert len(poem * times) < 15
"""
    )
    project.pytester.makepyfile(poem_kit=kit)
    again = """
    @pytest.mark.xfail(reason="it is long")
    def test_it_can_be_repeated(self, poem, times):
        super().test_it_can_be_repeated(poem, times)
"""
    project.run(f"class TestLimerick(PoemKit):{POEM}{again}").assert_outcomes(passed=3, errors=1)
    marked = again.replace("@", '@pytest.mark.parametrize("times", [2])\n    @')
    project.run(f"class TestLimerick(PoemKit):{POEM}{marked}").assert_outcomes(passed=3, xfailed=1)


@pytest.mark.parametrize(
    ("mark", "statement"),
    [
        ('xfail(reason="this one is longer")', "super().test_it_is_short(poem * 9)"),
        ('xfail(True, reason="this one is longer", raises=AssertionError)', "super().test_it_is_short(poem * 9)"),
        ('xfail(reason="it never ends", run=False)', "..."),
    ],
)
def test_an_override_with_its_reason_is_collected_and_told(project: Project, mark: str, statement: str) -> None:
    body = f"""
class TestLimerick(PoemKit):{POEM}
    @pytest.mark.{mark}
    def test_it_is_short(self, poem):
        {statement}

    @pytest.mark.xfail(reason="there is a bug")
    async def test_it_rhymes(self, poem):
        await super().test_it_rhymes("Good day")
"""
    result = project.run(body)
    result.assert_outcomes(passed=1, xfailed=2)
    # Without a loop it would fail too, for another reason.
    result.stdout.fnmatch_lines(["XFAIL *test_it_rhymes* - there is a bug"])
    detailed = project.run(body, "--runxfail")
    detailed.stdout.fnmatch_lines(["*poem = 'Good day'*"])


SHORT = "\n    def test_it_is_short(self): ...\n\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("class TestLimerick(PoemKit):\n    test_it_is_short = None\n", "a standard test of PoemKit is not taken out"),
        (
            "@pytest.mark.xfail(reason='not yet')\nclass TestLimerick(PoemKit):\n    pass\n",
            "xfail on the class would hide every failure",
        ),
        (
            "pytestmark = pytest.mark.xfail(reason='not yet')\n\nclass TestLimerick(PoemKit):\n    pass\n",
            "xfail on the module would hide every failure",
        ),
        ("@pytest.mark.skipif(True, reason='')\nclass TestLimerick(PoemKit):\n    pass\n", "has no reason"),
        (
            f"class Changed(PoemKit):{SHORT}class TestLimerick(Changed): ...\n",
            "test_it_is_short overrides a standard test of PoemKit",
        ),
        (
            f"class MyKit(PoemKit):{SHORT}class TestLimerick(MyKit): ...\n",
            "test_it_is_short overrides a standard test of PoemKit",
        ),
        (
            f"class Mixed:{SHORT}class TestLimerick(Mixed, PoemKit): ...\n",
            "test_it_is_short overrides a standard test of PoemKit",
        ),
    ],
)
def test_there_is_no_way_around_a_standard_test(project: Project, body: str, expected: str) -> None:
    assert expected in project.refusal(body)


def test_every_mistake_of_a_class_is_told_at_once_and_other_classes_are_collected(project: Project) -> None:
    body = f"""
class TestLimerick(PoemKit):
    def test_it_is_short(self, poem): ...
    def test_it_rhymes(self, poem): ...

class TestSonnet(PoemKit):{POEM}
"""
    said = project.refusal(body)
    assert "test_it_is_short overrides" in said
    assert "test_it_rhymes overrides" in said
    project.run(body, "--continue-on-collection-errors").assert_outcomes(passed=3, errors=1)


def test_a_kit_may_change_what_a_kit_of_its_own_package_asks(project: Project) -> None:
    ode = "class OdeKit(PoemKit):\n    def test_it_is_short(self, poem):\n        assert len(poem) > 20\n"
    project.pytester.makepyfile(poem_kit=KIT + ode)
    poem = POEM.replace("Good night", "O, what a very good night")
    body = f"from poem_kit import OdeKit\n\nclass TestOde(OdeKit):{poem}"
    project.run(body).assert_outcomes(passed=3)


def test_the_tests_of_kits_can_be_chosen_by_their_mark(project: Project) -> None:
    body = f"class TestLimerick(PoemKit):{POEM}\n    def test_my_own(self, poem): ...\n\ndef test_another(): ...\n"
    project.run(body, "-m", "portico_kit").assert_outcomes(passed=3, deselected=2)
    project.run(body, "-m", "fuzz").assert_outcomes(passed=1, deselected=4)
    project.run(body, "--markers").stdout.fnmatch_lines(["@pytest.mark.fuzz: *", "@pytest.mark.portico_kit: *"])


REAL = """
import pytest
from portico.schemas import PlainSchemaValidator
from portico_testkit.schema_validator import SchemaValidatorKit

class TestMine(SchemaValidatorKit):
    @pytest.fixture
    def schema_validator(self):
        return PlainSchemaValidator()
"""


def test_kits_of_this_package_are_held_to_the_rules_too(project: Project) -> None:
    name = SchemaValidatorKit.test_odd_values_are_judged_like_any.__name__
    project.pytester.makepyfile(test_contract=f"{REAL}\n    def {name}(self): ...\n")
    project.again().stdout.fnmatch_lines([f"TestMine: {name} overrides a standard test of SchemaValidatorKit. *"])
    project.pytester.makepyfile(test_contract=REAL)
    assert project.again().ret == pytest.ExitCode.OK


def test_a_kit_that_has_parts_is_told_by_its_own_name(project: Project) -> None:
    name = VectorStoreKit.test_writes_are_seen_whole.__name__
    assert name not in vars(VectorStoreKit)
    kit = "from portico_testkit.vector_store import VectorStoreKit"
    body = f"{kit}\n\nclass TestMine(VectorStoreKit):\n    {name} = None\n"
    assert "a standard test of VectorStoreKit is not taken out" in project.refusal(body)


@pytest.mark.parametrize("instead", ["lambda self: None", "None"])
def test_a_kit_of_this_package_is_not_changed_from_outside(
    project: Project, monkeypatch: pytest.MonkeyPatch, instead: str
) -> None:
    name = SchemaValidatorKit.test_odd_values_are_judged_like_any.__name__
    monkeypatch.setattr(SchemaValidatorKit, name, getattr(SchemaValidatorKit, name))  # to be put back afterwards
    kit = "portico_testkit.schema_validator"
    project.pytester.makeconftest(f"from {kit} import SchemaValidatorKit\nSchemaValidatorKit.{name} = {instead}")
    project.pytester.makepyfile(test_contract=REAL)
    said = f"TestMine: {name} of SchemaValidatorKit was replaced from outside, for every class. *"
    project.again().stdout.fnmatch_lines([said])


@pytest.mark.parametrize(
    ("mark", "kind"),
    [
        ('skip(reason="not now")', "skip"),
        ('skipif(True, reason="not now")', "skipif"),
        ('xfail(reason="not now")', "xfail"),
        ('xfail(reason="not now", run=False)', "xfail"),
    ],
)
def test_a_test_of_a_kit_of_this_package_is_not_marked_from_outside(
    project: Project, monkeypatch: pytest.MonkeyPatch, mark: str, kind: str
) -> None:
    test = SchemaValidatorKit.test_odd_values_are_judged_like_any
    monkeypatch.setattr(test, "pytestmark", list(getattr(test, "pytestmark", ())), raising=False)
    kit = "portico_testkit.schema_validator"
    outside = f"pytest.mark.{mark}(SchemaValidatorKit.{test.__name__})"
    project.pytester.makeconftest(f"import pytest\nfrom {kit} import SchemaValidatorKit\n{outside}")
    project.pytester.makepyfile(test_contract=REAL)
    said = f"TestMine: {test.__name__} of SchemaValidatorKit was given {kind} from outside, for every class. *"
    project.again().stdout.fnmatch_lines([said])


def test_a_kit_of_this_package_is_not_marked_from_outside(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SchemaValidatorKit, "pytestmark", [], raising=False)
    kit = "from portico_testkit.schema_validator import SchemaValidatorKit"
    project.pytester.makeconftest(f"import pytest\n{kit}\npytest.mark.skip(reason='not now')(SchemaValidatorKit)")
    project.pytester.makepyfile(test_contract=REAL)
    said = "TestMine: SchemaValidatorKit was given skip from outside, for every class. *"
    project.again().stdout.fnmatch_lines([said])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text(INI, "utf-8")
    return tmp_path


def started(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own: in this one, the kits are imported already."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_a_failure_in_a_kit_shows_both_sides(folder: Path) -> None:
    body = (
        REAL.replace("return Plain", "return Misnamed")
        + """

class MisnamedSchemaValidator(PlainSchemaValidator):
    name = "plain "
    compile = lambda self, schema: PlainSchemaValidator.compile(self, {})
"""
    )
    (folder / "test_contract.py").write_text(body, "utf-8")
    run = started(folder, "-m", "pytest", "-q", *OPTIONS, "-k", "too_deep")
    assert run.returncode == 1, run.stdout + run.stderr
    assert re.search(r"^E +(AssertionError: )?assert \[\] == \['\$\[0\]", run.stdout, re.MULTILINE), (
        f"no sides are shown:\n{run.stdout}"
    )


def test_loading_it_imports_nothing_but_the_standard_library(folder: Path) -> None:
    script = (
        "import json, sys, pytest; before = set(sys.modules)\n"
        "import portico_testkit.pytest_plugin\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    run = started(folder, "-c", script)
    assert run.returncode == 0, run.stderr
    new = set(json.loads(run.stdout)) - sys.stdlib_module_names
    kits = {name for name in new if not name.startswith("portico_testkit._")}
    assert kits == {"portico_testkit", "portico_testkit.pytest_plugin"}


def test_a_project_without_kits_does_not_wait_for_what_kits_import(folder: Path) -> None:
    body = """
import sys

def test_nothing_heavy_is_there():
    assert {"numpy", "hypothesis", "portico", "jsonschema"} & set(sys.modules) == set()
"""
    (folder / "test_plain.py").write_text(body, "utf-8")
    run = started(folder, "-m", "pytest", "-q", *OPTIONS)
    assert run.returncode == 0, run.stdout + run.stderr
