"""Distributions made for tests, put where Python finds them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

WORKSHOP = Path(__file__).parents[2] / "adapters" / "serve" / "tests" / "packages" / "portico_workshop"
"""Functions that can be watched, a source of two passages, and a planner and a chat that obey the goal."""


def write_metadata(site: Path, name: str, entry_points: Mapping[str, Mapping[str, str]]) -> None:
    """Make a folder look as if a distribution were installed in it."""
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    groups = (
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in points.items())
        for group, points in entry_points.items()
    )
    (info / "entry_points.txt").write_text("\n".join(groups))


def install_package(site: Path, package: Path) -> None:
    """Install a folder `portico_NAME` that has a plugin module."""
    shutil.copytree(package, site / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    name = package.name.removeprefix("portico_")
    write_metadata(site, f"portico-{name}", {"portico": {name: f"{package.name}._plugin"}})


def forget(site: Path) -> None:
    """Forget the modules of a folder, so that the next test imports its own."""
    for name, module in list(sys.modules.items()):
        if str(site) in str(getattr(module, "__file__", "")):
            del sys.modules[name]
