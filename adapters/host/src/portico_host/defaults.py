"""The embedded default: what runs where nothing is configured, as data.

Which plugin a port uses then is in the table of ports (`portico.ports.PORTS`); here are the settings that it
gets. They apply only where ``use`` is not written, for the choice of a plugin is the choice of its defaults
too: ``use = "faiss"`` without a path is a store in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["default_settings"]


def _vectors_path() -> Any:
    from platformdirs import user_cache_path

    return user_cache_path("portico", appauthor=False) / "vectors"


_SETTINGS: Mapping[tuple[str, str], Mapping[str, Callable[[], Any]]] = {
    ("VectorStore", "faiss"): {"path": _vectors_path},
}


def default_settings(port: str, name: str) -> dict[str, Any]:
    """Return the settings that the embedded default has for a plugin chosen by nobody."""
    return {key: make() for key, make in _SETTINGS.get((port, name), {}).items()}
