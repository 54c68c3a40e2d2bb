"""The rules of the house that a linter does not know."""

from __future__ import annotations

import ast
import re
import tokenize
from pathlib import Path

import pytest

Trees = dict[Path, ast.Module]

_FRONTS = {"errors.py", "plans.py", "plugins.py", "ports.py", "search.py"}
LONGEST_PORT = 60
LONGEST_FILE = 600
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "misc", "shared", "stuff"}


def is_public(file: Path) -> bool:
    """Tell whether others import a module: one of core or the testkit without an underscore."""
    if not {"portico", "portico_testkit"} & set(file.parts) or file.name in _FRONTS:
        return False
    parts = file.parts[file.parts.index("src") + 2 :]
    return all(not part.startswith("_") or part == "__init__.py" for part in parts)


def length(root: Path, file: Path) -> int:
    return len((root / file).read_text("utf-8").splitlines())


def test_a_port_fits_on_a_page(root: Path, trees: Trees) -> None:
    ports = [file for file in trees if file.parent.as_posix().endswith("portico/_ports") and file.name != "__init__.py"]
    assert ports
    too_long = {file.name: lines for file in ports if (lines := length(root, file)) > LONGEST_PORT}
    assert too_long == {}, f"a port file has at most {LONGEST_PORT} lines"


def test_files_stay_short(root: Path, trees: Trees) -> None:
    too_long = {str(file): lines for file in trees if (lines := length(root, file)) > LONGEST_FILE}
    assert too_long == {}, f"split what has more than {LONGEST_FILE} lines by what it holds"


def test_files_are_named_for_what_they_hold(trees: Trees) -> None:
    vague = [str(file) for file in trees if {part.removesuffix(".py").strip("_") for part in file.parts} & VAGUE_NAMES]
    assert vague == []


def test_every_public_module_declares_its_surface(trees: Trees) -> None:
    lacking = [
        str(file)
        for file, tree in trees.items()
        if is_public(file) and file.name != "__init__.py" and has_content(tree) and declared_names(tree) is None
    ]
    assert lacking == [], "a public module needs `__all__` after its imports"


def has_content(tree: ast.Module) -> bool:
    return any(not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) for node in tree.body)


def declared_names(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            value = node.value  # type: ignore[union-attr]
            assert isinstance(value, ast.List | ast.Tuple), "`__all__` is a plain list"
            return [element.value for element in value.elts if isinstance(element, ast.Constant)]
    return None


def test_names_outside_the_surface_are_private(trees: Trees) -> None:
    """A class or function is in its module's `__all__`, or its name starts with an underscore."""
    leaking = [
        f"{file}:{node.lineno} {node.name}"
        for file, tree in trees.items()
        if is_public(file) and (surface := declared_names(tree)) is not None
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("_")
        and node.name not in surface
    ]
    assert leaking == []


def test_nothing_is_left_to_be_done(root: Path, trees: Trees) -> None:
    unfinished = [
        f"{file}:{number} {line.strip()}"
        for file in trees
        for number, line in enumerate((root / file).read_text("utf-8").splitlines(), 1)
        if re.search(r"\b(TODO|FIXME|XXX|HACK)\b|\bNotImplementedError\b", line)
    ]
    assert unfinished == []


FORBIDDEN_CALLS = {"eval", "exec", "__import__"}
FORBIDDEN_IMPORTS = {"pickle", "cPickle", "dill", "marshal", "shelve", "cloudpickle"}


def test_nothing_from_outside_can_become_code(trees: Trees) -> None:
    calls = [
        f"{file}:{node.lineno} {node.func.id}()"
        for file, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS
    ]
    allowed_pickle = [
        f"{file}:{node.lineno} allow_pickle"
        for file, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword)
        and node.arg == "allow_pickle"
        and not (isinstance(node.value, ast.Constant) and node.value.value is False)
    ]
    assert calls + allowed_pickle == []


def test_no_pickle(imports: dict[Path, list[tuple[int, str]]]) -> None:
    found = [
        f"{file}:{line} {name}"
        for file, names in imports.items()
        for line, name in names
        if name.partition(".")[0] in FORBIDDEN_IMPORTS
    ]
    assert found == []


@pytest.fixture(scope="module")
def protocols(trees: Trees) -> set[str]:
    """Every class that names `Protocol` as its base: the ports and what they are given."""
    found = {
        node.name
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base).partition("[")[0].rpartition(".")[2] == "Protocol" for base in node.bases)
    }
    assert {"ChatService", "TextSearch", "EmbeddingGenerator", "VectorStore", "Planner"} <= found
    return found


def test_a_port_is_never_asked_for_by_isinstance(trees: Trees, protocols: set[str]) -> None:
    found = [
        f"{file}:{node.lineno} {ast.unparse(node)}"
        for file, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"isinstance", "issubclass"}
        and {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)} & protocols
    ]
    assert found == []


def test_ports_are_not_checkable_at_run_time(trees: Trees) -> None:
    found = [str(file) for file, tree in trees.items() if "runtime_checkable" in ast.unparse(tree)]
    assert found == []


def test_a_type_ignore_names_its_code(root: Path, trees: Trees) -> None:
    found = []
    for file in trees:
        with (root / file).open("rb") as source:
            found += [
                f"{file}:{token.start[0]}"
                for token in tokenize.tokenize(source.readline)
                if token.type == tokenize.COMMENT and re.search(r"type:\s*ignore(?!\[)", token.string)
            ]
    assert found == []
