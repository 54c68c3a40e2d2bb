"""The settings of the contextual selector."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen, validators


@frozen
class ContextualSettings:
    """What can be set beside ``select = "contextual"`` under ``[functions]``.

    >>> ContextualSettings(always=("Clock-Now",)).max
    8

    Raises ``ValueError`` for a negative number and an unknown ranking.
    """

    max: int = field(
        default=8,
        validator=validators.ge(0),
        metadata={"doc": "How many functions a model sees at most, besides those in `always`."},
    )
    always: tuple[str, ...] = field(
        default=(), metadata={"doc": "Functions that are always offered, by name: `Clock-Now`, or `Clock.Now`."}
    )
    minimum_score: float | None = field(default=None, metadata={"doc": "Functions with a lower score are left out."})
    ranking: Literal["fused", "lexical", "vector"] = field(
        default="fused",
        validator=validators.in_(("fused", "lexical", "vector")),
        metadata={"doc": "`lexical` compares words and needs no embeddings, `vector` compares vectors, `fused` both."},
    )
    namespace: str = field(
        default="functions",
        validator=validators.min_len(1),
        metadata={"doc": "The namespace of the functions' vectors in the store of `[vectors]`."},
    )
