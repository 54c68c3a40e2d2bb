"""The settings of the connection, the journal and the vectors."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen, validators

from portico.plugins import Secret, ValueForm

_SCHEMA = ValueForm(
    "(?!pg_)[A-Za-z_][A-Za-z0-9_-]{0,62}", "up to 63 letters, digits, _ and -, a letter first, not beginning with pg_"
)


@frozen(kw_only=True)
class ConnectionSettings:
    """Which database, and how it is reached.

    >>> ConnectionSettings(uri=Secret("postgresql://ada:secret@db.example/portico")).schema
    'portico'

    Raises ``ValueError`` for an invalid URI, without quoting it, and for a number out of its range.
    """

    uri: Secret = field(
        validator=ValueForm.database_uri("postgresql", "postgres"),
        metadata={
            "doc": "The database, as `postgresql://user:password@host:5432/database`, with the options of libpq: "
            "`?sslmode=verify-full`. Needed."
        },
    )
    schema: str = field(
        default="portico",
        validator=_SCHEMA,
        metadata={"doc": "The schema that the tables are in; it is made where it is missing."},
    )
    pool_size: int = field(
        default=8,
        validator=[validators.ge(1), validators.le(1_000)],
        metadata={"doc": "Connections of one process at most. They are opened as they are needed."},
    )
    connect_timeout: float = field(
        default=10.0,
        validator=[validators.ge(1), validators.le(600)],
        metadata={"doc": "Seconds to wait for a connection, also while the server restarts."},
    )
    statement_timeout: float = field(
        default=30.0,
        validator=[validators.ge(0.1), validators.le(86_400)],
        metadata={"doc": "Seconds that the server may take for one statement."},
    )
    transaction_pooler: bool = field(
        default=False,
        metadata={
            "doc": "Whether a pooler such as PgBouncer in transaction mode stands before the server. Nothing is kept "
            "on a session then: no prepared statements, and `statement_timeout` is the client's only."
        },
    )


@frozen(kw_only=True)
class PostgresRunSettings(ConnectionSettings):
    """``[runs.postgres]`` in `portico.toml`.

    >>> PostgresRunSettings(uri=Secret("postgresql://db.example/portico")).lease_seconds
    60.0
    """

    statement_timeout: float = field(
        default=10.0,
        validator=[validators.ge(0.1), validators.le(3_600)],
        metadata={"doc": "Seconds that the server may take for one statement, such as to write an entry."},
    )
    lease_seconds: float = field(
        default=60.0,
        validator=[validators.ge(2), validators.le(86_400)],
        metadata={
            "doc": "Seconds after which the run of a silent process is free; a process at work renews its lease three "
            "times as often."
        },
    )
    keep_days: float = field(
        default=90.0,
        validator=[validators.ge(0), validators.le(36_500)],
        metadata={
            "doc": "Days that runs are kept after they ended; paused, uncertain and interrupted ones are always kept."
        },
    )


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
    language: str = field(
        default="english",
        validator=validators.matches_re(r"[^\x00-\x1f\ud800-\udfff]{1,200}"),
        metadata={
            "doc": "The text search configuration of PostgreSQL by which words are known in new namespaces, such as "
            "`german`, or `simple` for none in particular. It counts for hybrid search."
        },
    )
