"""The settings of the stepwise planner."""

from __future__ import annotations

from attrs import field, frozen, validators


@frozen
class StepwiseSettings:
    """``[planner.stepwise]`` in `portico.toml`.

    >>> StepwiseSettings(observation_tokens=500).repairs
    2
    """

    chat: str | None = field(
        default=None, metadata={"doc": "The chat service that thinks, by name; the configured one by default."}
    )
    repairs: int = field(
        default=2,
        validator=[validators.ge(0), validators.le(20)],
        metadata={"doc": "How often a reply that cannot be read is sent back before the planner gives up; 0 to 20."},
    )
    manual_tokens: int = field(
        default=8_000,
        validator=[validators.ge(50), validators.le(1_000_000)],
        metadata={"doc": "Tokens that the manual of the functions may take; the relevant ones come first."},
    )
    transcript_tokens: int = field(
        default=12_000,
        validator=[validators.ge(200), validators.le(1_000_000)],
        metadata={"doc": "Tokens that all steps so far may take in the prompt; the oldest results shrink first."},
    )
    observation_tokens: int = field(
        default=4_000,
        validator=[validators.ge(60), validators.le(1_000_000)],
        metadata={"doc": "Tokens of one step's result in the prompt at most; a longer one is shortened, with a note."},
    )
    instructions: str = field(
        default="", metadata={"doc": "Your own text at the end of the instructions for the model."}
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
    max_tokens: int | None = field(
        default=None,
        validator=validators.optional([validators.ge(16), validators.le(1_000_000)]),
        metadata={"doc": "Tokens of one reply at most; by default the service decides."},
    )
    seed: int | None = field(default=None, metadata={"doc": "Asks for the same draw each time, of services that can."})
