"""Writes the public surface of each distribution to `tests/architecture/api`.

    python tests/architecture/api_snapshot.py

What is public: every name in the `__all__` of a module without a leading underscore, and what such a module imports
``as`` the same name, in all distributions but the command line, whose surface are its commands: `json_keys.py` has the
keys of what they write. The rest is read from the source, so that nothing is imported and every Python writes the same.
One line is one thing that somebody may rest on, complete in itself: a line that goes or changes breaks them.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "api"
COMMAND = "python tests/architecture/api_snapshot.py"

_LONGEST_VALUE = 100
# What every class has, and what only its author sees.
_UNTOLD = {"__post_init__", "__repr__", "__str__", "__hash__", "__eq__", "__slots__", "__all__", "__doc__", "__dir__"}
_TOLD_DECORATORS = (
    *("property", "cached_property", "classmethod", "staticmethod", "overload", "abstractmethod", "final"),
    *("contextmanager", "asynccontextmanager", "dataclass", "frozen", "define", "fixture", "setter"),
)
_FIRST_NAMES: dict[tuple[str, str], str] = {}
"""The public name of what is defined in a private module: the first one; the others are the same."""
_KEPT_OF_FIELDS = ("default", "default_factory", "factory", "init", "kw_only", "alias")
_ORDERED = {"NamedTuple", "Enum", "StrEnum", "IntEnum"}
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass
class Module:
    """One parsed module: what it defines, and where its imported names are from."""

    name: str
    exported: list[str]
    defined: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)


def modules_in(source: Path) -> dict[str, Module]:
    """Parse every module of a `src` folder, the private ones too: what is public may stand on them."""
    found = {}
    for file in sorted(source.rglob("*.py")):
        parts = file.relative_to(source).with_suffix("").parts
        package = parts[:-1]
        name = ".".join(package if parts[-1] == "__init__" else parts)
        found[name] = _parsed(name, package, ast.parse(file.read_text("utf-8"), str(file)))
    return found


def surface(source: Path) -> str:
    """Return the public surface of what is in a `src` folder, as text."""
    modules = modules_in(source)
    sections = []
    _FIRST_NAMES.clear()
    for name, module in sorted(modules.items()):
        if module.exported and not any(part.startswith("_") for part in name.split(".")):
            lines = [line for word in sorted(module.exported) for line in _of_name(modules, module, word)]
            sections.append("".join(f"{line}\n" for line in [f"# {name}", *lines]))
    return "\n".join(sections)


def snapshots() -> dict[Path, str]:
    """Return the text that each file of the snapshot should have."""
    made = {}
    for name, folder in {"core": "core", "host": "adapters/host", "testkit": "tests/testkit"}.items():
        made[FOLDER / f"portico-{name}.txt"] = surface(ROOT / folder / "src")
    return made


def _parsed(name: str, package: tuple[str, ...], tree: ast.Module) -> Module:
    module = Module(name, [])
    for node in _statements(tree.body):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            home = ".".join([*base, *([node.module] if node.module else [])])
            module.imported |= {alias.asname or alias.name: (home, alias.name) for alias in node.names}
            module.exported += [alias.name for alias in node.names if alias.asname == alias.name]
        for word in _words(node):
            if word == "__all__":
                module.exported = ast.literal_eval(node.value)  # type: ignore[union-attr]
            module.defined.setdefault(word, []).append(node)
    if name == "portico.errors":  # It offers all that it defines.
        defined = ((word, nodes[0]) for word, nodes in module.defined.items())
        module.exported = [word for word, node in defined if isinstance(node, _Definition) and word[0] != "_"]
    return module


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module or class, those under a condition too."""
    for node in body:
        if isinstance(node, ast.If):
            yield from _statements([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from _statements([*node.body, *(s for handler in node.handlers for s in handler.body)])
        else:
            yield node


def _words(node: ast.stmt) -> list[str]:
    if isinstance(node, _Definition):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _of_name(modules: dict[str, Module], module: Module, word: str) -> Iterator[str]:
    full = f"{module.name}.{word}"
    nodes = module.defined.get(word)
    if not nodes:
        home, original = module.imported.get(word, ("", ""))
        source = modules.get(home)
        private = any(part.startswith("_") for part in home.split("."))
        if source is None or not private or original not in source.defined:
            yield f"{full} = {home}.{original}" if home else full
            return
        first = _FIRST_NAMES.setdefault((home, original), full)
        if first != full:
            yield f"{full} = {first}"
            return
        module, nodes = source, source.defined[original]
    for node in _without_implementations(nodes):
        if isinstance(node, ast.ClassDef):
            yield from _of_class(modules, module, full, node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield _function(full, node, method=False)
        else:
            yield from _constant(full, node)


def _constant(full: str, node: ast.stmt) -> Iterator[str]:
    """Yield a constant, and the parts of a table that is too long for a line: `PORTS` has the versions of the ports."""
    line = _value(full, node)
    yield line
    value = getattr(node, "value", None)
    if line.endswith("…") and isinstance(value, ast.List | ast.Tuple):
        parts = [ast.unparse(element) for element in value.elts if isinstance(element, ast.Call)]
        yield from (f"{full} has {part}" for part in parts)


def _without_implementations(nodes: list[ast.stmt]) -> list[ast.stmt]:
    """Leave out the function behind overloads, which nobody is told of."""
    overloads = [node for node in nodes if isinstance(node, _Definition) and "@overload" in _decorated("", node)]
    return overloads or nodes


def _of_class(modules: dict[str, Module], module: Module, full: str, node: ast.ClassDef) -> Iterator[str]:
    bases = [ast.unparse(base) for base in node.bases]
    shown = [base for base in bases if not base.startswith("_")]
    keywords = [ast.unparse(keyword) for keyword in node.keywords]
    head = f"class {full}" + (f"({', '.join([*shown, *keywords])})" if shown or keywords else "")
    yield _decorated(head, node)
    ordered = any(
        "dataclass" in text or "attrs" in text or "frozen" in text or "define" in text
        for text in map(ast.unparse, node.decorator_list)
    ) or bool(_ORDERED & set(bases))
    fields: list[str] = []
    others: set[str] = set()
    overloaded = {
        member.name for member in node.body if isinstance(member, _Definition) and "@overload" in _decorated("", member)
    }
    for member in _members(modules, module, node):
        if isinstance(member, _Definition) and member.name in overloaded and "@overload" not in _decorated("", member):
            continue
        if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
            if _is_told(member.name):
                others.add(_function(f"{full}.{member.name}", member, method=True))
            if member.name == "__init__":
                others.update(_attributes(full, member))
            continue
        fields += [_value(f"{full}.{word}", member) for word in _words(member) if _is_told(word)]
    yield from dict.fromkeys(fields if ordered else sorted(fields))
    known = {line.partition(":")[0].partition(" = ")[0] for line in fields}
    yield from sorted(line for line in others if line.partition(":")[0] not in known)


def _members(modules: dict[str, Module], module: Module, node: ast.ClassDef) -> Iterator[ast.stmt]:
    """Yield what stands in a class, and in its private bases: who uses the class cannot tell them apart."""
    own = list(_statements(node.body))
    words = {word for member in own for word in _words(member)}
    for base in node.bases:
        name = ast.unparse(base).partition("[")[0]
        home, inner = _resolved(modules, module, name)
        if name.startswith("_") and home is not None and inner is not None:
            yield from (member for member in _members(modules, home, inner) if not words & set(_words(member)))
    yield from own


def _resolved(modules: dict[str, Module], module: Module, name: str) -> tuple[Module | None, ast.ClassDef | None]:
    for node in module.defined.get(name, ()):
        if isinstance(node, ast.ClassDef):
            return module, node
    home, original = module.imported.get(name, ("", ""))
    return _resolved(modules, modules[home], original) if home in modules else (None, None)


def _attributes(full: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Yield the public attributes that a constructor sets, with the type of the parameter where it is one."""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    hints = {argument.arg: ast.unparse(argument.annotation) for argument in arguments if argument.annotation}
    for inner in ast.walk(node):
        targets = inner.targets if isinstance(inner, ast.Assign) else [getattr(inner, "target", None)]
        for target in targets:
            if not isinstance(target, ast.Attribute) or ast.unparse(target.value) != "self" or target.attr[0] == "_":
                continue
            value = getattr(inner, "value", None)
            hint = ast.unparse(inner.annotation) if isinstance(inner, ast.AnnAssign) else ""
            hint = hint or (hints.get(value.id, "") if isinstance(value, ast.Name) else "")
            yield f"{full}.{target.attr}" + (f": {hint}" if hint else "")


def _is_told(word: str) -> bool:
    return not word.startswith("_") or (word.startswith("__") and word.endswith("__") and word not in _UNTOLD)


def _function(full: str, node: ast.FunctionDef | ast.AsyncFunctionDef, *, method: bool) -> str:
    arguments = ast.parse(f"def f({ast.unparse(node.args)}): ...").body[0].args  # type: ignore[attr-defined]
    static = any(ast.unparse(decorator) == "staticmethod" for decorator in node.decorator_list)
    if method and not static:
        first = arguments.posonlyargs or arguments.args
        del first[:1]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    # An asynchronous generator is iterated and not awaited.
    awaited = isinstance(node, ast.AsyncFunctionDef) and not _yields(node)
    return _decorated(f"{'async ' if awaited else ''}def {full}({ast.unparse(arguments)}){returns}", node)


def _yields(node: ast.AST) -> bool:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(child, (*_Definition.__args__, ast.Lambda)) and _yields(child):
            return True
    return False


def _decorated(head: str, node: _Definition) -> str:
    written = [ast.unparse(decorator) for decorator in node.decorator_list]
    told = [text for text in written if text.partition("(")[0].rpartition(".")[2] in _TOLD_DECORATORS]
    return " ".join([*(f"@{text}" for text in told), head])


def _value(full: str, node: ast.stmt) -> str:
    hint = f": {ast.unparse(node.annotation)}" if isinstance(node, ast.AnnAssign) else ""
    value = getattr(node, "value", None)
    if value is None:
        return full + hint
    text = ast.unparse(_without_documentation(value))
    told = len(text) <= _LONGEST_VALUE or hint.endswith("TypeAlias")
    return f"{full}{hint} = {text if told else '…'}"


def _without_documentation(value: ast.expr) -> ast.expr:
    """Return a field's default without what is said and checked of it, which may change at any time."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) in ("field", "attrs.field", "dataclasses.field"):
        kept = [keyword for keyword in value.keywords if keyword.arg in _KEPT_OF_FIELDS]
        if len(kept) == 1 and kept[0].arg == "default":
            return kept[0].value
        return ast.Call(value.func, value.args, kept)
    return value


def main() -> None:
    """Write every file anew, and remove those of distributions that are gone."""
    FOLDER.mkdir(exist_ok=True)
    made = snapshots()
    for file in set(FOLDER.glob("*.txt")) - made.keys():
        file.unlink()
    # It runs the commands, where the rest is read from their source.
    import json_keys

    made[json_keys.FILE] = json_keys.found()
    for file, text in made.items():
        if not file.is_file() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")
            sys.stdout.write(f"{file.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
