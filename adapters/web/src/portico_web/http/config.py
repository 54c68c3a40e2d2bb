"""The settings of the HTTP client."""

from __future__ import annotations

from pathlib import Path

from attrs import field, frozen, validators

from portico.plugins import Secret

_SECONDS = validators.and_(validators.gt(0.0), validators.le(3600.0))


@frozen
class HttpxSettings:
    """What can be set under ``[http.httpx]``.

    >>> HttpxSettings(contact="ports@example.org").retries
    2

    Raises ``ValueError`` for a number out of its range, a contact that no header can hold, and a user name or
    password without a proxy.
    """

    contact: str | None = field(
        default=None,
        metadata={
            "doc": "How those who run a service can reach you: a mail address or a page. Each service sees it in the "
            "User-Agent."
        },
    )
    connect_timeout: float = field(
        default=5.0, validator=_SECONDS, metadata={"doc": "Seconds that a connection may take to be made."}
    )
    read_timeout: float = field(
        default=20.0, validator=_SECONDS, metadata={"doc": "Seconds of silence after which an answer is given up."}
    )
    total_timeout: float = field(
        default=60.0,
        validator=_SECONDS,
        metadata={"doc": "Seconds that a request may take in all, with its repetitions and the waits between them."},
    )
    max_bytes: int = field(
        default=10_000_000,
        validator=validators.ge(1),
        metadata={"doc": "The most bytes that an answer may have, after decompression."},
    )
    retries: int = field(
        default=2,
        validator=[validators.ge(0), validators.le(10)],
        metadata={"doc": "How often a request is sent again, after a lost connection or an answer of 429 or 503."},
    )
    max_wait: float = field(
        default=10.0,
        validator=[validators.ge(0.0), validators.le(3600.0)],
        metadata={
            "doc": "The most seconds to wait before a request is sent again. A service that asks for more "
            "(Retry-After) is not waited for: the connector reports its limit."
        },
    )
    max_connections: int = field(
        default=20,
        validator=validators.ge(1),
        metadata={"doc": "The most connections open at the same time; more requests wait for one."},
    )
    proxy: str | None = field(
        default=None, metadata={"doc": "The address of an HTTP proxy for all requests, without user name and password."}
    )
    proxy_user: str | None = field(default=None, metadata={"doc": "The user name for the proxy."})
    proxy_password: Secret | None = field(default=None, metadata={"doc": "The password for the proxy."})
    ca_file: Path | None = field(
        default=None,
        metadata={
            "doc": "A file of certificates (PEM) to trust instead of the public ones, as a company's own proxy needs."
        },
    )
    trust_env: bool = field(
        default=True,
        metadata={"doc": "Whether HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY and SSL_CERT_FILE are followed."},
    )

    def __attrs_post_init__(self) -> None:
        if self.contact is not None and not (self.contact.isascii() and self.contact.isprintable()):
            raise ValueError("contact goes into a header: write it in one line of ASCII")
        if (self.proxy_user is None) != (self.proxy_password is None):
            raise ValueError("proxy_user and proxy_password are given together or not at all")
        if self.proxy is None and self.proxy_user is not None:
            raise ValueError("proxy_user needs a proxy")
        if self.proxy is not None and "@" in self.proxy.partition("?")[0]:
            raise ValueError("proxy holds a user name or password: set proxy_user and proxy_password instead")
