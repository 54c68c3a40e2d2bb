"""The settings of the structured planner."""

from __future__ import annotations

from dataclasses import dataclass

from portico.plans import Asking


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredSettings(Asking.Settings):
    """``[planner.structured]`` in `portico.toml`.

    >>> StructuredSettings(max_steps=5).one_step
    False
    """

    one_step: bool = Asking.setting(
        False,
        "Run each step before the next one is written, which then sees its result. Without it the whole plan is "
        "written and checked before anything runs.",
    )
    max_steps: int = Asking.setting(
        20, "Steps of one plan at most, 1 to 1,000; the loop's own budget holds too.", 1, 1_000
    )
    min_steps: int = Asking.setting(
        0, "Steps before which the model can neither finish nor give up. For models that end too soon.", 0, 1_000
    )
    choices: int | None = Asking.setting(
        None, "Functions offered in one step at most, those that fit best; for small models. Not set: all.", 1, 1_000
    )
    force_references: bool = Asking.setting(
        False,
        "Let an argument be nothing but a reference where an earlier result fits. For small models, which make values "
        "up instead.",
    )
    loops: bool = Asking.setting(
        True, "Let a step run for each item of a list, and on a condition. Without it small models have less to choose."
    )
    give_up: bool = Asking.setting(
        True, "Let the model say that the goal cannot be reached. Small models say so of anything."
    )
    repairs: int = Asking.setting(2, "How often a step that is not valid is sent back with its faults, 0 to 20.", 0, 20)
    manual_tokens: int | None = Asking.setting(
        6_000,
        "Tokens for the manual of the functions; only those that fit are offered, relevant ones first.",
        16,
        1_000_000,
    )
    text_length: int = Asking.setting(
        500, "Characters of a text that the model writes, at most. OpenAI's strict mode has no such limit.", 1, 100_000
    )
    max_tokens: int | None = Asking.setting(
        1_500, "Tokens of one step at most; a reply that is cut there is asked for again.", 16, 1_000_000
    )
