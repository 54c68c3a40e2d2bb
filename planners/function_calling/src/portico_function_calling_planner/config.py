"""The settings of the function calling planner."""

from __future__ import annotations

from attrs import field, frozen, validators


@frozen
class FunctionCallingSettings:
    """``[planner.function_calling]`` in `portico.toml`.

    >>> FunctionCallingSettings(manual_tokens=4_000).observation_tokens
    8000
    """

    chat: str | None = field(
        default=None,
        metadata={"doc": "The chat service that calls the functions, by name; the configured one by default."},
    )
    manual_tokens: int = field(
        default=16_000,
        validator=[validators.ge(50), validators.le(1_000_000)],
        metadata={"doc": "Tokens that the tools may take in a request; the relevant functions come first."},
    )
    transcript_tokens: int = field(
        default=24_000,
        validator=[validators.ge(200), validators.le(1_000_000)],
        metadata={"doc": "Tokens that all calls and results so far may take; the oldest results shrink first."},
    )
    observation_tokens: int = field(
        default=8_000,
        validator=[validators.ge(60), validators.le(1_000_000)],
        metadata={"doc": "Tokens of one call's result in the prompt at most; a longer one is shortened, with a note."},
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
