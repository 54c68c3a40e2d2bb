"""The settings of the FAISS vector store."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from attrs import field, frozen, validators


@frozen
class FaissSettings:
    """Where the vectors lie and how they are searched.

    >>> FaissSettings().index
    'exact'

    Raises ``ValueError`` for a number out of its range.
    """

    path: Path | None = field(
        default=None, metadata={"doc": "The folder that holds the vectors; without it they are kept in memory only."}
    )
    index: Literal["exact", "hnsw"] = field(
        default="exact",
        validator=validators.in_(("exact", "hnsw")),
        metadata={"doc": "`exact` compares with every vector; `hnsw` walks a graph, for hundreds of thousands."},
    )
    hnsw_from: int = field(
        default=20_000,
        validator=validators.ge(1),
        metadata={"doc": "With `hnsw`: namespaces of fewer vectors are searched exactly, which is as fast."},
    )
    hnsw_neighbours: int = field(
        default=32,
        validator=[validators.ge(4), validators.le(256)],
        metadata={"doc": "With `hnsw`: links per vector (M); more find better and take 8 bytes each."},
    )
    hnsw_construction: int = field(
        default=80,
        validator=validators.ge(8),
        metadata={"doc": "With `hnsw`: candidates looked at when a vector is linked (efConstruction)."},
    )
    hnsw_search: int = field(
        default=128,
        validator=validators.ge(8),
        metadata={"doc": "With `hnsw`: candidates looked at in a search (efSearch); more find better and take longer."},
    )
    wait: float = field(
        default=30.0,
        validator=validators.ge(0),
        metadata={"doc": "Seconds to wait while another process writes, before `StoreBusy`."},
    )
