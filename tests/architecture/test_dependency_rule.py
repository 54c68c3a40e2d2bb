"""Core imports the standard library only; plugin packages meet in core and nowhere else."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

Imports = dict[Path, list[tuple[int, str]]]

OF_THE_APPLICATION = {"portico_host", "portico_cli", "portico_eval", "portico_serve"}
OF_COMMANDS = {"click", "rich", *OF_THE_APPLICATION}
"""What a command need not declare: it runs in `portico`, which brings them."""


def is_command(file: Path) -> bool:
    """Whether a file is in the folder of a package for its commands."""
    return "commands" in file.parts and "portico_cli" not in file.parts


def offenders(imports: Imports, leaf: Any, root: Path, allowed: set[str]) -> list[str]:
    folder = leaf.package.relative_to(root)
    return [
        f"{file}:{line} imports {name}"
        for file, found in imports.items()
        if file.is_relative_to(folder)
        for line, name in found
        if name.partition(".")[0] not in allowed | sys.stdlib_module_names | {"__future__"}
    ]


def declared(leaf: Any, leaves: list[Any]) -> tuple[set[str], set[str]]:
    """Return what a leaf declares: distributions of the workspace, and the import names of all its dependencies."""
    items = [*leaf.project["dependencies"], *chain(*leaf.project.get("optional-dependencies", {}).values())]
    names = {normal(re.split(r"[^A-Za-z0-9._-]", item, maxsplit=1)[0]) for item in items}
    ours = {other.import_name for other in leaves if other.name in names}
    provided = importlib.metadata.packages_distributions()
    return ours, ours | {package for package, owners in provided.items() if {normal(owner) for owner in owners} & names}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_core_imports_the_standard_library_and_itself_only(imports: Imports, leaves: list[Any], root: Path) -> None:
    core = next(leaf for leaf in leaves if leaf.kind == "core")
    assert core.project["dependencies"] == []
    assert "optional-dependencies" not in core.project
    assert offenders(imports, core, root, {"portico"}) == []


def test_a_plugin_package_imports_core_and_what_it_declares(
    imports: Imports, leaves: list[Any], plugin: Any, root: Path
) -> None:
    ours, packages = declared(plugin, leaves)
    libraries = {leaf.import_name for leaf in leaves if leaf.kind == "library"}
    assert ours - libraries == {"portico"}, f"{plugin} must depend on portico-core, and on no other plugin of ours"
    modules = {file: names for file, names in imports.items() if not is_command(file)}
    assert offenders(modules, plugin, root, packages | {plugin.import_name}) == []
    assert offenders(imports, plugin, root, packages | {plugin.import_name} | OF_COMMANDS) == []


@pytest.mark.parametrize("kind", ["host", "cli", "page", "evaluation", "testkit", "library"])
def test_the_others_import_what_they_declare(imports: Imports, leaves: list[Any], root: Path, kind: str) -> None:
    leaf = next(leaf for leaf in leaves if leaf.kind == kind)
    _, packages = declared(leaf, leaves)
    assert offenders(imports, leaf, root, packages | {leaf.import_name}) == []


def test_only_the_command_line_and_what_extends_it_may_import_the_host(imports: Imports, root: Path) -> None:
    found = [
        f"{file}:{line} imports {name}"
        for file, names in imports.items()
        for line, name in names
        if name.partition(".")[0] in OF_THE_APPLICATION
        and not (OF_THE_APPLICATION & set(file.parts) or is_command(file))
    ]
    assert found == []


def test_plugin_modules_import_nothing_but_core(imports: Imports, root: Path) -> None:
    """Listing every package imports every `_plugin.py`, and must not import one SDK."""
    found = [
        f"{file}:{line} imports {name}"
        for file, names in imports.items()
        if file.name == "_plugin.py"
        for line, name in names
        if name.partition(".")[0] not in sys.stdlib_module_names and not re.fullmatch(r"portico(\..+)?", name)
    ]
    assert found == []


def test_listing_a_package_imports_nothing_but_core(plugin: Any) -> None:
    """The same once more as it happens: `package/__init__.py` runs as well."""
    script = (
        "import sys; before = set(sys.modules)\n"
        f"import {plugin.import_name}._plugin\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert set(run.stdout.split()) - sys.stdlib_module_names - {"portico", plugin.import_name} == set()
