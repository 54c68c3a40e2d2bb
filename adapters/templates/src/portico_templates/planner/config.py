"""The settings of the Handlebars planner."""

from __future__ import annotations

from dataclasses import dataclass

from portico.plans import Asking


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlebarsPlannerSettings(Asking.Settings):
    """``[planner.handlebars]`` in `portico.toml`."""

    manual_tokens: int = Asking.setting(
        6_000, "Tokens that the manual of the functions may take; the relevant ones come first, whole.", 1, 1_000_000
    )
    repairs: int = Asking.setting(
        2, "How often a reply that is no usable template is sent back to the model; 0 to 20.", 0, 20
    )
    replans: int = Asking.setting(2, "How often a plan that failed half-way is followed by a new one; 0 to 20.", 0, 20)
    allow_loops: bool = Asking.setting(True, "Whether a plan may go round in loops: `each` and blocks over lists.")
