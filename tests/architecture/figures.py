"""Prints how large Portico is, and the limits: lines, public names, distributions, circles of imports.

    python tests/architecture/figures.py

`test_figures.py` holds the limits. A limit is lowered when a figure falls well below it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FRONTS = ("__init__", "errors", "plans", "plugins", "ports", "search")
"""The public modules of core, below `portico`."""
LIMITS = {
    "source lines": 85_500,
    "core lines": 26_600,
    "testkit lines, with its tests": 12_240,
    "public names of core": 232,
    "distributions": 33,
    "circles of modules": 0,
    "lines of CONTRIBUTING": 120,
}
_LEAVES = ("core", "adapters/*", "connectors/*", "planners/*", "tests/testkit")


def lines_of(files: Iterable[Path]) -> int:
    """Count the lines of these files."""
    return sum(len(file.read_text("utf-8").splitlines()) for file in files)


def sources() -> list[Path]:
    """Return the source files of all distributions but the testkit."""
    return [file for leaf in _LEAVES[:-1] for file in sorted(ROOT.glob(f"{leaf}/src/**/*.py"))]


def front(name: str) -> Path:
    """Return the file of a public module of core."""
    folder = ROOT / "core" / "src" / "portico"
    return folder / name / "__init__.py" if (folder / name).is_dir() else folder / f"{name}.py"


def public_names() -> dict[str, list[str]]:
    """Return the names that each public module of core offers."""
    return {
        name: sorted(_offered(ast.parse(front(name).read_text("utf-8")))) for name in FRONTS if front(name).exists()
    }


def _offered(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module re-exports with `import X as X`, and those of its own classes and functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (alias.asname for alias in node.names if alias.asname == alias.name)
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef) and not statement.name.startswith("_"):
            yield statement.name


def imports() -> dict[str, set[str]]:
    """Return which modules each module of a distribution imports, wherever in the file."""
    files = [*sources(), *sorted(ROOT.glob("tests/testkit/src/**/*.py"))]
    modules = {_module(file): file for file in files}
    return {name: set(_imported(name, file, modules)) - {name} for name, file in modules.items()}


def _module(file: Path) -> str:
    parts = file.with_suffix("").parts
    inside = parts[len(parts) - 1 - parts[::-1].index("src") + 1 :]
    return ".".join(inside[:-1] if inside[-1] == "__init__" else inside)


def _imported(name: str, file: Path, modules: dict[str, Path]) -> Iterator[str]:
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                if inner in modules:
                    yield inner
                elif base in modules:
                    yield base


def circles() -> list[list[str]]:
    """Return the groups of modules that import each other, by Tarjan's algorithm."""
    graph = imports()
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return found


def figures() -> dict[str, int]:
    """Return the figure for each limit."""
    names = public_names()
    return {
        "source lines": lines_of(sources()),
        "core lines": lines_of(ROOT.glob("core/src/**/*.py")),
        "testkit lines, with its tests": lines_of(ROOT.glob("tests/testkit/**/*.py")),
        "public names of core": len({name for offered in names.values() for name in offered}),
        "distributions": sum(len(list(ROOT.glob(f"{leaf}/pyproject.toml"))) for leaf in _LEAVES),
        "circles of modules": len(circles()),
        "lines of CONTRIBUTING": lines_of([ROOT / "CONTRIBUTING.md"]),
    }


def advice(what: str) -> str:
    """Return what to do about a figure above its limit."""
    found = ", ".join(" ".join(group) for group in circles()) if what == "circles of modules" else "take out more"
    return f"{what}: {found}; `python tests/architecture/figures.py` prints all figures"


if __name__ == "__main__":
    for what, figure in figures().items():
        print(f"{what:32} {figure:>7,} of {LIMITS[what]:,}")
    for group in circles():
        print("circle:", *group)
