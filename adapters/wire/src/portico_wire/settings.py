"""What services that are reached over HTTP have in their settings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

from attrs import Attribute, field, frozen, validators

from portico.plugins import Secret, ValueForm

HEADER = "[0-9A-Za-z_-]+"
_OWN_HEADERS = {"content-length", "transfer-encoding"}


def _headers(_: object, attribute: Attribute[Any], value: Mapping[str, str | Secret]) -> None:
    for name, content in value.items():
        text = content.reveal() if isinstance(content, Secret) else content
        if not re.fullmatch(HEADER, name) or not (text.isascii() and text.isprintable()):
            raise ValueError(f"{attribute.name} has {name!r}, which cannot be sent: a line break or an odd character")
        if name.lower() in _OWN_HEADERS:
            raise ValueError(f"{attribute.name} may not set {name}: it follows from the request")


def check_further(settings: ConnectionSettings, attribute: Attribute[Any], value: Iterable[str]) -> None:
    """Refuse names of fields that the request itself sets."""
    own = sorted(settings.own_fields.intersection(value))
    if own:
        raise ValueError(f"{attribute.name} may not name {', '.join(own)}: the request sets it")


def _price(_: object, attribute: Attribute[Any], value: Mapping[str, float]) -> None:
    if value and (not value.keys() <= {*PRICED} or not {"input", "output"} <= value.keys()):
        raise ValueError(
            f"{attribute.name} has input and output, and may have cached and cache_written; not {[*value]}"
        )
    for name, amount in value.items():
        if not 0 <= amount < math.inf:
            raise ValueError(f"{attribute.name} has {name} = {amount}: give US dollars for a million tokens")


PRICED = ("input", "output", "cached", "cache_written")
"""The kinds of tokens that have a price."""
POSITIVE: Any = validators.gt(0)


@frozen(kw_only=True)
class ConnectionSettings:
    """Where a service is and how it is reached.

    >>> ConnectionSettings(model="m", base_url="http://127.0.0.1:8080/v1").host
    '127.0.0.1:8080'
    """

    own_fields: ClassVar[frozenset[str]] = frozenset()
    """The fields of a body that requests set themselves."""

    model: str = field(validator=validators.min_len(1), metadata={"doc": "The model's name at the service."})
    api_key: Secret | None = field(
        default=None,
        validator=validators.optional(ValueForm.service_key()),
        metadata={"doc": "The key. Local servers often need none."},
    )
    base_url: str = field(validator=validators.min_len(1), metadata={"doc": "Address of the service."})
    headers: dict[str, str] = field(
        factory=dict,
        validator=_headers,
        metadata={"doc": "Further headers of every request. Keys belong in `api_key` or `secret_headers`."},
    )
    secret_headers: dict[str, Secret] = field(
        factory=dict,
        validator=_headers,
        metadata={"doc": "Further headers of every request whose values are secrets, such as a gateway's token."},
    )
    query: dict[str, str] = field(factory=dict, metadata={"doc": "Further query parameters of every request."})
    body: dict[str, Any] = field(
        factory=dict, validator=check_further, metadata={"doc": "Further fields of every request. A request's own win."}
    )
    price: dict[str, float] = field(
        factory=dict,
        validator=_price,
        metadata={
            "doc": "US dollars for a million tokens: `{ input = 0.15, output = 0.6 }`, with `cached` and "
            "`cache_written` where these differ from `input`. Not set: the published price, where there is one."
        },
    )
    timeout: float = field(
        default=600.0,
        validator=POSITIVE,
        metadata={"doc": "Seconds that a call may wait for the service, retries included."},
    )
    connect_timeout: float = field(
        default=10.0, validator=POSITIVE, metadata={"doc": "Seconds that one connection may take to be made."}
    )
    max_retries: int = field(
        default=2,
        validator=validators.ge(0),
        metadata={
            "doc": "Times that a call is tried again after a failed connection, 408, 409, 429 or 5xx, "
            "when `Retry-After` says."
        },
    )
    max_reply_bytes: int = field(
        default=64 * 1024 * 1024,
        validator=POSITIVE,
        metadata={"doc": "Bytes of a reply, or of a whole stream, at most."},
    )

    @property
    def address(self) -> str:
        """The service's address: ``base_url``, unless a service names another."""
        return self.base_url

    @property
    def cache_tokens(self) -> str:
        """The kind of tokens that are written to the cache, as genai-prices names it."""
        return "cache_write_tokens"

    @property
    def host(self) -> str:
        """The service's host, with the port where there is one."""
        return urlsplit(self.address).netloc


@frozen(kw_only=True, slots=False)
class BatchSettings:
    """How texts go out to be embedded. It has no slots, so that it can stand beside a service's own settings.

    >>> BatchSettings(dimensions=512).batch_size
    128
    """

    dimensions: int | None = field(
        default=None,
        validator=validators.optional(POSITIVE),
        metadata={"doc": "Length of a vector, for models that can shorten theirs. Not set: the model's own."},
    )
    batch_size: int = field(default=128, validator=POSITIVE, metadata={"doc": "Texts of one request at most."})
    batch_characters: int = field(
        default=200_000, validator=POSITIVE, metadata={"doc": "Characters of one request at most, all texts together."}
    )
    max_text_characters: int = field(
        default=8_000,
        validator=POSITIVE,
        metadata={"doc": "Characters embedded at once. The vector of a longer text is the mean of its pieces'."},
    )
    concurrency: int = field(
        default=4, validator=POSITIVE, metadata={"doc": "Requests under way at once, for one call."}
    )
    document_prefix: str = field(
        default="",
        metadata={"doc": 'Put before each text that is searched, for models that want it: "search_document: ".'},
    )
    query_prefix: str = field(
        default="", metadata={"doc": 'Put before each text that is asked, for models that want it: "search_query: ".'}
    )
