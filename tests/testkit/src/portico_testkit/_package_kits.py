"""Which kits the tests of a package subclass, read from their sources.

The tests of one run are not all of them: somebody may run a single file. So nothing of the run is asked.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

__all__ = ["KITS", "folder_of_tests", "kits_used"]

KITS = {
    "ChatService": "portico_testkit.chat_service.ChatServiceKit",
    "EmbeddingGenerator": "portico_testkit.embedding_generator.EmbeddingGeneratorKit",
    "FunctionSelector": "portico_testkit.function_selector.FunctionSelectorKit",
    "FunctionSource": "portico_testkit.function_source.FunctionSourceKit",
    "HttpClient": "portico_testkit.http_client.HttpClientKit",
    "PageReader": "portico_testkit.page_reader.PageReaderKit",
    "PlanStore": "portico_testkit.plan_store.PlanStoreKit",
    "Planner": "portico_testkit.planner.PlannerKit",
    "RunStore": "portico_testkit.run_store.RunStoreKit",
    "Runner": "portico_testkit.runner.RunnerKit",
    "SchemaValidator": "portico_testkit.schema_validator.SchemaValidatorKit",
    "TemplateLanguage": "portico_testkit.template_language.TemplateLanguageKit",
    "TextSearch": "portico_testkit.text_search.TextSearchKit",
    "TypeCodec": "portico_testkit.type_codec.TypeCodecKit",
    "VectorStore": "portico_testkit.vector_store.VectorStoreKit",
}
"""The kit of each port, which holds its services to errors, cancellation and concurrency among the rest."""


def folder_of_tests(file: Path) -> Path:
    """Return the folder of all tests of a package, of which ``file`` is one.

    It is the folder beside the `pyproject.toml`; where there is none, the file's own folder.
    """
    for folder in file.parents:
        if (folder.parent / "pyproject.toml").is_file():
            return folder
        if (folder / "pyproject.toml").is_file():
            break
    return file.parent


def kits_used(folder: Path) -> set[str]:
    """Return the full names of the classes that the classes of tests in a folder's modules subclass, at any depth.

    A class of tests is one that pytest takes for it: `Test…` in `test_….py` or `…_test.py`.
    """
    classes = _Classes(folder)
    used: set[str] = set()
    for (stem, name), bases in classes.written.items():
        if name.startswith("Test") and (stem.startswith("test_") or stem.endswith("_test")):
            for base in bases:
                used |= classes.lineage(base, set())
    return used


@dataclass(frozen=True)
class _Base:
    """What a class subclasses: a name as it is written in a module, and what that is imported as, if it is."""

    stem: str
    written: str
    imported: str


class _Classes:
    """The classes that the modules of a folder define, by the module's last name and their own."""

    def __init__(self, folder: Path) -> None:
        self.written: dict[tuple[str, str], list[_Base]] = {}
        for file in sorted(folder.rglob("*.py")):
            # A file that is broken on purpose, for a test, has no tests.
            with suppress(SyntaxError, ValueError):
                self._read(file.stem, ast.parse(file.read_bytes(), str(file)))

    def _read(self, stem: str, tree: ast.Module) -> None:
        names: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                names |= {alias.asname or alias.name: f"{node.module or ''}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                names |= {alias.asname: alias.name for alias in node.names if alias.asname}
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                # Of the name `PoemKit[str]`, the name alone.
                bases = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
                self.written[stem, node.name] = [_base(stem, ast.unparse(base), names) for base in bases]

    def lineage(self, base: _Base, seen: set[_Base]) -> set[str]:
        """Return the full names of a base class and of those that it subclasses."""
        if base in seen:
            return set()
        seen.add(base)
        module, _, name = base.imported.rpartition(".")
        here = self.written.get((module.rpartition(".")[2] or base.stem, name))
        if here is None:
            return set(_loaded_lineage(module, name))
        return {base.imported} | {each for above in here for each in self.lineage(above, seen)}


def _base(stem: str, written: str, names: dict[str, str]) -> _Base:
    first, _, rest = written.partition(".")
    imported = names.get(first, first)
    return _Base(stem, written, f"{imported}.{rest}" if rest else imported)


def _loaded_lineage(module: str, name: str) -> Iterator[str]:
    """Yield the names of a class of an installed module and of those that it subclasses."""
    with suppress(Exception):
        found = getattr(import_module(module), name)
        yield from (f"{each.__module__}.{each.__qualname__}" for each in found.__mro__)
