"""The tables of `portico.toml` that belong to the host, and the settings of the embedded default."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["LoopBudget", "PluginChoice", "SecretRules", "default_settings"]

_MORE_THAN_0 = {"exclusiveMinimum": 0}


@dataclass(frozen=True, slots=True)
class PluginChoice:
    """``[plugins]``: which installed packages are imported at all."""

    disable: tuple[str, ...] = field(
        default=(), metadata={"doc": "Packages not to import, by entry point or distribution."}
    )
    only: tuple[str, ...] | None = field(default=None, metadata={"doc": "The only packages to import."})


@dataclass(frozen=True, slots=True)
class SecretRules:
    """``[secrets]``: where secrets may come from."""

    allow_files_inside: bool = field(
        default=False, metadata={"doc": "Allow a secret's `file` inside the folder of the configuration."}
    )


@dataclass(frozen=True, slots=True)
class LoopBudget:
    """The keys beside ``use`` in ``[planner]``: what the loop does with whichever planner."""

    max_steps: int = field(default=100, metadata={"doc": "Steps that one run may run.", "limits": _MORE_THAN_0})
    max_proposals: int = field(
        default=20, metadata={"doc": "Proposals that a planner may make.", "limits": _MORE_THAN_0}
    )
    max_refusals: int = field(
        default=3, metadata={"doc": "Refused proposals in a row before a run is given up.", "limits": {"minimum": 0}}
    )
    max_seconds: float | None = field(
        default=None, metadata={"doc": "Seconds that one run may take.", "limits": _MORE_THAN_0}
    )
    step_seconds: float | None = field(
        default=None,
        metadata={
            "doc": "Seconds that each attempt of a step may take, where its plan does not say.",
            "limits": _MORE_THAN_0,
        },
    )
    step_attempts: int = field(
        default=1,
        metadata={
            "doc": "How often a step is tried in all when it fails in a way that may pass, where its plan does not "
            "say; a function with effects never is again.",
            "limits": _MORE_THAN_0,
        },
    )
    reuse: bool = field(
        default=False,
        metadata={"doc": "Run the plan that was saved for the same goal and functions, and save the one that answers."},
    )

    def __post_init__(self) -> None:
        for name in ("max_steps", "max_proposals", "max_seconds", "step_seconds", "step_attempts"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                bound = "finite (leave it out for no bound)" if value == math.inf else "more than 0"
                raise ValueError(f"{name} must be {bound}, not {value}")
        if self.max_refusals < 0:
            raise ValueError(f"max_refusals must be at least 0, not {self.max_refusals}")


def _vectors_path() -> Any:
    from platformdirs import user_cache_path

    return user_cache_path("portico", appauthor=False) / "vectors"


_SETTINGS: Mapping[tuple[str, str], Mapping[str, Callable[[], Any]]] = {
    ("VectorStore", "faiss"): {"path": _vectors_path}
}


def default_settings(port: str, name: str) -> dict[str, Any]:
    """Return the settings that the embedded default has for a plugin chosen by no one."""
    return {key: make() for key, make in _SETTINGS.get((port, name), {}).items()}
