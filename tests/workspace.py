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
        projects = [tomllib.loads(file.read_text("utf-8"))["project"] for file in files]
        here = [f"{project['name']} @ {file.parent.as_uri()}" for project, file in zip(projects, files, strict=True)]
        # Not `name[extra] @ address`: pip takes that for another requirement than the plain name.
        extras = [
            line for project in projects for some in project.get("optional-dependencies", {}).values() for line in some
        ]
        metadata["dependencies"] = [*here, *extras]
