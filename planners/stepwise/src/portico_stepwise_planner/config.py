"""The settings of the stepwise planner."""

from __future__ import annotations

from dataclasses import dataclass

from portico.plans import Asking


@dataclass(frozen=True, slots=True, kw_only=True)
class StepwiseSettings(Asking.Settings):
    """``[planner.stepwise]`` in `portico.toml`.

    >>> StepwiseSettings(observation_tokens=500).repairs
    2
    """

    repairs: int = Asking.setting(
        2, "How often a reply that cannot be read is sent back before the planner gives up; 0 to 20.", 0, 20
    )
    manual_tokens: int = Asking.setting(
        8_000, "Tokens that the manual of the functions may take; the relevant ones come first.", 50, 1_000_000
    )
    transcript_tokens: int = Asking.setting(
        12_000, "Tokens that all steps so far may take in the prompt; the oldest results shrink first.", 200, 1_000_000
    )
    observation_tokens: int = Asking.setting(
        4_000,
        "Tokens of one step's result in the prompt at most; a longer one is shortened, with a note.",
        60,
        1_000_000,
    )
