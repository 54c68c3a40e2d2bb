"""The settings of the cache of embeddings."""

from __future__ import annotations

from pathlib import Path

from attrs import field, frozen, validators


@frozen
class CachedEmbeddingsSettings:
    """``[embeddings.cached]`` in `portico.toml`.

    >>> CachedEmbeddingsSettings(of="openai").max_bytes
    500000000

    Raises ``ValueError`` for a number out of its range.
    """

    of: str = field(
        validator=validators.min_len(1),
        metadata={"doc": "The embedding generator whose vectors are kept, by its name in `use`."},
    )
    path: Path | None = field(
        default=None,
        metadata={"doc": "The folder of the cache. The default is `portico/embeddings` in the user's cache folder."},
    )
    max_bytes: int = field(
        default=500_000_000,
        validator=[validators.ge(1_000_000), validators.le(1_000_000_000_000)],
        metadata={"doc": "How large the cache's file may grow. The oldest vectors are removed first."},
    )
    wait: float = field(
        default=2.0,
        validator=[validators.ge(0), validators.le(60)],
        metadata={"doc": "Seconds to wait for another process that writes, before embedding without the cache."},
    )
