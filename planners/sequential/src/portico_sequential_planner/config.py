"""The settings of the sequential planner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from portico.plans import Asking


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialSettings(Asking.Settings):
    """``[planner.sequential]`` in `portico.toml`."""

    manual_tokens: int = Asking.setting(
        6_000, "Tokens that the manual of the functions may take; the relevant ones come first, whole.", 1, 1_000_000
    )
    manual: Literal["text", "schema"] = Asking.setting(
        "text", "How the manual is written: 'text', short, or 'schema', the JSON Schemas of each function."
    )
    repairs: int = Asking.setting(2, "How often a reply that is no plan is sent back to the model; 0 to 20.", 0, 20)
    replans: int = Asking.setting(2, "How often a plan that failed half-way is followed by a new one; 0 to 20.", 0, 20)
