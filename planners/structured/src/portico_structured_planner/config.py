"""The settings of the structured planner."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen, validators

_TOKENS: Any = validators.optional([validators.ge(16), validators.le(1_000_000)])


@frozen(kw_only=True)
class StructuredSettings:
    """``[planner.structured]`` in `portico.toml`.

    >>> StructuredSettings(max_steps=5).one_step
    False
    """

    chat: str | None = field(
        default=None, metadata={"doc": "The chat service that writes the plan, by name; the configured one by default."}
    )
    one_step: bool = field(
        default=False,
        metadata={
            "doc": "Run each step before the next one is written, which then sees its result. Without it the whole "
            "plan is written and checked before anything runs."
        },
    )
    max_steps: int = field(
        default=20,
        validator=[validators.ge(1), validators.le(1_000)],
        metadata={"doc": "Steps of one plan at most, 1 to 1,000; the loop's own budget holds too."},
    )
    min_steps: int = field(
        default=0,
        validator=[validators.ge(0), validators.le(1_000)],
        metadata={"doc": "Steps before which the model can neither finish nor give up. For models that end too soon."},
    )
    force_references: bool = field(
        default=False,
        metadata={
            "doc": "Let an argument be nothing but a reference where an earlier result fits. For small models, which "
            "make values up instead."
        },
    )
    give_up: bool = field(
        default=True,
        metadata={"doc": "Let the model say that the goal cannot be reached. Small models say so of anything."},
    )
    repairs: int = field(
        default=2,
        validator=[validators.ge(0), validators.le(20)],
        metadata={"doc": "How often a step that is not valid is sent back with its faults, 0 to 20."},
    )
    manual_tokens: int | None = field(
        default=6_000,
        validator=_TOKENS,
        metadata={
            "doc": "Tokens for the manual of the functions; only those that fit are offered, relevant ones first."
        },
    )
    text_length: int = field(
        default=500,
        validator=[validators.ge(1), validators.le(100_000)],
        metadata={
            "doc": "Characters of a text that the model writes, at most. OpenAI's strict mode has no such limit."
        },
    )
    instructions: str = field(
        default="", metadata={"doc": "Your own text at the end of the instructions for the model."}
    )
    max_tokens: int | None = field(
        default=1_500,
        validator=_TOKENS,
        metadata={"doc": "Tokens of one step at most; a reply that is cut there is asked for again."},
    )
    temperature: float | None = field(
        default=None,
        validator=validators.optional([validators.ge(0), validators.le(2)]),
        metadata={"doc": "How freely the model writes, 0 to 2; the service's own value by default."},
    )
    top_p: float | None = field(
        default=None,
        validator=validators.optional([validators.ge(0), validators.le(1)]),
        metadata={"doc": "Which share of the likely tokens is drawn from, 0 to 1; the service's own by default."},
    )
    seed: int | None = field(default=None, metadata={"doc": "Asks for the same draw each time, of services that can."})
