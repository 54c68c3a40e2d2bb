"""What a user installs works: core alone, and the whole by pip from a clone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# These fetch the build backend from the package index, and run outside the process that refuses connections.
pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def environment(outer_environment: dict[str, str]) -> dict[str, str]:
    """Give installers the user's own settings and caches, and nothing of the environment that the tests run in."""
    left_out = ("VIRTUAL_ENV", "PYTHON", "UV_PROJECT", "NOX_")
    kept = {name: value for name, value in outer_environment.items() if not name.startswith(left_out)}
    return kept | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def run(*command: str | Path, environment: dict[str, str], folder: Path | None = None) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def scripts(virtual: Path) -> Path:
    return virtual / ("Scripts" if sys.platform == "win32" else "bin")


def new_virtual_environment(folder: Path) -> Path:
    run(sys.executable, "-m", "venv", folder, environment=dict(os.environ))
    return scripts(folder)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the workspace without what tools and builds have left in it, as a clone would be."""
    copy = tmp_path_factory.mktemp("clone") / "portico"
    left = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "dist", "build", "site", "uv.lock", "data")
    shutil.copytree(ROOT, copy, ignore=left)
    return copy


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a virtual environment that holds pip; return its interpreter."""
    return new_virtual_environment(tmp_path_factory.mktemp("empty") / "venv") / "python"


@pytest.fixture(scope="module")
def core_wheel(
    checkout: Path, empty: Path, tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]
) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    command = (empty, "-m", "pip", "wheel", "--quiet", "--no-deps", f"--wheel-dir={folder}", checkout / "core")
    run(*command, environment=environment)
    (wheel,) = folder.glob("portico_core-*.whl")
    return wheel


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode("utf-8"))


def test_core_requires_nothing(core_wheel: Path) -> None:
    assert metadata(core_wheel)["Name"] == "portico-core"
    assert metadata(core_wheel).get_all("Requires-Dist") is None
    with zipfile.ZipFile(core_wheel) as archive:
        names = archive.namelist()
    assert "portico/py.typed" in names
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"portico", "portico_core"}


def test_core_installs_and_imports_alone(
    core_wheel: Path, empty: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    """Every module of it, with warnings as errors, where there is nothing else: pip is shut out by `-S`."""
    target = tmp_path / "alone"
    install = (empty, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", f"--target={target}", core_wheel)
    run(*install, environment=environment)
    assert {path.name.partition("-")[0] for path in target.iterdir()} == {"portico", "portico_core"}
    script = """
import sys
sys.path.append(sys.argv[1])
import importlib, pkgutil, portico
names = ["portico", *(module.name for module in pkgutil.walk_packages(portico.__path__, "portico."))]
for name in names:
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", ()):
        getattr(module, public)
print(len(names))
"""
    said = run(empty, "-I", "-S", "-W", "error", "-c", script, target, environment=environment, folder=tmp_path)
    sources = [file for file in (ROOT / "core" / "src" / "portico").rglob("*.py") if file.name != "__init__.py"]
    assert int(said) >= len(sources)


def test_pip_installs_a_working_portico_from_a_clone(
    checkout: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    bin_folder = new_virtual_environment(tmp_path / "venv")
    command = (bin_folder / "python", "-m", "pip", "install", "--quiet", "-c", "constraints.txt", ".")
    run(*command, environment=environment, folder=checkout)

    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "kettle.md").write_text(
        "# Kettle\n\nDescale the kettle with vinegar once a month.\n\n# Lamp\n\nThe lamp takes a bulb of nine watts.\n",
        "utf-8",
    )
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "LOCALAPPDATA": str(tmp_path / "cache")}
    portico = bin_folder / "portico"
    assert "0." in run(portico, "--version", environment=environment | home, folder=tmp_path)
    answer = run(
        *(portico, "ask", "How often do I descale the kettle?", "--docs", documents),
        environment=environment | home,
        folder=tmp_path,
    )
    assert "vinegar" in answer
    assert "kettle.md" in answer
