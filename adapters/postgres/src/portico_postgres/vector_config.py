"""The settings of the vectors."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen, validators

from portico_postgres.config import ConnectionSettings


@frozen(kw_only=True)
class PostgresVectorSettings(ConnectionSettings):
    """``[vectors.postgres]`` in `portico.toml`.

    >>> from portico.plugins import Secret
    >>> PostgresVectorSettings(uri=Secret("postgresql://db.example/portico")).index
    'exact'
    """

    index: Literal["exact", "hnsw"] = field(
        default="exact",
        validator=validators.in_(("exact", "hnsw")),
        metadata={"doc": "`exact` compares with every vector; `hnsw` walks a graph of pgvector, for large namespaces."},
    )
    hnsw_from: int = field(
        default=10_000,
        validator=validators.ge(1),
        metadata={"doc": "With `hnsw`: the graph is made by the write with which a namespace has so many records."},
    )
    hnsw_neighbours: int = field(
        default=16,
        validator=[validators.ge(2), validators.le(100)],
        metadata={"doc": "With `hnsw`: links per vector (m). It counts when a graph is made."},
    )
    hnsw_construction: int = field(
        default=64,
        validator=[validators.ge(4), validators.le(1_000)],
        metadata={
            "doc": "With `hnsw`: candidates looked at when a vector is linked (ef_construction), at least "
            "twice `hnsw_neighbours`."
        },
    )
    hnsw_search: int = field(
        default=100,
        validator=[validators.ge(1), validators.le(1_000)],
        metadata={
            "doc": "With `hnsw`: candidates looked at in a search (ef_search); more find better, and take longer."
        },
    )
    hnsw_scan: int = field(
        default=20_000,
        validator=[validators.ge(1), validators.le(2_147_483_647)],
        metadata={"doc": "With `hnsw`: records looked at along the graph for a filter, before all are compared."},
    )
    language: str = field(
        default="english",
        validator=validators.matches_re(r"[^\x00-\x1f\ud800-\udfff]{1,200}"),
        metadata={
            "doc": "The text search configuration of PostgreSQL by which words are known in new namespaces, such as "
            "`german`, or `simple` for none in particular. It counts for hybrid search."
        },
    )
