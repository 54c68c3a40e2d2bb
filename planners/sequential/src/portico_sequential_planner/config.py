"""The settings of the sequential planner."""

from __future__ import annotations

from attrs import field, frozen, validators


@frozen
class SequentialSettings:
    """``[planner.sequential]`` in `portico.toml`."""

    chat: str | None = field(
        default=None, metadata={"doc": "The chat service that writes the plan, by name; the configured one by default."}
    )
    manual_tokens: int = field(
        default=6_000,
        validator=validators.ge(1),
        metadata={
            "doc": "How many tokens the manual of the functions may take, as estimated; those that the goal speaks "
            "of come first, whole."
        },
    )
    manual: str = field(
        default="text",
        validator=validators.in_(("text", "schema")),
        metadata={"doc": "How the manual is written: 'text', short, or 'schema', the JSON Schemas of each function."},
    )
    repairs: int = field(
        default=2,
        validator=[validators.ge(0), validators.le(20)],
        metadata={"doc": "How often a reply that is no plan is sent back to the model; 0 to 20."},
    )
    replans: int = field(
        default=2,
        validator=[validators.ge(0), validators.le(20)],
        metadata={"doc": "How often a plan that failed half-way is followed by a new one; 0 to 20."},
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
        validator=validators.optional(validators.ge(1)),
        metadata={"doc": "How many tokens a reply may have; the service's own bound by default."},
    )
    seed: int | None = field(default=None, metadata={"doc": "Asks for the same draw each time, of services that can."})
