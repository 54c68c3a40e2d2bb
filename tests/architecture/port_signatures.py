"""Writes the types of each port into its page in `docs/plugins`: `python tests/architecture/port_signatures.py`."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from portico.ports import PORTS, PortInfo

ROOT = Path(__file__).parents[2]
SENTENCE = "With their types:"
_BLOCK = re.compile(rf"\n{SENTENCE}\n\n```python\n.*?```\n", re.DOTALL)
_ROWS = re.compile(r"(?<=\n## What it has\n)\n\| member \| is \|\n(?:\|.*\n)+")


def kebab(name: str) -> str:
    """Return a class's name as files of it are called: `type-codec`."""
    return "-".join(re.findall(r"[A-Z][a-z]+", name)).lower()


def page_of(port: PortInfo) -> Path:
    """Return the page for those who implement a port."""
    return ROOT / "docs" / "plugins" / f"{kebab(port.name)}.md"


def signatures(port: PortInfo) -> str:
    """Return the protocols of a port's module without their words, with the imports that they need."""
    module = f"portico._ports.{kebab(port.name).replace('-', '_')}"
    source = (ROOT / "core" / "src" / f"{module.replace('.', '/')}.py").read_text("utf-8")
    tree = ast.parse(source)
    protocols = [node for node in tree.body if isinstance(node, ast.ClassDef) and "Protocol" in map(_named, node.bases)]
    homes = {name: home for name, home in _homes(tree, module) if name not in {one.name for one in protocols}}
    used = {node.id for one in protocols for node in ast.walk(one) if isinstance(node, ast.Name)}
    imports: dict[str, list[str]] = defaultdict(list)
    for name in sorted(used & homes.keys(), key=lambda name: (name.isupper(), name)):
        imports[homes[name]].append(name)
    lines = [f"from {home} import {', '.join(names)}" for home, names in sorted(imports.items())]
    groups = ([line for line in lines if ("from portico" in line) is ours] for ours in (False, True))
    classes = ("\n".join(_lines(one, source.splitlines())) for one in protocols)
    return "\n\n\n".join(["\n\n".join("\n".join(group) for group in groups if group), *classes])


def with_signatures(page: str, port: PortInfo) -> str:
    """Return a page with the types below its table of members."""
    block = f"\n{SENTENCE}\n\n```python\n{signatures(port)}\n```\n"
    return _ROWS.sub(lambda rows: rows[0] + block, _BLOCK.sub("", page))


def _lines(protocol: ast.ClassDef, source: list[str]) -> Iterator[str]:
    yield f"class {protocol.name}(Protocol):"
    attributes = [node for node in protocol.body if isinstance(node, ast.AnnAssign)]
    yield from (f"    {ast.unparse(node)}" for node in attributes)
    methods = [node for node in protocol.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in methods:
        yield from (f"    @{ast.unparse(decorator)}" for decorator in node.decorator_list)
        *lines, last = source[node.lineno - 1 : node.body[0].lineno - 1]
        yield from lines
        yield f"{last} ..."


def _homes(tree: ast.Module, module: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((alias.name, _public(alias.name, str(node.module))) for alias in node.names)
        elif isinstance(node, ast.ClassDef):
            yield node.name, _public(node.name, module)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node in tree.body:
            yield node.target.id, _public(node.target.id, module)


def _public(name: str, module: str) -> str:
    """Return the public module that has a name of a private one."""
    fronts = map(import_module, ("portico.ports", "portico.search", "portico.plans", "portico", "portico.plugins"))
    return next((front.__name__ for front in fronts if "._" in module and name in dir(front)), module)


def _named(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


if __name__ == "__main__":
    for each in PORTS:
        page_of(each).write_text(with_signatures(page_of(each).read_text("utf-8"), each), "utf-8")
