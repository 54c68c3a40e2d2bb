"""Puts the templates of `portico new` into what is built of the command line.

They are in `docs/template`, outside this folder. A wheel gets them, and so does an sdist, from which another wheel may
be built where there is no `docs`: hatch's own `force-include` would fail there. An editable installation finds them
in `docs`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_LEFT_BY_TOOLS = {"__pycache__", "build", "dist"}


class TemplatesHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds each file of the templates by name."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Say where each file goes; none where they are among the sources already, or those are used as they are."""
        templates = Path(self.root).parents[1] / "docs" / "template"
        inside = "portico_cli/template" if self.target_name == "wheel" else "src/portico_cli/template"
        if version == "editable" or (Path(self.root) / "src/portico_cli/template").is_dir():
            return
        files = [
            path for path in sorted(templates.rglob("*")) if path.is_file() and _belongs(path.relative_to(templates))
        ]
        if not files:
            raise FileNotFoundError(f"there are no templates in {templates}")
        build_data["force_include"] |= {
            str(path): f"{inside}/{path.relative_to(templates).as_posix()}" for path in files
        }


def _belongs(path: Path) -> bool:
    folders = path.parts[:-1]
    left = any(folder.startswith(".") or folder in _LEFT_BY_TOOLS for folder in folders)
    return not left and path.suffix != ".pyc"
