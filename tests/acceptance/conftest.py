"""What the tests of installed packages share: a copy of the workspace, its wheels, and an environment to install in."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.acceptance.environments import Environment, copy_of_the_workspace, leaves_needed_by, new_environment

INSTALLED = ("portico-ai", "portico-testkit")
# What installers do to build a wheel, as https://peps.python.org/pep-0517/ has it, for all of them in one process.
BUILD = """
import os, sys
from hatchling.build import build_wheel
for folder in sys.argv[2:]:
    os.chdir(folder)
    print(build_wheel(sys.argv[1]))
"""


@pytest.fixture(scope="session")
def variables(outer_environment: dict[str, str]) -> dict[str, str]:
    """Give installers the user's own settings and caches, and nothing of the environment that the tests run in."""
    left_out = ("VIRTUAL_ENV", "PYTHON", "PYTEST", "UV_PROJECT", "NOX_", "PORTICO_")
    kept = {name: value for name, value in outer_environment.items() if not name.startswith(left_out)}
    return kept | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the workspace as a clone would be."""
    return copy_of_the_workspace(tmp_path_factory.mktemp("clone") / "portico")


@pytest.fixture(scope="session")
def wheels(checkout: Path, tmp_path_factory: pytest.TempPathFactory, variables: dict[str, str]) -> dict[str, Path]:
    """Build the wheels of what users of the command line and authors of packages install, by distribution."""
    builder = new_environment(tmp_path_factory.mktemp("builder") / "venv", variables, variables)
    builder.install("hatchling>=1.27")
    folder = tmp_path_factory.mktemp("wheels")
    leaves = leaves_needed_by(INSTALLED, checkout)
    built = builder.run("python", "-c", BUILD, folder, *leaves.values()).split()
    return {name: folder / wheel for name, wheel in zip(leaves, built, strict=True)}


@pytest.fixture(scope="session")
def outside(
    checkout: Path, wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory, variables: dict[str, str]
) -> Environment:
    """Install the wheels into an environment outside the workspace; home and caches are of its own."""
    place = tmp_path_factory.mktemp("outside")
    home = {name: str(place) for name in ("HOME", "USERPROFILE", "LOCALAPPDATA", "APPDATA")}
    folders = {f"XDG_{kind}_HOME": str(place / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA", "STATE")}
    environment = new_environment(place / "venv", variables, variables | home | folders)
    environment.install("-c", checkout / "constraints.txt", *wheels.values())
    return environment
