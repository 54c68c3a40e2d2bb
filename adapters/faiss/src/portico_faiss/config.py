"""The settings of the FAISS vector store."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any, Literal

from attrs import Attribute, field, frozen, validators

_CENTROIDS = re.compile(r"IVF(\d+)([kM]?)|(?:PQ|RQ|LSQ)\d+(?:x(\d+))?")


def _factory(settings: object, attribute: Attribute[Any], value: str | None) -> None:
    try:
        if value is not None:
            # FAISS makes IVF0, and fails in each search.
            importlib.import_module("faiss").index_factory(8, re.sub(r".*IVF0\b.*", "", value))
    except (RuntimeError, MemoryError) as error:  # what does not fit 8 dimensions may fit those of the vectors
        if isinstance(error, MemoryError) or "parse" in str(error) or "stoi" in str(error):
            raise ValueError(f"factory is {value!r}, which faiss.index_factory cannot read") from error


@frozen
class FaissSettings:
    """Where the vectors lie and how they are searched.

    >>> FaissSettings().index
    'auto'

    Raises ``ValueError`` for a number out of its range and for a ``factory`` that FAISS cannot read.
    """

    path: Path | None = field(
        default=None, metadata={"doc": "The folder that holds the vectors; without it they are kept in memory only."}
    )
    index: Literal["auto", "exact", "hnsw"] = field(
        default="auto",
        validator=validators.in_(("auto", "exact", "hnsw")),
        metadata={
            "doc": "`exact` compares with every vector; `hnsw` walks a graph, which may miss some; `auto` does that "
            "for 100,000 vectors and more."
        },
    )
    factory: str | None = field(
        default=None,
        validator=_factory,
        metadata={
            "doc": "Instead of a graph, the index that `faiss.index_factory` makes of these words, as `IVF4096,PQ32`; "
            "exact until there are enough vectors to train it."
        },
    )
    search: str | None = field(
        default=None,
        metadata={"doc": "With `factory`: search parameters of FAISS, as `nprobe=32`. Not set: `nprobe=16` for IVF."},
    )
    hnsw_from: int | None = field(
        default=None,
        validator=validators.optional(validators.ge(1)),
        metadata={"doc": "Fewer vectors are searched exactly. Not set: 100,000 with `auto`, 20,000 with `hnsw`."},
    )
    hnsw_neighbours: int = field(
        default=32,
        validator=[validators.ge(4), validators.le(256)],
        metadata={"doc": "Of the graph: links per vector (M); more find better and take 8 bytes each."},
    )
    hnsw_construction: int = field(
        default=80,
        validator=validators.ge(8),
        metadata={"doc": "Of the graph: candidates looked at when a vector is linked (efConstruction)."},
    )
    hnsw_search: int = field(
        default=128,
        validator=validators.ge(8),
        metadata={
            "doc": "Of the graph: candidates looked at in a search (efSearch); more find better and take longer."
        },
    )
    wait: float = field(
        default=30.0,
        validator=validators.ge(0),
        metadata={"doc": "Seconds to wait while another process writes, before `StoreBusy`."},
    )

    def __attrs_post_init__(self) -> None:
        if self.factory is not None and self.index != "auto":
            raise ValueError(f"index is {self.index!r}, and factory chooses another one: leave one of them out")
        if self.search is not None and self.factory is None:
            raise ValueError("search is for the index of a factory: set that too, or hnsw_search")

    @property
    def centroids(self) -> int:
        """How many centroids the training of ``factory`` finds at once, which says how many vectors it takes."""
        found = _CENTROIDS.findall(self.factory or "")
        return max(1, *(int(n) << 10 * " kM".find(k or " ") if n else 1 << int(bits or 8) for n, k, bits in found), 1)

    @property
    def indexed_from(self) -> int:
        """From how many vectors on a namespace has an index."""
        if self.factory is not None:
            # FAISS warns of fewer in training.
            return max(1_000, 39 * self.centroids)
        return {"exact": sys.maxsize, "auto": self.hnsw_from or 100_000, "hnsw": self.hnsw_from or 20_000}[self.index]
