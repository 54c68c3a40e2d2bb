"""The settings of the embedded generator."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen, validators


@frozen
class WordllamaSettings:
    """What can be set under ``[embeddings.wordllama]``.

    >>> WordllamaSettings().dimensions
    256
    """

    dimensions: Literal[256, 128, 64] = field(
        default=256,
        validator=validators.in_((256, 128, 64)),
        metadata={"doc": "Length of a vector. The first 128 or 64 numbers are their own coarser model."},
    )
    batch_size: int = field(
        default=256,
        validator=validators.ge(1),
        metadata={"doc": "Texts embedded between two moments at which a call can be cancelled."},
    )
