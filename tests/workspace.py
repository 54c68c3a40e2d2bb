"""Tells pip that this checkout's own package needs every distribution of the workspace but the testkit."""

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
        names = [tomllib.loads(file.read_text("utf-8"))["project"]["name"] for file in files]
        metadata["dependencies"] = [f"{name} @ {file.parent.as_uri()}" for name, file in zip(names, files, strict=True)]
