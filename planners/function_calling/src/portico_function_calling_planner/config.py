"""The settings of the function calling planner."""

from __future__ import annotations

from dataclasses import dataclass

from portico.plans import Asking


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCallingSettings(Asking.Settings):
    """``[planner.function_calling]`` in `portico.toml`.

    >>> FunctionCallingSettings(manual_tokens=4_000).observation_tokens
    8000
    """

    manual_tokens: int = Asking.setting(
        16_000, "Tokens that the tools may take in a request; the relevant functions come first.", 50, 1_000_000
    )
    transcript_tokens: int = Asking.setting(
        24_000, "Tokens that all calls and results so far may take; the oldest results shrink first.", 200, 1_000_000
    )
    observation_tokens: int = Asking.setting(
        8_000,
        "Tokens of one call's result in the prompt at most; a longer one is shortened, with a note.",
        60,
        1_000_000,
    )
