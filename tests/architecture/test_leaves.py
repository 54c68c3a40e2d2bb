"""Every distribution has the same shape."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest


def test_a_leaf_carries_its_readme_and_type_marker(leaf: Any) -> None:
    assert (leaf.package / "py.typed").is_file(), f"{leaf} needs {leaf.package}/py.typed"
    text = (leaf.folder / "README.md").read_text("utf-8")
    assert len(text.split()) >= 20, f"{leaf}'s README.md does not say what it is"
    if leaf.kind != "testkit":
        assert f"pip install {leaf.name}" in text, f"{leaf}'s README.md needs the line `pip install {leaf.name}`"


def test_import_names_are_flat_and_follow_the_distribution(leaf: Any) -> None:
    expected = {"portico-core": "portico", "portico-ai": "portico_cli"}.get(leaf.name, leaf.name.replace("-", "_"))
    assert leaf.import_name == expected


def test_the_entry_point_is_named_for_the_distribution(plugin: Any) -> None:
    assert plugin.entry_points == {plugin.name.removeprefix("portico-"): f"{plugin.import_name}._plugin"}


def test_a_plugin_package_has_settings_and_registrations_in_their_files(plugin: Any) -> None:
    assert (plugin.package / "_plugin.py").is_file()
    assert list(plugin.package.rglob("config.py"))


def test_a_plugin_package_is_held_to_the_kit_of_its_port(plugin: Any) -> None:
    tests = sorted((plugin.folder / "tests").rglob("test_contract.py"))
    assert tests, f"{plugin} needs tests/test_contract.py"
    text = "".join(file.read_text("utf-8") for file in tests)
    assert "portico_testkit" in text
    assert re.search(r"class \w+\((?!PackageKit)[\w.]*Kit\b", text), f"{tests} subclasses no kit of a port"
    assert f'(PackageKit):\n    distribution = "{plugin.name}"\n' in text, f"{tests} does not subclass PackageKit"


def test_each_leaf_says_what_every_leaf_says(leaf: Any) -> None:
    assert leaf.project["license"] == "Apache-2.0"
    assert leaf.project["requires-python"] == ">=3.11"
    assert leaf.project["readme"] == "README.md"


def test_planners_are_named_planner(leaf: Any, root: Path) -> None:
    assert (leaf.folder.parent == root / "planners") == leaf.name.endswith("-planner")


@pytest.mark.parametrize("folder", ["core", "adapters", "connectors", "planners"])
def test_the_four_folders_are_not_packages(root: Path, folder: str) -> None:
    assert not (root / folder / "__init__.py").exists()


def test_the_workspace_knows_every_distribution(leaves: list[Any], root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    assert set(project["tool"]["uv"]["sources"]) == {leaf.name for leaf in leaves}, (
        "one line for each, in tool.uv.sources"
    )


def test_tests_folders_are_not_packages(root: Path, leaves: list[Any]) -> None:
    found = [str(file.relative_to(root)) for leaf in leaves for file in (leaf.folder / "tests").rglob("__init__.py")]
    assert found == []
