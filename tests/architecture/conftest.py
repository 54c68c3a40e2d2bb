"""The leaves of the workspace, read from the tree: what is added is held to the rules without being listed."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Leaf:
    """One distribution of the workspace."""

    folder: Path

    @cached_property
    def project(self) -> dict[str, Any]:
        return tomllib.loads((self.folder / "pyproject.toml").read_text("utf-8"))["project"]

    @property
    def name(self) -> str:
        return self.project["name"]

    @property
    def package(self) -> Path:
        """The folder of its only import package."""
        packages = [path.parent for path in (self.folder / "src").glob("*/__init__.py")]
        assert len(packages) == 1, f"{self.name} must have exactly one import package in src/, not {packages}"
        return packages[0]

    @property
    def import_name(self) -> str:
        return self.package.name

    @property
    def kind(self) -> str:
        """Tell what rules apply: core, host, cli, page, evaluation, testkit, library or plugin."""
        special = {
            "core": "core",
            "adapters/host": "host",
            "adapters/cli": "cli",
            "adapters/eval": "evaluation",
            "adapters/serve": "page",
            "adapters/wire": "library",
            "tests/testkit": "testkit",
        }
        return special.get(self.folder.relative_to(ROOT).as_posix(), "plugin")

    @property
    def entry_points(self) -> dict[str, str]:
        return self.project.get("entry-points", {}).get("portico", {})

    def __str__(self) -> str:
        return self.name


LEAVES = [
    Leaf(file.parent)
    for pattern in ("core", "adapters/*", "connectors/*", "planners/*", "tests/testkit")
    for file in sorted(ROOT.glob(f"{pattern}/pyproject.toml"))
]
SOURCES = sorted(file for leaf in LEAVES for file in leaf.package.rglob("*.py"))


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def leaves() -> list[Leaf]:
    return LEAVES


@pytest.fixture(scope="session")
def trees() -> dict[Path, ast.Module]:
    """Every source file of every distribution, parsed; keys are relative to the root."""
    return {file.relative_to(ROOT): ast.parse(file.read_text("utf-8"), str(file)) for file in SOURCES}


@pytest.fixture(scope="session")
def imports(trees: dict[Path, ast.Module]) -> dict[Path, list[tuple[int, str]]]:
    """The absolute imports of each source file, with their lines; relative ones are made absolute."""
    return {file: list(imports_of(file, tree)) for file, tree in trees.items()}


def imports_of(file: Path, tree: ast.Module) -> Iterator[tuple[int, str]]:
    module = file.parts[file.parts.index("src") + 1 : -1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module[: len(module) - node.level + 1] if node.level else ()
            yield node.lineno, ".".join([*base, *([node.module] if node.module else [])])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "leaf" in metafunc.fixturenames:
        metafunc.parametrize("leaf", LEAVES, ids=str)
    if "plugin" in metafunc.fixturenames:
        metafunc.parametrize("plugin", [leaf for leaf in LEAVES if leaf.kind == "plugin"], ids=str)
