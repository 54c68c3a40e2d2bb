"""The settings of the Milvus vector store."""

from __future__ import annotations

import re
from typing import Any, Literal

from attrs import Attribute, field, frozen, validators

from portico.plugins import Secret, ValueForm

_ADDRESS = re.compile(r"[^/\\]*:[0-9]+/?")
_check_address = ValueForm.service_address("http://127.0.0.1:19530")
_seconds: Any = [validators.gt(0), validators.le(86_400)]


def _place(settings: object, attribute: Attribute[Any], value: str) -> None:
    if "://" in value:
        _check_address(settings, attribute, value)
    elif not value.strip() or "\0" in value:
        raise ValueError(f"{attribute.name} is empty: give the address of a server, or a folder for Milvus Lite")
    elif _ADDRESS.fullmatch(value):
        # Otherwise a folder of that name would be made. The value is not shown: it may have a password.
        raise ValueError(f"{attribute.name} is an address without http:// or https:// before it")


@frozen(kw_only=True)
class MilvusSettings:
    """Where Milvus is, and how it searches.

    >>> MilvusSettings(uri="http://127.0.0.1:19530").is_server
    True
    >>> MilvusSettings(uri="vectors.db").is_server
    False

    Raises ``ValueError`` for what is out of its range, and for a token without a server.
    """

    uri: str = field(
        validator=_place,
        metadata={"doc": "The server, like `http://127.0.0.1:19530`; or a folder, in which Milvus Lite keeps it all."},
    )
    token: Secret | None = field(
        default=None,
        validator=validators.optional(ValueForm.service_key()),
        metadata={"doc": "What the server knows you by: `user:password`, or a key. Milvus Lite has none."},
    )
    database: str | None = field(
        default=None,
        validator=validators.optional(
            ValueForm("[A-Za-z_][A-Za-z0-9_]*", "letters, digits and _, and begins with no digit")
        ),
        metadata={"doc": "The database in Milvus, which has to be there. Not set: the server's default one."},
    )
    prefix: str = field(
        default="portico",
        validator=ValueForm("[a-z][a-z0-9]{0,59}", "up to 60 small letters and digits, a letter first"),
        metadata={"doc": "What the names of the collections begin with: applications with other ones do not meet."},
    )
    consistency: Literal["strong", "session", "bounded", "eventually"] = field(
        default="strong",
        validator=validators.in_(("strong", "session", "bounded", "eventually")),
        metadata={
            "doc": "What a read waits for: `strong` sees all that was written before it, by any process; the others "
            "wait less and may miss it."
        },
    )
    index: Literal["exact", "hnsw", "auto"] = field(
        default="exact",
        validator=validators.in_(("exact", "hnsw", "auto")),
        metadata={
            "doc": "For new namespaces: `exact` compares with every vector, `hnsw` walks a graph, `auto` is the "
            "server's choice."
        },
    )
    hnsw_neighbours: int = field(
        default=32,
        validator=[validators.ge(4), validators.le(256)],
        metadata={"doc": "With `hnsw`: links per vector (M)."},
    )
    hnsw_construction: int = field(
        default=80,
        validator=validators.ge(8),
        metadata={"doc": "With `hnsw`: candidates looked at when a vector is linked (efConstruction)."},
    )
    hnsw_search: int = field(
        default=128,
        validator=validators.ge(8),
        metadata={"doc": "With `hnsw`: candidates looked at in a search (ef), never fewer than are asked for."},
    )
    timeout: float = field(
        default=60.0, validator=_seconds, metadata={"doc": "Seconds that one request may take, retries included."}
    )
    connect_timeout: float = field(
        default=10.0, validator=_seconds, metadata={"doc": "Seconds that one connection may take to be made."}
    )

    def __attrs_post_init__(self) -> None:
        if self.token is not None and not self.is_server:
            raise ValueError("token is for a server, and uri is a folder: Milvus Lite has no users")

    @property
    def is_server(self) -> bool:
        """Whether it is an address; Milvus Lite runs in this process otherwise."""
        return "://" in self.uri
