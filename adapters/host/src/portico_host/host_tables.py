"""The tables of `portico.toml` that belong to the host, and the settings of the embedded default."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen, validators

_YEAR = 31_536_000.0
_SECONDS = validators.optional(validators.and_(validators.gt(0), validators.le(_YEAR)))


@frozen
class PluginChoice:
    """``[plugins]``: which installed packages are imported at all."""

    disable: tuple[str, ...] = field(
        default=(), metadata={"doc": "Packages not to import, by entry point or distribution."}
    )
    only: tuple[str, ...] | None = field(default=None, metadata={"doc": "The only packages to import."})


@frozen
class SecretRules:
    """``[secrets]``: where secrets may come from."""

    allow_files_inside: bool = field(
        default=False, metadata={"doc": "Allow a secret's `file` inside the folder of the configuration."}
    )


@frozen
class LoopBudget:
    """The keys beside ``use`` in ``[planner]``: the budget of a run, whichever planner it uses."""

    max_steps: int = field(default=100, validator=validators.ge(1), metadata={"doc": "Steps that one run may run."})
    max_proposals: int = field(
        default=20, validator=validators.ge(1), metadata={"doc": "Proposals that a planner may make."}
    )
    max_refusals: int = field(
        default=3, validator=validators.ge(0), metadata={"doc": "Refused proposals in a row before a run is given up."}
    )
    max_seconds: float | None = field(
        default=None, validator=_SECONDS, metadata={"doc": "Seconds that one run may take."}
    )
    step_seconds: float | None = field(
        default=None,
        validator=_SECONDS,
        metadata={"doc": "Seconds that each attempt of a step may take, where its plan does not say."},
    )
    step_attempts: int = field(
        default=1,
        validator=validators.ge(1),
        metadata={
            "doc": "How often a step is tried in all when it fails in a way that may pass, where its plan does not "
            "say; a function with effects is not tried again."
        },
    )
    reuse: bool = field(
        default=False,
        metadata={"doc": "Run the plan that was saved for the same goal and functions, and save the one that answers."},
    )


def default_settings(port: str, name: str) -> dict[str, Any]:
    """Return the settings of the embedded default: FAISS has its vectors in the user's cache folder."""
    if (port, name) != ("VectorStore", "faiss"):
        return {}
    from platformdirs import user_cache_path

    return {"path": user_cache_path("portico", appauthor=False) / "vectors"}
