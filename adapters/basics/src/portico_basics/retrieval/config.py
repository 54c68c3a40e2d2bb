"""The settings of the retrieval planner."""

from __future__ import annotations

from attrs import field, frozen, validators


@frozen
class RetrievalSettings:
    """``[planner.retrieval]`` in `portico.toml`."""

    passages: int = field(
        default=8,
        validator=[validators.ge(1), validators.le(100)],
        metadata={"doc": "How many passages the answer is made from, after fusing; 1 to 100."},
    )
    per_source: int = field(
        default=10,
        validator=[validators.ge(1), validators.le(100)],
        metadata={"doc": "How many passages each source is asked for; 1 to 100."},
    )
    chat: str | None = field(
        default=None,
        metadata={"doc": "The chat service that writes the answer, by name; the configured one by default."},
    )
