"""Environments outside the workspace, and the commands that are run in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Environment", "copy_of_the_workspace", "leaves_needed_by", "new_environment", "place_of_uv", "run"]

ROOT = Path(__file__).parents[2]


def run(
    *command: str | Path, environment: Mapping[str, str], folder: Path | None = None, code: int = 0, shell: bool = False
) -> str:
    """Run a command to its end; return what it printed. ``code`` is the exit code that it must have."""
    words = [str(part) for part in command]
    done = subprocess.run(
        words[0] if shell else words,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        shell=shell,
        check=False,
    )
    assert done.returncode == code, f"{' '.join(words)}\nended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Environment:
    """A virtual environment, with the variables that installers get, and those that its programs get."""

    folder: Path
    installing: Mapping[str, str]
    variables: Mapping[str, str]

    @property
    def scripts(self) -> Path:
        """The folder of its programs."""
        return self.folder / ("Scripts" if sys.platform == "win32" else "bin")

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.scripts / "python"

    def run(self, *command: str | Path, folder: Path | None = None, code: int = 0) -> str:
        """Run one of its programs."""
        program = self.scripts / command[0]
        return run(program, *command[1:], environment=self.variables, folder=folder, code=code)

    def enter(self, line: str, folder: Path, *, installing: bool = False) -> str:
        """Run a line as whoever has activated the environment enters it into a shell."""
        variables = self.installing if installing else self.variables
        path = os.pathsep.join([str(self.scripts), variables["PATH"]])
        # uv goes by the environment that it was itself started from, where another uv runs these tests, unless told.
        own = {"PATH": path, "VIRTUAL_ENV": str(self.folder), "UV_PYTHON": str(self.python)}
        activated = {**variables, **own}
        return run(line, environment=activated, folder=folder, shell=True)

    def pip(self, *words: str | Path) -> None:
        """Run pip."""
        run(self.python, "-m", "pip", *words, "--quiet", environment=self.installing)

    def install(self, *what: str | Path) -> None:
        """Install as fast as it goes: with uv, where that is."""
        uv = place_of_uv(self.installing)
        if uv is None:
            self.pip("install", *what)
        else:
            command = (uv, "pip", "install", "--quiet", "--python", self.python)
            run(*command, *what, environment=self.installing)

    def uninstall(self, *names: str) -> None:
        """Take these away, whether they are there or not, as fast as it goes."""
        uv = place_of_uv(self.installing)
        if uv is None:
            self.pip("uninstall", "--yes", *names)
        else:
            run(uv, "pip", "uninstall", "--quiet", "--python", self.python, *names, environment=self.installing)


def place_of_uv(variables: Mapping[str, str]) -> str | None:
    """Return where uv is, if it is."""
    return shutil.which("uv", path=variables["PATH"])


def new_environment(
    folder: Path, installing: Mapping[str, str], variables: Mapping[str, str], *, by_python: bool = False
) -> Environment:
    """Make a virtual environment that holds pip: with uv where that is, which is faster, or as Python itself does."""
    uv = None if by_python else place_of_uv(installing)
    if uv is None:
        run(sys.executable, "-m", "venv", folder, environment=installing)
    else:
        run(uv, "venv", "--quiet", "--seed", "--python", sys.executable, folder, environment=installing)
    return Environment(folder, installing, variables)


def copy_of_the_workspace(place: Path) -> Path:
    """Copy the workspace without what tools and builds have left in it, as a clone would be."""
    hidden = (".git", ".venv", ".nox", ".*cache", ".hypothesis", ".benchmarks", ".coverage*")
    left = shutil.ignore_patterns(*hidden, "__pycache__", "*.egg-info", "dist", "build", "site", "uv.lock", "data")
    shutil.copytree(ROOT, place, ignore=left)
    return place


def leaves_needed_by(names: Iterable[str], checkout: Path) -> dict[str, Path]:
    """Return the folders of these distributions and of those of ours that they depend on, by name."""
    folders: dict[str, Path] = {}
    needs: dict[str, list[str]] = {}
    for pattern in ("core", "*/*"):
        for file in checkout.glob(f"{pattern}/pyproject.toml"):
            project = tomllib.loads(file.read_text("utf-8")).get("project", {})
            folders[project["name"]] = file.parent
            needs[project["name"]] = project.get("dependencies", [])
    needed: dict[str, Path] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in folders and name not in needed:
            needed[name] = folders[name]
            waiting += needs[name]
    return needed
