"""What the sources of an installed package import, against what its metadata declares."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

__all__ = ["folded", "folder_of", "imports_of", "modules_of", "requirements_of", "undeclared"]

_FOR_TYPES_ONLY = {"_typeshed"}


def folded(name: str) -> str:
    """Normalise a distribution's name as the packaging specification has it.

    >>> folded("Portico_Acme")
    'portico-acme'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements_of(installed: Distribution) -> list[Requirement]:
    """Return what a distribution requires, that of its extras too."""
    return [Requirement(line) for line in installed.requires or ()]


def folder_of(package: str) -> Path | None:
    """Return the folder of an import package, None where it is a single module. Raises ``ModuleNotFoundError``."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise ModuleNotFoundError(f"there is no module {package!r}", name=package)
    places = [*(spec.submodule_search_locations or ())]
    return Path(places[0]) if places else None


def modules_of(package: str, folder: Path) -> list[str]:
    """Return the names of the modules of a package, but not its `__main__`, which is a program."""
    found = []
    for file in sorted(folder.rglob("*.py")):
        parts = [package, *file.relative_to(folder).with_suffix("").parts]
        if parts[-1] != "__main__":
            found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found


def imports_of(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each absolute import of the modules in a folder: where it stands, and the module's whole name."""
    for file in sorted(folder.rglob("*.py")):
        where = file.relative_to(folder.parent).as_posix()
        for node in ast.walk(ast.parse(file.read_bytes(), str(file))):
            if isinstance(node, ast.Import):
                yield from ((f"{where}:{node.lineno}", alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                yield f"{where}:{node.lineno}", node.module


def undeclared(folder: Path, installed: Distribution) -> dict[str, str]:
    """Return the packages that the modules in ``folder`` import and ``installed`` does not declare, with a place each.

    Where a requirement is not installed, such as one of an extra, what it provides is not known: packages that nobody
    here provides are then left out.
    """
    requirements = requirements_of(installed)
    known, all_known = _provided(requirement.name for requirement in requirements)
    known |= {folder.name, *sys.stdlib_module_names, *_FOR_TYPES_ONLY}
    found: dict[str, str] = {}
    for where, name in imports_of(folder):
        top = name.partition(".")[0]
        if top not in known and top not in found and (all_known or importlib.util.find_spec(top) is not None):
            found[top] = where
    return found


def _provided(names: Iterable[str]) -> tuple[set[str], bool]:
    """Return the import packages of distributions, and whether all of these are installed."""
    provided: set[str] = set()
    complete = True
    for name in names:
        # An editable installation does not say what is in it; the name is what is left.
        provided |= {"portico"} if folded(name) == "portico-core" else {folded(name).replace("-", "_")}
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            complete = False
            continue
        provided |= set((installed.read_text("top_level.txt") or "").split())
        for file in installed.files or ():
            top = file.parts[0].partition(".")[0] if len(file.parts) == 1 else file.parts[0]
            if file.suffix in {".py", ".so", ".pyd"} and top.isidentifier():
                provided.add(top)
    return provided, complete
