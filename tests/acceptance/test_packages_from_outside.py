"""The plugin author's first hour: packages that live outside this workspace work where they are installed.

Where only built wheels are, `portico new` makes a package of each kind, its tests pass by the commands that it
prints, and whatever it registers is there after its installation, and gone after it is taken away.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.environments import Environment, place_of_uv

# They fetch the build backend from the package index, and run outside the process that refuses connections.
pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]

QUESTION = "How many pounds does the big anvil weigh?"
NOTES = "# Kettle\n\nDescale the kettle with vinegar once a month.\n\n# Lamp\n\nThe lamp takes a bulb of nine watts.\n"
WHAT_IS_OURS = """
import json, portico, portico_cli, portico_testkit
from importlib.metadata import distributions
ours = [each for each in distributions() if each.name.startswith("portico")]
print(json.dumps({each.name: json.loads(each.read_text("direct_url.json"))["url"] for each in ours}))
print(portico.__file__, portico_cli.__file__, portico_testkit.__file__, sep="\\n")
"""
ABOUT_NOTES = ("ask", "How often do I descale the kettle?", "--docs", "notes")


class Author:
    """Somebody at a terminal, in a folder of theirs, with an environment that holds what wheels brought."""

    def __init__(self, outside: Environment, folder: Path) -> None:
        self.outside = outside
        self.folder = folder

    def portico(self, *words: str) -> dict[str, Any]:
        """Return what `portico` says as JSON."""
        said: dict[str, Any] = json.loads(self.outside.run("portico", *words, "--json", folder=self.folder))
        return said

    def refused(self, *words: str) -> str:
        """Return the message of a command that must end as one that is asked for what is not there."""
        said = json.loads(self.outside.run("portico", *words, "--json", folder=self.folder, code=2))
        assert said["error"]["type"] == "PluginNotInstalled", said
        message: str = said["error"]["message"]
        return message

    def configure(self, text: str) -> None:
        (self.folder / "portico.toml").write_text(text, "utf-8")

    def new(self, kind: str) -> dict[str, Any]:
        return self.portico("new", kind, "acme")

    def follow(self, made: dict[str, Any], *, installer: str = "pip") -> str:
        """Enter the commands that `portico new` prints, as they are; the last one runs the tests."""
        enter, install, test = made["commands"]
        installation = install.removeprefix("pip ")
        assert installation != install, f"the second command must be pip's: {install}"
        self.outside.enter(f"{enter} && {installer} {installation}", self.folder, installing=True)
        return self.outside.enter(f"{enter} && {test}", self.folder)

    def listed(self) -> list[str]:
        """Return what the installed packages called acme offer, as `portico plugins` lists it."""
        packages = self.portico("plugins")["packages"]
        ours = [package for package in packages if package["distribution"].startswith("portico-acme")]
        assert [package["state"] for package in ours] == ["ok"] * len(ours)
        return [f"{offer['port']} {offer['name']}" for package in ours for offer in package["offers"]]


@pytest.fixture
def author(outside: Environment, tmp_path: Path) -> Iterator[Author]:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "kettle.md").write_text(NOTES, "utf-8")
    yield Author(outside, tmp_path)
    # Kinds share a name: one that a failed test has left would be found by the next.
    outside.uninstall("portico-acme", "portico-acme-planner")


@pytest.fixture
def installer(outside: Environment) -> str:
    """Name what installs as pip does, faster: it is uv where that is."""
    return "pip" if place_of_uv(outside.installing) is None else "uv pip"


def test_nothing_there_is_from_the_workspace(outside: Environment, wheels: dict[str, Path]) -> None:
    """Whatever is ours came by a wheel, and lies where wheels are unpacked."""
    brought, *places = outside.run("python", "-c", WHAT_IS_OURS).splitlines()
    assert json.loads(brought) == {name: wheel.as_uri() for name, wheel in wheels.items()}
    assert places
    assert [place for place in places if not Path(place).is_relative_to(outside.folder)] == []


@pytest.mark.parametrize("editable", [True, False])
def test_an_installed_connector_is_a_source_without_a_line_of_configuration(author: Author, editable: bool) -> None:
    made = author.new("connector")
    assert author.listed() == []
    if editable:
        assert " passed" in author.follow(made)
    else:
        author.outside.install(made["folder"])
        shutil.rmtree(made["folder"])

    assert author.listed() == ["TextSearch acme"]
    found = author.portico("search", "--source", "acme", QUESTION)["results"]
    assert found[0]["link"] == "https://acme.example/sizes"
    answer = author.portico("ask", "--source", "acme", QUESTION)
    assert "ninety" in answer["answer"]
    assert [citation["link"] for citation in answer["citations"]] == ["https://acme.example/sizes"]
    assert "acme.example/sizes" in author.outside.enter(made["attempt"], author.folder)
    assert not (author.folder / "portico.toml").exists()

    author.outside.pip("uninstall", "--yes", "portico-acme")
    assert author.listed() == []
    for command in ("search", "ask"):
        assert "install the package that registers it" in author.refused(command, "--source", "acme", QUESTION)


def test_an_installed_planner_is_used_by_changing_one_word(author: Author, installer: str) -> None:
    author.configure('[planner]\nuse = "retrieval"\n')
    assert author.portico(*ABOUT_NOTES)["planner"] == "retrieval"
    made = author.new("planner")
    assert " passed" in author.follow(made, installer=installer)

    assert author.listed() == ["Planner acme"]
    author.configure('[planner]\nuse = "acme"\n')
    answer = author.portico(*ABOUT_NOTES)
    assert answer["planner"] == "acme"
    assert "vinegar" in answer["answer"]
    assert answer["citations"][0]["name"].startswith("kettle.md")

    author.outside.uninstall("portico-acme-planner")
    assert author.listed() == []
    message = author.refused(*ABOUT_NOTES)
    assert "portico.toml" in message
    assert "install the package that registers it" in message


def test_an_installed_adapter_answers_when_it_is_named(author: Author, installer: str) -> None:
    made = author.new("adapter")
    assert " passed" in author.follow(made, installer=installer)

    assert author.listed() == ["ChatService acme"]
    assert author.portico(*ABOUT_NOTES)["service"] == "extractive"
    answer = author.portico(*ABOUT_NOTES, "--chat", "acme")
    assert answer["service"] == "acme"
    assert "vinegar" in answer["answer"]

    author.outside.uninstall("portico-acme")
    assert author.listed() == []
    assert "install the package that registers it" in author.refused(*ABOUT_NOTES, "--chat", "acme")


def test_an_installed_function_plugin_is_callable_once_it_has_a_table(author: Author, installer: str) -> None:
    made = author.new("plugin")
    assert " passed" in author.follow(made, installer=installer)

    assert author.listed() == ["FunctionSource acme"]
    # Installing alone lets nothing be called: functions may have effects.
    assert author.portico("functions")["functions"] == []
    author.configure('[functions.acme]\nuse = "acme"\n')
    assert "acme-define" in [function["name"] for function in author.portico("functions")["functions"]]
    step = {"id": "s1", "function": "acme-define", "arguments": {"word": {"value": "forge"}}}
    plan = {"version": 1, "goal": "What is a forge?", "steps": [step], "result": {"from": "s1", "path": "$.meaning"}}
    (author.folder / "plan.json").write_text(json.dumps(plan), "utf-8")
    assert "hearth" in author.outside.run("portico", "run", "plan.json", folder=author.folder)

    author.outside.uninstall("portico-acme")
    assert author.listed() == []
    assert "install the package that registers it" in author.refused("functions")
