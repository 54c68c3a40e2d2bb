"""The settings of the function calling planner."""

from __future__ import annotations

from attrs import field, frozen, validators


@frozen
class FunctionCallingSettings:
    """``[planner.function_calling]`` in `portico.toml`.

    >>> FunctionCallingSettings(calls=4).strict
    True
    """

    chat: str | None = field(
        default=None,
        metadata={"doc": "The chat service that calls the functions, by name; the configured one by default."},
    )
    strict: bool = field(
        default=True,
        metadata={"doc": "Offer tools in strict form to a service that takes it. It may take longer the first time."},
    )
    calls: int = field(
        default=16,
        validator=[validators.ge(1), validators.le(100)],
        metadata={"doc": "Calls of one reply that are carried out; the model learns of those beyond; 1 to 100."},
    )
    failures: int = field(
        default=3,
        validator=[validators.ge(1), validators.le(100)],
        metadata={"doc": "Replies in a row without one call that succeeds before the planner gives up; 1 to 100."},
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
    max_tokens: int | None = field(
        default=None,
        validator=validators.optional([validators.ge(16), validators.le(1_000_000)]),
        metadata={"doc": "Tokens of one reply at most; by default the service decides."},
    )
