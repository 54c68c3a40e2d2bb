"""`portico new` and its templates: what is made works before its author changes a line."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given, settings, strategies as st

from portico.ports import PORTS
from portico_cli.commands.new import (
    KINDS,
    LONGEST,
    Kind,
    PackageName,
    fill_template,
    make_folder,
    package_name,
    refuse_taken,
    template_folder,
)
from portico_cli.failures import Misused

# One for each kind: of one letter, of words and digits that sounds like a test, of the greatest length, and one that is
# a word of Python.
ODD_NAMES = {"connector": "q", "planner": "test2-go-4u", "adapter": "n" * LONGEST, "plugin": "import"}

OWN_NAMES = {"connector": "my-search", "planner": "my-way", "adapter": "my-words", "plugin": "my-own"}

# What shows that the new package did it.
SEEN: dict[str, Callable[[Any], bool]] = {
    "connector": lambda said: "ninety" in said["answer"] and "my-search.example" in said["citations"][0]["link"],
    "planner": lambda said: said["planner"] == "my-way" and "door is red" in said["answer"],
    "adapter": lambda said: said["service"] == "my-words" and "door is red" in said["answer"],
    "plugin": lambda said: "mine-define" in [function["name"] for function in said["functions"]],
}

kinds = st.sampled_from(sorted(KINDS))
words = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=9)
names = (
    st.lists(words, min_size=1, max_size=5)
    .map("-".join)
    .filter(lambda name: name[0].isalpha() and len(name) <= LONGEST and "acme" not in name)
    .filter(lambda name: not name.startswith("portico-") and not name.endswith("-planner"))
)


def installed(site: Path, *packages: Path) -> dict[str, str]:
    """Return an environment in which packages are installed, as `pip install -e` would leave them."""
    for package in packages:
        write_installation(site, package)
    own = {"PYTHONDONTWRITEBYTECODE": "1", "HYPOTHESIS_STORAGE_DIRECTORY": str(site / "hypothesis")}
    paths = [*(str(package / "src") for package in packages), str(site)]
    return os.environ | own | {"PYTHONPATH": os.pathsep.join(paths)}


def write_installation(site: Path, package: Path) -> None:
    """Write what an installer notes of a package."""
    project = tomllib.loads((package / "pyproject.toml").read_text("utf-8"))["project"]
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    metadata = [
        "Metadata-Version: 2.4",
        *(f"{key}: {project[field]}" for key, field in (("Name", "name"), ("Version", "version"))),
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Classifier: {line}" for line in project["classifiers"]),
        *(f"Requires-Dist: {line}" for line in project["dependencies"]),
        "Description-Content-Type: text/markdown",
    ]
    readme = (package / project["readme"]).read_text("utf-8")
    (info / "METADATA").write_text("\n".join(metadata) + f"\n\n{readme}", "utf-8")
    groups = project["entry-points"].items()
    points = [f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in found.items()) for group, found in groups]
    (info / "entry_points.txt").write_text("\n".join(points), "utf-8")
    (info / "INSTALLER").write_text("pip\n", "utf-8")


def made(folder: Path, kind: str, name: str) -> Path:
    """Make a package in a folder of its own."""
    package = package_name(name, KINDS[kind])
    make_folder(folder / package.distribution, fill_template(package))
    return folder / package.distribution


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let git know nobody, whoever runs the tests."""
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)


class TestTemplates:
    """They stand where they are as packages called acme."""

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_package_called_acme_is_the_template_itself(self, kind: str) -> None:
        folder = template_folder(KINDS[kind])
        for path, text in fill_template(PackageName("acme", KINDS[kind])).items():
            assert text == (folder / path).read_text("utf-8"), path

    @pytest.mark.parametrize("kind", KINDS)
    def test_it_needs_core_and_nothing_else(self, kind: str) -> None:
        project = tomllib.loads((template_folder(KINDS[kind]) / "pyproject.toml").read_text("utf-8"))
        assert project["project"]["dependencies"] == ["portico-core>=0.1"]
        assert project["dependency-groups"]["test"] == ["portico-testkit>=0.1"]

    @pytest.mark.parametrize("kind", KINDS)
    def test_every_setting_is_in_the_table_of_its_readme(self, kind: str) -> None:
        folder = template_folder(KINDS[kind])
        (config,) = folder.glob("src/*/config.py")
        (settings_class,) = (node for node in ast.parse(config.read_text()).body if isinstance(node, ast.ClassDef))
        fields = [node.target.id for node in settings_class.body if isinstance(node, ast.AnnAssign)]
        listed = re.findall(r"^\| `(\w+)` \|", (folder / "README.md").read_text("utf-8"), re.MULTILINE)
        assert listed == fields


class TestMadePackages:
    def test_their_own_tests_pass(self, tmp_path: Path) -> None:
        # One process for all of them: they have the same settings of pytest, and most of the time goes into its start.
        packages = [made(tmp_path, kind, name) for kind, name in ODD_NAMES.items()]
        projects = [tomllib.loads((package / "pyproject.toml").read_text("utf-8")) for package in packages]
        options, *others = (project["tool"]["pytest"]["ini_options"] for project in projects)
        assert all(other == options for other in others)
        assert set(options["testpaths"]) == {"src", "tests"}
        pytest_here = ["-m", "pytest", "-p", "no:cacheprovider", "-c", packages[0] / "pyproject.toml"]
        done = subprocess.run(
            # The whole folders, as `pytest .` takes them: with noxfile.py, which must not be imported.
            [sys.executable, *pytest_here, "--rootdir", tmp_path, *packages],
            cwd=tmp_path,
            env=installed(tmp_path / "site", *packages),
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert done.returncode == 0, f"pytest ends with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        for package in packages:
            assert f"{package.name}/tests/test_contract.py" in done.stdout, f"nothing of {package.name} was run"

    @given(kinds, names)
    @example("connector", "my-search")
    @example("plugin", "my-functions")
    def test_nothing_of_the_template_is_left_and_everything_compiles(self, kind: str, name: str) -> None:
        package = package_name(name, KINDS[kind])
        files = fill_template(package)
        for path, text in files.items():
            assert "acme" not in f"{path}{text}".lower(), f"{path} still says acme"
            if path.suffix == ".py":
                compile(text, str(path), "exec", dont_inherit=True)
        project = tomllib.loads(files[PurePosixPath("pyproject.toml")])["project"]
        assert project["name"] == package.distribution
        assert "authors" not in project
        (point,) = project["entry-points"]["portico"].items()
        assert point == (package.distribution.removeprefix("portico-"), f"{package.module}._plugin")
        plugin = files[PurePosixPath(f"src/{package.module}/_plugin.py")]
        assert f'name="{name}"' in plugin
        for module, attribute in re.findall(r'"(portico_\w+\.\w+):(\w+)"', plugin):
            source = files[PurePosixPath(f"src/{module.replace('.', '/')}.py")]
            assert f"class {attribute}" in source, f"{module} has no {attribute}"

    @pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="ruff is not installed")
    @settings(max_examples=15)
    @given(kinds, names)
    @example("connector", "n" * LONGEST)
    @example("planner", "n" * LONGEST)
    @example("plugin", "n" * LONGEST)
    @example("connector", "my-search")
    def test_style_and_format_do_not_depend_on_the_name(self, kind: str, name: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            package = made(Path(folder), kind, name)
            for command in (("check",), ("format", "--check")):
                ruff = [sys.executable, "-m", "ruff", *command, "--no-cache", str(package)]
                done = subprocess.run(ruff, capture_output=True, text=True, check=False)
                assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"

    def test_what_each_says_to_try_works_without_any_configuration(
        self, in_process: Any, portico: Any, tmp_path: Path, folder: Path
    ) -> None:
        made_here = {kind: in_process("new", kind, name, "--json").json for kind, name in OWN_NAMES.items()}
        # All are installed at once: what one brings is no matter of the others.
        environment = installed(tmp_path / "made", *(Path(each["folder"]) for each in made_here.values()))
        for kind, each in made_here.items():
            if (docs := Path(each["folder"]) / "docs").exists():
                shutil.copytree(docs, folder / "docs", dirs_exist_ok=True)
            variables, command = re.split(r"(?=portico )", each["attempt"], maxsplit=1)
            own = dict(variable.split("=", 1) for variable in shlex.split(variables))
            done = portico(*shlex.split(command)[1:], "--json", env=environment | own)
            assert done.code == 0, f"{kind}: {done.err}"
            assert SEEN[kind](done.json), f"{kind}: {done.out}"
        packages = portico("plugins", "--json", env=environment).json["packages"]
        listed = {package["distribution"]: package for package in packages}
        for kind, each in made_here.items():
            package = listed[each["distribution"]]
            assert (package["state"], package["problem"]) == ("ok", None)
            assert [offer["name"] for offer in package["offers"]] == [OWN_NAMES[kind]]


SEARCH, PLUGIN, PROJECT = "search.py", "_plugin.py", "../../pyproject.toml"
RETURN = "return SearchResults(found[options.skip : options.skip + options.top])"
SITE = "self._settings.site"
RESULT = f'return TextSearchResult(record.body, record.title, f"{{{SITE}}}/{{record.slug}}")'
INIT = "__init__(self, settings: {name}Settings, services: Services | None)"
# What an author writes instead of what the template has, and the sentence about it; {name} begins the classes.
MISTAKES = {
    "a list": (SEARCH, RETURN, "return found", "{name}Search.fetch returned a list: return SearchResults"),
    "no async": (SEARCH, "async def fetch", "def fetch", "{name}Search.fetch gave a SearchResults .*`async def`"),
    "a yield": (SEARCH, RETURN, "yield found[0]", "{name}Search.fetch gave an async_generator .*without `yield`"),
    "dicts": (SEARCH, RETURN, "return SearchResults([{{}}])", "{name}Search.fetch gave a dict as a record: give"),
    "no skip": (SEARCH, RETURN, "return SearchResults(found)", r"{name}Search must leave out options\.skip results"),
    "a dict": (SEARCH, RESULT, "return {{}}", "{name}Search.to_result returned a dict: return TextSearchResult"),
    "unset": (SEARCH, SITE, "self._settings.web", r"{name}Search.to_result raised .*'web'\. Add this setting"),
    "odd init": (SEARCH, INIT, "__init__(self, key: str)", r"{name}Search.__init__.* with \(settings, services\)"),
    "no name": (SEARCH, 'name = "', 'title = "', "{name}Search lacks name: say name ="),
    "no base": (SEARCH, "(SearchConnector[{name}Page])", "", "{name}Search lacks capabilities.*: subclass SearchCon"),
    "a stall": (
        SEARCH,
        "asked = _words",
        "asked = __import__('time').sleep(0.01) or _words",
        r"time\.sleep.*to_thread.*search.py",
    ),
    "misspelt": (PLUGIN, ":{name}Search", ":{name}Serch", "'portico_.*:{name}Serch', which is not there.* its hook"),
    "odd hook": (PLUGIN, "portico_text_searches", "portico_searches", "portico_searches is no hook; is it portico_"),
    "lost": (PROJECT, "._plugin", ".plugin", "No module named 'portico_.*plugin'. Correct it in pyproject.toml"),
}


def test_each_usual_mistake_of_an_author_is_one_failure_of_one_sentence(tmp_path: Path) -> None:
    packages = {mistake: made(tmp_path, "connector", mistake.replace(" ", "-")) for mistake in MISTAKES}
    for mistake, (file, written, wrong, _) in MISTAKES.items():
        [folder] = packages[mistake].glob("src/*")
        name = PackageName(mistake.replace(" ", "-"), KINDS["connector"]).class_prefix
        text = (folder / file).read_text("utf-8")
        right = written.replace("{name}", name)
        assert right in text, mistake
        (folder / file).write_text(text.replace(right, wrong.format(name=name)), "utf-8")
    report = tmp_path / "report.xml"
    # In the order of `testpaths`.
    paths = [package / part for package in packages.values() for part in ("tests", "src")]
    options = ["-p", "no:cacheprovider", "-c", packages["lost"] / "pyproject.toml", "--rootdir", tmp_path]
    subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--junit-xml={report}", *paths],
        cwd=tmp_path,
        env=installed(tmp_path / "site", *packages.values()),
        capture_output=True,
        timeout=110,
        check=False,
    )
    failed: dict[str, list[str]] = {mistake: [] for mistake in MISTAKES}
    for case in ET.parse(report).iter("testcase"):
        mistake = case.attrib["classname"].partition(".")[0].removeprefix("portico-").replace("-", " ")
        failed[mistake] += [(found.text or "") for kind in ("failure", "error") for found in case.findall(kind)]
    for mistake, (*_, said) in MISTAKES.items():
        name = PackageName(mistake.replace(" ", "-"), KINDS["connector"]).class_prefix
        assert len(failed[mistake]) == 1, f"{mistake}: {failed[mistake]}"
        assert re.fullmatch(f".*{said.format(name=name)}.*", failed[mistake][0]), f"{mistake}: {failed[mistake]}"


class TestNames:
    @given(kinds, names)
    def test_every_way_to_write_a_name_means_the_same(self, kind: str, name: str) -> None:
        package = PackageName(name, KINDS[kind])
        ways = {
            name,
            name.upper(),
            name.replace("-", "_"),
            name.replace("-", "."),
            name.replace("-", " "),
            name.replace("-", "--"),
            f"portico-{name}",
            f"Portico_{name}",
            package.distribution,
            package.module,
        }
        assert {package_name(way, KINDS[kind]) for way in ways} == {package}

    @given(kinds, names)
    def test_its_forms_are_names_for_pip_for_imports_and_for_classes(self, kind: str, name: str) -> None:
        package = package_name(name, KINDS[kind])
        assert re.fullmatch(r"portico(-[a-z0-9]+)+", package.distribution)
        assert package.module.isidentifier()
        assert package.class_prefix.isidentifier()
        assert package.class_prefix[0].isupper()

    @given(kinds, words)
    def test_no_class_is_called_as_pytest_calls_tests(self, kind: str, rest: str) -> None:
        for name in (f"test{rest}", f"test-{rest}"):
            assert not PackageName(name, KINDS[kind]).class_prefix.startswith("Test")

    @pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
    def test_a_name_that_says_what_it_is_does_not_say_it_twice_in_classes(self, kind: Kind) -> None:
        noun = kind.noun.lower()
        assert PackageName(f"my-{noun}", kind).class_prefix == "My"
        assert PackageName(f"my{noun}", kind).class_prefix == f"My{noun}"
        assert PackageName(noun, kind).class_prefix == kind.noun

    @given(kinds, st.text(max_size=60))
    def test_any_text_is_a_name_or_is_refused(self, kind: str, text: str) -> None:
        try:
            package = package_name(text, KINDS[kind])
        except Misused as refusal:
            assert refusal.message.endswith((".", "?"))
        else:
            assert package == package_name(package.distribution, KINDS[kind])

    @pytest.mark.parametrize(
        ("given_name", "said"),
        [
            ("", "begins with a letter"),
            ("portico-", "begins with a letter"),
            ("3d", "begins with a letter"),
            ("my search!", "English letters"),
            ("Übersetzung", "English letters"),
            ("../up", "English letters"),
            ("-", "begins with a letter"),
            ("a" * 31, "30 characters at most"),
        ],
    )
    def test_what_cannot_be_a_name_is_refused(self, in_process: Any, folder: Path, given_name: str, said: str) -> None:
        done = in_process("new", "connector", "--", given_name)
        assert done.code == 2
        assert said in done.err
        assert list(folder.iterdir()) == []

    @pytest.mark.parametrize(
        ("kind", "name", "said"),
        [
            ("connector", "documents", "portico_documents"),
            ("planner", "retrieval", "portico-basics"),
            ("adapter", "cli", "portico_cli"),
            ("adapter", "testkit", "portico_testkit"),
            ("connector", "shelf", "portico-shelf"),
            ("connector", "text_searches", "hook"),
            ("plugin", "functions", "portico.toml"),
            ("planner", "planner", "portico.toml"),
            ("adapter", "chat-service", "portico.toml"),
            ("planner", "use", "portico.toml"),
            ("adapter", "none", "portico.toml"),
        ],
    )
    def test_a_name_that_is_taken_is_told_of(
        self, in_process: Any, folder: Path, kind: str, name: str, said: str
    ) -> None:
        done = in_process("new", kind, name)
        assert done.code == 2
        assert said in done.err
        assert "Choose another name." in done.err
        assert list(folder.iterdir()) == []

    def test_no_hook_and_no_table_can_be_a_name(self) -> None:
        for port in PORTS:
            for word in (port.hook, port.table, port.name, port.noun.replace(" ", "-"), port.key):
                with pytest.raises(Misused, match="Choose another name"):
                    refuse_taken(package_name(word, KINDS["connector"]))
