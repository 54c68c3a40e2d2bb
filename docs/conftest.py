"""Runs the Python examples of the pages.

The blocks of a page share their names and one event loop, and may `await` at top level. They run in a folder
of their own that holds a copy of `docs` and, in `recorded`, the recorded answers of the connectors' tests.
Where a block of `text` follows one that prints, it is what was printed.
`<!-- skip: next -->` before a block leaves it out.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from sybil import Example, Sybil
from sybil.parsers.abstract.doctest import DocTestStringParser
from sybil.parsers.markdown import CodeBlockParser, SkipParser

DOCS = Path(__file__).parent
RUNNER = "__runner__"
FOLDERS = "__folders__"
MODULES = "__modules__"
PRINTED = re.compile(r"(?:```)?\n\n```text\n(.*?)\n?```", re.DOTALL)
# The templates are packages with tests of their own, each for a process of its own: three have one import name.
# `pytest docs/template/connector` runs those of one, with its own settings.
collect_ignore = ["template"]
collect_ignore_glob = ["template/*"]


def evaluate(example: Example) -> None:
    """Run one block, on the page's event loop where it awaits something."""
    lines_before = "\n" * (example.line + example.parsed.line_offset)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(lines_before + example.parsed, example.path, "exec", flags=flags, dont_inherit=True)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        result = eval(code, example.namespace)  # noqa: S307 - the pages of this repository
        if inspect.iscoroutine(result):
            example.namespace[RUNNER].run(result)
    shown = PRINTED.match(example.document.text, example.region.end)
    if shown and printed.getvalue():
        said = printed.getvalue().rstrip("\n")
        assert said == shown[1], f"the page shows\n{shown[1]}\nand this was printed:\n{said}"


def python_blocks(document: Any) -> Any:
    """Find the fenced Python blocks; one that starts with a prompt is read as a session with its output."""
    from sybil.evaluators.doctest import DocTestEvaluator

    sessions = DocTestStringParser(DocTestEvaluator())
    for region in CodeBlockParser("python", evaluate)(document):
        if region.parsed.startswith(">>>"):
            for part in sessions(region.parsed, document.path):
                part.adjust(region, region.parsed)
                yield part
        else:
            yield region


def enter(namespace: dict[str, Any]) -> None:
    """Move to a fresh folder with the docs in it."""
    folder = tempfile.mkdtemp(prefix="portico-docs-")
    shutil.copytree(DOCS, Path(folder) / "docs", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for recorded in DOCS.parent.glob("connectors/*/tests/recorded"):
        shutil.copytree(recorded, Path(folder) / "recorded" / recorded.parent.parent.name)
    namespace[FOLDERS] = (Path.cwd(), folder)
    namespace[MODULES] = set(sys.modules)
    namespace[RUNNER] = asyncio.Runner()
    namespace["__name__"] = "__main__"
    os.chdir(folder)


def leave(namespace: dict[str, Any]) -> None:
    """Close the loop, remove the folder, and forget the modules that the page made up."""
    namespace[RUNNER].close()
    before, folder = namespace[FOLDERS]
    os.chdir(before)
    shutil.rmtree(folder)
    for name in sys.modules.keys() - namespace[MODULES]:
        if sys.modules[name].__spec__ is None:
            del sys.modules[name]


pytest_collect_file = Sybil(
    parsers=[python_blocks, SkipParser()],
    patterns=["*.md"],
    fixtures=["own_home", "no_network"],
    setup=enter,
    teardown=leave,
).pytest()
