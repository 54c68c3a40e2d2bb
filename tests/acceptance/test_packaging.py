"""What a user installs works: core alone, and the whole by pip from a clone."""

from __future__ import annotations

import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from tests.acceptance.environments import Environment, new_environment

ROOT = Path(__file__).parents[2]

# These fetch the build backend from the package index, and run outside the process that refuses connections.
pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]


@pytest.fixture
def core_wheel(wheels: dict[str, Path]) -> Path:
    return wheels["portico-core"]


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


def test_core_installs_and_imports_alone(core_wheel: Path, outside: Environment, tmp_path: Path) -> None:
    """Every module of it, with warnings as errors, where there is nothing else: `-S` shuts out what is installed."""
    target = tmp_path / "alone"
    outside.install("--no-deps", "--no-index", f"--target={target}", core_wheel)
    # The file is uv's own.
    assert {path.name.partition("-")[0] for path in target.iterdir()} - {".lock"} == {"portico", "portico_core"}
    script = """
import importlib.util, pkgutil, sys
assert not any(map(importlib.util.find_spec, ["pip", "attrs", "portico"]))
sys.path.append(sys.argv[1])
import portico
names = ["portico", *(module.name for module in pkgutil.walk_packages(portico.__path__, "portico."))]
for name in names:
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", ()):
        getattr(module, public)
print(len(names))
"""
    said = outside.run("python", "-I", "-S", "-W", "error", "-c", script, target, folder=tmp_path)
    sources = [file for file in (ROOT / "core" / "src" / "portico").rglob("*.py") if file.name != "__init__.py"]
    assert int(said) >= len(sources)


@pytest.mark.parametrize("by_pip", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["uv", "pip"])
def test_a_clone_installs_as_a_working_portico(
    checkout: Path, tmp_path: Path, variables: dict[str, str], by_pip: bool
) -> None:
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "LOCALAPPDATA": str(tmp_path / "cache")}
    # Pip takes five times as long.
    environment = new_environment(tmp_path / "venv", variables, variables | home, by_python=by_pip)
    # What builds them is there once: it would be installed anew for each of forty folders, which doubles the time.
    # Nor is all compiled of which little runs.
    environment.install("hatchling>=1.27", "editables")
    installing = environment.pip if by_pip else environment.install
    quick = ["--no-build-isolation", *(["--no-compile"] if by_pip else [])]
    installing(*(["install"] if by_pip else []), *quick, "-c", checkout / "constraints.txt", checkout)

    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "kettle.md").write_text(
        "# Kettle\n\nDescale the kettle with vinegar once a month.\n\n# Lamp\n\nThe lamp takes a bulb of nine watts.\n",
        "utf-8",
    )
    assert "0." in environment.run("portico", "--version", folder=tmp_path)
    question = "How often do I descale the kettle?"
    answer = environment.run("portico", "ask", question, "--docs", documents, folder=tmp_path)
    assert "vinegar" in answer
    assert "kettle.md" in answer
