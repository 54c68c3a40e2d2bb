"""The settings of a fused source."""

from __future__ import annotations

from attrs import field, frozen, validators


@frozen
class FusedSettings:
    """The settings of a source that uses `fused`.

    >>> FusedSettings(sources=("docs", "web")).depth
    20

    Raises ``ValueError`` for no sources, for one named twice, and for a number out of its range.
    """

    sources: tuple[str, ...] = field(
        validator=validators.min_len(1),
        metadata={"doc": "The sources to ask, by the names that they have under `[search]`.", "service": "TextSearch"},
    )
    depth: int = field(
        default=20,
        validator=[validators.ge(1), validators.le(1000)],
        metadata={
            "doc": "How many results of each source are ranked. Where more are asked for, it is a multiple of this."
        },
    )
    timeout: float | None = field(
        default=None,
        validator=validators.optional(validators.gt(0.0)),
        metadata={"doc": "Seconds that a source may take before the others answer without it. Default: its own limit."},
    )

    def __attrs_post_init__(self) -> None:
        twice = sorted({name for name in self.sources if self.sources.count(name) > 1})
        if twice:
            raise ValueError(f"sources names {', '.join(map(repr, twice))} more than once")
