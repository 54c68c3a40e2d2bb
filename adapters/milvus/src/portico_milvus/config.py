"""The settings of the Milvus vector store."""

from __future__ import annotations

import re
from typing import Any, Literal
from urllib.parse import urlsplit

from attrs import Attribute, field, frozen, validators

from portico.plugins import Secret

_DATABASE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ADDRESS = re.compile(r"[^/\\]*:[0-9]+/?")
_PREFIX = re.compile(r"[a-z][a-z0-9]{0,59}")


def _place(_: object, attribute: Attribute[Any], value: str) -> None:
    # The value is shown only where it has no password in it.
    if not value.strip() or "\0" in value:
        raise ValueError(f"{attribute.name} is empty: give the address of a server, or a folder for Milvus Lite")
    if "://" not in value:
        # A folder is hardly called so, and would be made in silence.
        if _ADDRESS.fullmatch(value):
            raise ValueError(f"{attribute.name} is an address without http:// or https:// before it")
        return
    try:
        parts = urlsplit(value)
    except ValueError:
        # It quotes what stands between :// and the first slash, with a password.
        raise ValueError(f"{attribute.name} is no address that can be read, such as http://127.0.0.1:19530") from None
    if parts.username is not None or parts.password is not None or "@" in value:
        raise ValueError(f"{attribute.name} has a user or password in it: set token instead")
    if parts.query or parts.fragment:
        raise ValueError(
            f"{attribute.name} ends with host and port, without ? and #: set token for what you are known by"
        )
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{attribute.name} is an address like http://127.0.0.1:19530 or a folder, not {value!r}")
    if parts.path.strip("/"):
        raise ValueError(f"{attribute.name} ends with host and port, not {parts.path!r}: set database instead")
    try:
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"{attribute.name} has a port that is no number from 0 to 65535: {value!r}") from error


def _filled(_: object, attribute: Attribute[Any], value: Secret | None) -> None:
    if value is not None and not value.reveal().strip():
        raise ValueError(f"{attribute.name} is empty")


def _database(_: object, attribute: Attribute[Any], value: str | None) -> None:
    if value is not None and not _DATABASE.fullmatch(value):
        raise ValueError(f"{attribute.name} has letters, digits and _, and begins with no digit, not {value!r}")


def _prefix(_: object, attribute: Attribute[Any], value: str) -> None:
    if not _PREFIX.fullmatch(value):
        raise ValueError(f"{attribute.name} has up to 60 small letters and digits, a letter first, not {value!r}")


def _positive(_: object, attribute: Attribute[Any], value: float) -> None:
    if not 0 < value < float("inf"):
        raise ValueError(f"{attribute.name} is more than 0, not {value}")


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
        validator=_filled,
        metadata={"doc": "What the server knows you by: `user:password`, or a key. Milvus Lite has none."},
    )
    database: str | None = field(
        default=None,
        validator=_database,
        metadata={"doc": "The database in Milvus, which has to be there. Not set: the server's default one."},
    )
    prefix: str = field(
        default="portico",
        validator=_prefix,
        metadata={"doc": "What the names of the collections begin with: applications with other ones do not meet."},
    )
    consistency: Literal["strong", "session", "bounded", "eventually"] = field(
        default="strong",
        validator=validators.in_(("strong", "session", "bounded", "eventually")),
        metadata={
            "doc": "What a read waits for: `strong` sees all that was written before it, by anybody; the others wait "
            "less and may miss it."
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
        default=60.0, validator=_positive, metadata={"doc": "Seconds that one request may take, retries included."}
    )
    connect_timeout: float = field(
        default=10.0, validator=_positive, metadata={"doc": "Seconds that one connection may take to be made."}
    )
    concurrency: int = field(
        default=16,
        validator=validators.in_(range(1, 257)),
        metadata={"doc": "Requests under way at once, each in a thread; others wait."},
    )
    request_bytes: int = field(
        default=32 * 1024 * 1024,
        validator=[validators.ge(1024 * 1024), validators.le(60 * 1024 * 1024)],
        metadata={
            "doc": "Bytes of one request at most; a larger write is several, each seen whole. Servers take 64 MB."
        },
    )

    def __attrs_post_init__(self) -> None:
        if self.token is not None and not self.is_server:
            raise ValueError("token is for a server, and uri is a folder: Milvus Lite asks no one who they are")

    @property
    def is_server(self) -> bool:
        """Whether it is an address; Milvus Lite runs in this process otherwise."""
        return "://" in self.uri
