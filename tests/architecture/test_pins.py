"""One set of versions, written in two places: the pins for uv and constraints.txt for everyone else."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def pins(project: dict[str, Any]) -> list[str]:
    return project["tool"]["uv"]["constraint-dependencies"]


def name_of(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]).lower()


def test_constraints_are_the_pins(root: Path, pins: list[str]) -> None:
    lines = (root / "constraints.txt").read_text("utf-8").splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == pins, "run `nox -s pins`"


def test_every_pin_is_one_exact_version(pins: list[str]) -> None:
    loose = [pin for pin in pins if not re.fullmatch(r"[a-z0-9-]+==[^ ;*]+( ; .+)?", pin)]
    assert loose == []
    assert len(set(pins)) == len(pins)


def test_the_constraints_hold_no_address(root: Path) -> None:
    text = (root / "constraints.txt").read_text("utf-8")
    assert not re.search(r"https?:|file:|://|^-|@|--hash", text, re.MULTILINE)


def test_what_the_tests_of_a_leaf_need_is_in_the_workspaces_test_group(
    project: dict[str, Any], leaves: list[Any], root: Path
) -> None:
    everywhere = {name_of(item) for item in project["dependency-groups"]["test"]} | {leaf.name for leaf in leaves}
    for leaf in leaves:
        own = tomllib.loads((leaf.folder / "pyproject.toml").read_text("utf-8")).get("dependency-groups", {})
        assert {name_of(item) for item in own.get("test", [])} <= everywhere, f"{leaf} tests with more than CI has"


def test_whatever_a_leaf_declares_has_an_oldest_version(leaves: list[Any]) -> None:
    """It is what `nox -t oldest` tests with; without it, that takes the first version there ever was."""
    ours = {leaf.name for leaf in leaves}
    for leaf in leaves:
        groups = tomllib.loads((leaf.folder / "pyproject.toml").read_text("utf-8")).get("dependency-groups", {})
        extras = [item for extra in leaf.project.get("optional-dependencies", {}).values() for item in extra]
        wanted = [*leaf.project["dependencies"], *groups.get("test", []), *extras]
        loose = [item for item in wanted if name_of(item) not in ours and ">=" not in item]
        assert loose == [], f"{leaf} does not say from which version on it works with {loose}"


def test_the_tests_of_a_leaf_take_what_is_optional_in_the_version_that_users_are_told(leaves: list[Any]) -> None:
    for leaf in leaves:
        groups = tomllib.loads((leaf.folder / "pyproject.toml").read_text("utf-8")).get("dependency-groups", {})
        tested = {name_of(item): item for item in groups.get("test", [])}
        extras = [item for extra in leaf.project.get("optional-dependencies", {}).values() for item in extra]
        told = {name_of(item): item for item in extras if name_of(item) in tested}
        assert told == {name: tested[name] for name in told}, f"{leaf} promises other versions than it is tested with"


def test_whatever_is_declared_is_pinned(project: dict[str, Any], leaves: list[Any], pins: list[str]) -> None:
    ours = {leaf.name for leaf in leaves}
    wanted = {name_of(item) for group in project["dependency-groups"].values() for item in group}
    for leaf in leaves:
        extras = leaf.project.get("optional-dependencies", {}).values()
        wanted |= {name_of(item) for item in [*leaf.project["dependencies"], *(i for extra in extras for i in extra)]}
    assert wanted - ours - {name_of(pin) for pin in pins} == set(), "run `nox -s pins`"
