"""Tells pip that this checkout needs every distribution of the workspace, with its extras, but the testkit."""

from __future__ import annotations

import tomllib
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

FOLDERS = ("core", "adapters/*", "connectors/*", "planners/*")


class Workspace(MetadataHookInterface):
    """Fills in `dependencies` of the root project."""

    def update(self, metadata: dict[str, object]) -> None:
        root = Path(self.root)
        files = [file for pattern in FOLDERS for file in sorted(root.glob(f"{pattern}/pyproject.toml"))]
        metadata["dependencies"] = [f"{_with_extras(file)} @ {file.parent.as_uri()}" for file in files]


def _with_extras(file: Path) -> str:
    project = tomllib.loads(file.read_text("utf-8"))["project"]
    extras = ",".join(project.get("optional-dependencies", {}))
    return f"{project['name']}[{extras}]" if extras else str(project["name"])
