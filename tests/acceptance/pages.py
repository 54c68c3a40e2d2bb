"""Does for each page of the documentation what a reader does, in an environment from wheels.

A reader installs what the page says, and nothing else, saves its files, enters its commands, and pastes its Python into
an interpreter. What is printed is compared with what the page shows. Services on the web are recorded ones. Run it as
`nox -s pages`, with the names of some pages or without.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.acceptance.environments import ROOT, Environment, new_environment
from tests.support.pages import Block, agrees, blocks_of, commands_of, pasted_into, write
from tests.support.services import recorded_services

FOLDERS = ("tutorial", "how-to", "plugins", "explanation")
# A key or an address of the reader's: a recorded service stands for it. And what is done in a clone.
NOT_ENTERED = re.compile(r"export |pip install uv |uv run ")
END = "--end-of-block--"


class Interpreter:
    """An interpreter that blocks are pasted into."""

    def __init__(self, command: list[str], folder: Path, variables: Mapping[str, str]) -> None:
        self._said = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            encoding="utf-8",
        )
        # What an interpreter echoes is not what a block prints.
        self.paste('import sys; sys.ps1 = sys.ps2 = ""; sys.displayhook = lambda value: None')

    def paste(self, text: str) -> str:
        """Enter a block, and return what it prints. An ``AssertionError`` has the exception of one that raises."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        before = self._said.seek(0, os.SEEK_END)
        self._process.stdin.write(f"{text}\n\nprint({END!r})\n")
        self._process.stdin.flush()
        printed = ""
        for line in self._process.stdout:
            if line.endswith(f"{END}\n"):
                printed += line.removesuffix(f"{END}\n")
                break
            printed += line
        self._said.seek(before)
        said = self._said.read()
        assert "Traceback (most" not in said, f"{text}\nraised\n{said}"
        assert "Error: " not in said, f"{text}\nis not what an interpreter takes\n{said}"
        return printed

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()
        self._said.close()


class Environments:
    """Environments by what is installed in them; pages that install the same share one."""

    def __init__(self, place: Path, wheels: Path, variables: Mapping[str, str]) -> None:
        self._place = place
        self._made: dict[tuple[str, ...], Environment] = {}
        found = {"PIP_FIND_LINKS": str(wheels), "UV_FIND_LINKS": str(wheels)}
        pinned = {name: str(ROOT / "constraints.txt") for name in ("PIP_CONSTRAINT", "UV_CONSTRAINT")}
        # As pip does: a first import that compiles would take seconds.
        self._installing = {**variables, **found, **pinned, "UV_COMPILE_BYTECODE": "1"}
        for name in ("VIRTUAL_ENV", "UV_PYTHON", "PYTHONPATH"):
            self._installing.pop(name, None)

    def with_lines(self, lines: list[str], page: str) -> Environment:
        """Return an environment in which these lines were entered, and nothing else."""
        # A page that installs what it makes has one for itself.
        key = (*sorted(set(lines)), page if any(map(is_editable, lines)) else "")
        if key not in self._made:
            folder = self._place / f"environment-{len(self._made)}"
            self._made[key] = made = new_environment(folder, self._installing, self._installing)
            for line in lines:
                if not is_editable(line):
                    made.install(*shlex.split(line)[2:])
        return self._made[key]


class Reader:
    """Reads one page."""

    def __init__(self, page: Path, environments: Environments, folder: Path) -> None:
        self._text = page.read_text("utf-8")
        self._page = page
        self._folder = folder
        self._blocks = list(blocks_of(self._text))
        lines = [line for block in self._blocks if block.language == "console" for line in commands_of(block)]
        self._installed = environments.with_lines(list(filter(is_installation, lines)), page.name)
        self._home = folder / ".home"
        self._home.mkdir()
        home = {f"XDG_{kind}_HOME": str(self._home / kind) for kind in ("CACHE", "CONFIG", "DATA", "STATE")}
        variables = self._installed.variables
        # As activating the environment does: its programs are found first.
        path = os.pathsep.join([str(self._installed.scripts), variables["PATH"]])
        self._variables = {**variables, **home, "HOME": str(self._home), "COLUMNS": "100", "PATH": path}

    def read(self) -> None:
        """Do all that the page says, in order. An ``AssertionError`` says what went otherwise than the page shows."""
        assert re.search("#install|^## Install$", self._text, re.MULTILINE), (
            "it does not say how to install what it uses"
        )
        manner = pasted_into(self._text)
        with ExitStack() as open_until_the_end:
            services = open_until_the_end.enter_context(recorded_services(self._page.name))
            self._variables.update(services)
            interpreter = None
            for block in self._blocks:
                if block.file:
                    write(block, self._folder)
                elif block.language == "console":
                    self._compare(block, self._enter(block))
                elif block.language == "python":
                    assert manner, f"a reader does not know what to do with this:\n{block.text}"
                    if interpreter is None:
                        options = ["-m", "asyncio"] if "asyncio" in manner else ["-i"]
                        command = [str(self._installed.python), "-u", *options]
                        interpreter = Interpreter(command, self._folder, self._variables)
                        open_until_the_end.callback(interpreter.close)
                    printed = interpreter.paste(block.text)
                    self._compare(block, printed)

    def _enter(self, block: Block) -> str:
        """Enter the lines into a shell, which stays in the folder that they lead to; return what they print."""
        lines = [
            line
            for line in commands_of(block)
            if not NOT_ENTERED.match(line) and (is_editable(line) or not is_installation(line))
        ]
        if not lines:
            return ""
        left = self._home / "left"
        done = subprocess.run(
            ["/bin/sh", "-c", "\n".join([*lines, "code=$?", f"pwd > {shlex.quote(str(left))}", "exit $code"])],
            cwd=self._folder,
            env={**self._variables, "VIRTUAL_ENV": str(self._installed.folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
        wrong = f"{block.text}\nended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        # A page shows a program that kills itself.
        assert done.returncode in (0, 137), wrong
        assert "Traceback" not in done.stderr, wrong
        self._folder = Path(left.read_text("utf-8").strip())
        return done.stdout

    def _compare(self, block: Block, printed: str) -> None:
        if block.printed is not None or (printed and block.language == "python"):
            shown = block.printed or ""
            assert agrees(printed, shown), f"{block.text}\nprinted\n{printed}\nand the page shows\n{shown}"


def is_installation(line: str) -> bool:
    """Say whether a line installs something, and does nothing else."""
    return line.startswith("pip install ") and "&&" not in line


def is_editable(line: str) -> bool:
    """Say whether a line installs what the page has made."""
    return line.startswith("pip install ") and (" -e " in line or " --editable " in line)


def pages_with_code() -> Iterator[Path]:
    """Find the pages that a reader can follow: those that install something."""
    for folder in FOLDERS:
        for page in sorted((ROOT / "docs" / folder).glob("*.md")):
            if any(block.language in ("python", "console") for block in blocks_of(page.read_text("utf-8"))):
                yield page


@contextmanager
def built_wheels(place: Path) -> Iterator[Path]:
    """Build every wheel of the workspace, as the page of the first steps says."""
    wheels = place / "dist"
    command = ["uv", "build", "--all-packages", "--wheel", "--quiet", "--out-dir", str(wheels)]
    subprocess.run(command, cwd=ROOT, check=True)
    yield wheels


def main(names: list[str]) -> int:
    """Read the pages of these names or paths, or all; print what went wrong and how many went well."""
    every = list(pages_with_code())
    pages = [page for page in every if not names or page.stem in {Path(name).stem for name in names}]
    if unknown := {Path(name).stem for name in names} - {page.stem for page in every}:
        sys.exit(f"There is no page with code of the name {', '.join(sorted(unknown))}.")
    good = 0
    with tempfile.TemporaryDirectory(prefix="pages-") as name, built_wheels(Path(name)) as wheels:
        environments = Environments(Path(name), wheels, os.environ)
        for page in pages:
            folder = Path(name) / page.stem
            folder.mkdir()
            try:
                Reader(page, environments, folder).read()
            except Exception as error:
                print(f"\n{page.relative_to(ROOT)}: {error}\n", flush=True)
            else:
                good += 1
                print(page.relative_to(ROOT), flush=True)
    print(f"{good} of {len(pages)}")
    return 0 if good == len(pages) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
