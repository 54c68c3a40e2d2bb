"""Does with the pages what a reader does: saves their files, enters their commands, pastes their Python.

`tests/support/pages.py` says how a page is read. The blocks of a page share their names and one event loop, in a folder
of their own. Services on the web are recorded ones. A block that starts with `>>>` is a session with its output.
What is installed is the workspace; `tests/acceptance/pages.py` also installs what a page says.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

from sybil import Document, Example, Region, Sybil
from sybil.evaluators.doctest import DocTestEvaluator
from sybil.parsers.abstract.doctest import DocTestStringParser
from tests.support.pages import Block, agrees, blocks_of, commands_of, pasted_into, statements_of, write
from tests.support.services import recorded_services

RUNNER = "__runner__"
LEAVING = "__leaving__"
SERVICES = "__services__"
# The templates are packages with tests of their own, each for a process of its own: three have one import name.
# `pytest docs/template/connector` runs those of one, with its own settings.
collect_ignore = ["template", "theme"]
collect_ignore_glob = ["template/*", "theme/*"]


def compiled(example: Example, block: Block) -> Iterator[CodeType]:
    """Compile a block of Python: statement by statement where it is pasted, else as a program that may await."""
    if pasted_into(example.document.text):
        yield from statements_of(block.text, example.path, example.line)
    else:
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        yield compile("\n" * example.line + block.text, example.path, "exec", flags=flags, dont_inherit=True)


def run_python(example: Example, block: Block) -> None:
    """Run a block of Python, on the page's event loop where it awaits something."""

    async def entered(code: CodeType) -> None:
        result = eval(code, example.namespace)  # noqa: S307 - the pages of this repository
        if inspect.iscoroutine(result):
            await result

    manner = pasted_into(example.document.text)
    for code in compiled(example, block):
        awaits = code.co_flags & inspect.CO_COROUTINE
        assert not (awaits and manner == "python"), "a block that awaits goes into `python -m asyncio`"
        if awaits or manner == "python -m asyncio":
            example.namespace[RUNNER].run(entered(code))
        else:
            eval(code, example.namespace)  # noqa: S307


def run_commands(example: Example, block: Block) -> None:
    """Run those commands that are ours or Python's; the others install something or start a server."""
    from portico_cli.main import main

    # What a page makes and installs is installed by `tests/acceptance/pages.py`.
    if "pip install -e " in example.document.text:
        return
    for line in commands_of(block):
        words = shlex.split(line)
        if words[0] == "portico":
            main(words[1:])
        elif words[0] in ("python", "pytest"):
            command = [sys.executable, *(["-m", "pytest"] if words[0] == "pytest" else []), *words[1:]]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
            print(done.stdout, end="")
            if block.printed is None:
                assert done.returncode == 0, done.stderr


def evaluate(example: Example) -> None:
    """Do with one block what a reader does with it."""
    block: Block = example.parsed
    if SERVICES not in example.namespace:
        services = recorded_services(Path(example.path).name)
        # A reader has activated the environment.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        variables = {**example.namespace[LEAVING].enter_context(services), "PATH": path}
        example.namespace[SERVICES] = example.namespace[LEAVING].enter_context(variables_set(variables))
    if block.file:
        write(block, Path())
        if block.file.startswith("src/"):
            example.namespace[LEAVING].enter_context(imported_from("src"))
        return
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        (run_python if block.language == "python" else run_commands)(example, block)
    said = printed.getvalue().rstrip("\n")
    if block.printed is not None and (said or "#install" in example.document.text):
        assert agrees(said, block.printed), f"the page shows\n{block.printed}\nand this was printed:\n{said}"


def blocks(document: Document) -> Iterator[Region]:
    """Find the blocks that do something."""
    sessions = DocTestStringParser(DocTestEvaluator())
    for block in blocks_of(document.text):
        followed = "#install" in document.text
        if block.language == "python" and block.text.startswith(">>>"):
            region = Region(block.start, block.end, parsed=block.text)
            for part in sessions(block.text, document.path):
                part.adjust(region, document.text[block.start : block.end].partition("\n")[0] + "\n")
                yield part
        elif (followed and block.file) or block.language == "python" or (followed and block.language == "console"):
            yield Region(block.start, block.end, parsed=block, evaluator=evaluate)


@contextlib.contextmanager
def variables_set(variables: dict[str, str]) -> Iterator[None]:
    """Have these variables, and take them back; those that the page set itself too."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def imported_from(folder: str) -> Iterator[None]:
    """Import from this folder of the page, as after an editable installation."""
    sys.path.insert(0, str(Path(folder).absolute()))
    try:
        yield
    finally:
        sys.path.pop(0)


def enter(namespace: dict[str, Any]) -> None:
    """Move to a fresh folder."""
    folder = tempfile.mkdtemp(prefix="portico-docs-")
    namespace[LEAVING] = leaving = contextlib.ExitStack()
    leaving.callback(shutil.rmtree, folder)
    leaving.enter_context(contextlib.chdir(folder))
    leaving.callback(forget_modules, set(sys.modules))
    # What an interpreter echoes is not what a block prints.
    leaving.callback(setattr, sys, "displayhook", sys.displayhook)
    sys.displayhook = lambda _: None
    namespace[RUNNER] = leaving.enter_context(asyncio.Runner())
    namespace["__name__"] = "__main__"


def forget_modules(before: set[str]) -> None:
    """Forget the modules that the page made up."""
    for name in sys.modules.keys() - before:
        spec = sys.modules[name].__spec__
        if spec is None or "portico-docs-" in str(spec.origin):
            del sys.modules[name]


def leave(namespace: dict[str, Any]) -> None:
    """Close the loop, and remove the folder."""
    namespace[LEAVING].close()


pytest_collect_file = Sybil(
    parsers=[blocks], patterns=["*.md"], fixtures=["own_home", "no_network"], setup=enter, teardown=leave
).pytest()
