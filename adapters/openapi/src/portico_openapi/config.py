"""The settings of a plugin made from an OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen, validators

from portico.plugins import Secret


@frozen
class OpenAPISettings:
    """What can be set for a function plugin that uses `openapi`.

    >>> OpenAPISettings(document="https://petstore.example/openapi.json").retries
    2

    Raises ``ValueError`` for a number out of its range.
    """

    document: Path | str = field(metadata={"doc": "The OpenAPI document, JSON or YAML: a file or an http(s) URL."})
    server: str | int | None = field(
        default=None,
        metadata={
            "doc": "The URL that every call goes to, or the number of one of the document's servers, from 0. "
            "Default: the first that the document names."
        },
    )
    server_variables: Mapping[str, str] = field(
        factory=dict, metadata={"doc": "Values for the variables in the URLs of the document's servers."}
    )
    credentials: Mapping[str, Secret] = field(
        factory=dict,
        metadata={
            "doc": "A secret for each security scheme of the document, by the scheme's name: a key, a token, "
            "or `user:password`."
        },
    )
    headers: Mapping[str, str] = field(
        factory=dict, metadata={"doc": "Headers for every call, such as a tenant's name. They are no secrets."}
    )
    secret_headers: Mapping[str, Secret] = field(
        factory=dict, metadata={"doc": "Headers for every call whose values are secrets."}
    )
    include: tuple[str, ...] = field(
        default=(),
        metadata={
            "doc": "The operations to take: operation ids, function names, tags, `GET /pets/*`, `/pets/**`; "
            "none takes all."
        },
    )
    exclude: tuple[str, ...] = field(
        default=(), metadata={"doc": "The operations to leave out, written as in `include`; they win over it."}
    )
    effects: tuple[str, ...] = field(
        default=(),
        metadata={"doc": "Operations, written as in `include`, that change something although they are read with GET."},
    )
    no_effects: tuple[str, ...] = field(
        default=(),
        metadata={"doc": "Operations, written as in `include`, that change nothing, such as a search sent with POST."},
    )
    timeout: float = field(
        default=30.0,
        validator=[validators.gt(0), validators.le(3600)],
        metadata={"doc": "Seconds that one answer may take, from the connection to its last byte."},
    )
    retries: int = field(
        default=2,
        validator=[validators.ge(0), validators.le(10)],
        metadata={"doc": "How often a call without effects is repeated after a failure that may pass."},
    )
    maximum_document_bytes: int = field(
        default=20_000_000,
        validator=validators.ge(1),
        metadata={"doc": "Bytes of the document, and of the documents that it refers to, at most."},
    )
    maximum_response_bytes: int = field(
        default=5_000_000, validator=validators.ge(1), metadata={"doc": "Bytes of one answer at most."}
    )
