"""The settings of chat and embeddings; both share what concerns the connection."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Literal
from urllib.parse import urlsplit

from attrs import Attribute, field, frozen, validators

from portico.plugins import Secret, ValueForm

_OWN_FIELDS = frozenset(
    {
        "dimensions",
        "encoding_format",
        "input",
        "messages",
        "model",
        "response_format",
        "stream",
        "stream_options",
        "tool_choice",
        "tools",
    }
)

_HEADER = "[0-9A-Za-z_-]+"
_OWN_HEADERS = {"content-length", "transfer-encoding"}


def _headers(_: object, attribute: Attribute[Any], value: Mapping[str, str | Secret]) -> None:
    for name, content in value.items():
        text = content.reveal() if isinstance(content, Secret) else content
        if not re.fullmatch(_HEADER, name) or not (text.isascii() and text.isprintable()):
            raise ValueError(f"{attribute.name} has {name!r}, which cannot be sent: a line break or an odd character")
        if name.lower() in _OWN_HEADERS:
            raise ValueError(f"{attribute.name} may not set {name}: it follows from the request")


def _further(_: object, attribute: Attribute[Any], value: Iterable[str]) -> None:
    own = sorted(_OWN_FIELDS.intersection(value))
    if own:
        raise ValueError(f"{attribute.name} may not name {', '.join(own)}: the request sets it")


_POSITIVE: Any = validators.gt(0)


@frozen(kw_only=True)
class ConnectionSettings:
    """Where a service is and how it is reached.

    >>> ConnectionSettings(model="gpt-4o-mini").host
    'api.openai.com'
    """

    model: str = field(
        validator=validators.min_len(1),
        metadata={"doc": "The model's name at the service; on Azure, the deployment's."},
    )
    api_key: Secret | None = field(
        default=None,
        validator=validators.optional(ValueForm.service_key()),
        metadata={"doc": "The key. Local servers often need none."},
    )
    base_url: str = field(
        default="https://api.openai.com/v1",
        validator=ValueForm.service_address("https://api.openai.com/v1"),
        metadata={"doc": "Address of the service, with its `/v1`: `http://127.0.0.1:8080/v1` for llama.cpp."},
    )
    api_key_header: str = field(
        default="Authorization",
        validator=ValueForm(_HEADER, "a header's name such as X-Api-Key"),
        metadata={"doc": "Header that carries the key: after `Bearer ` in `Authorization`, bare in any other."},
    )
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
        factory=dict,
        validator=_further,
        metadata={"doc": 'Further fields of every request, such as `reasoning_effort = "low"`. A request\'s own win.'},
    )
    timeout: float = field(
        default=600.0,
        validator=_POSITIVE,
        metadata={"doc": "Seconds that a call may wait for the service, retries included."},
    )
    connect_timeout: float = field(
        default=10.0, validator=_POSITIVE, metadata={"doc": "Seconds that one connection may take to be made."}
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
        validator=_POSITIVE,
        metadata={"doc": "Bytes of a reply, or of a whole stream, at most."},
    )

    @property
    def host(self) -> str:
        """The service's host, with the port where there is one."""
        return urlsplit(self.base_url).netloc

    @cached_property
    def is_openai(self) -> bool:
        """Whether OpenAI's own models answer: at OpenAI itself, or at Azure."""
        host = f".{urlsplit(self.base_url).hostname}"
        return host.endswith((".api.openai.com", ".openai.azure.com", ".services.ai.azure.com"))


@frozen(kw_only=True)
class OpenAIChatSettings(ConnectionSettings):
    """What can be set under ``[chat.openai]``.

    >>> OpenAIChatSettings(model="qwen3:8b", base_url="http://127.0.0.1:11434/v1").takes_strict
    False
    """

    stream_timeout: float = field(
        default=120.0,
        validator=_POSITIVE,
        metadata={"doc": "Seconds between two pieces of a stream. The first one has until `timeout`."},
    )
    tools: bool = field(default=True, metadata={"doc": "Whether the model can call tools."})
    response_schema: bool = field(default=True, metadata={"doc": "Whether the service holds replies to a JSON Schema."})
    json_object: bool | None = field(
        default=None,
        metadata={
            "doc": "Whether it takes `json_object`, a JSON object without a schema. Not set: only at OpenAI's and "
            "Azure's addresses."
        },
    )
    strict: bool | None = field(
        default=None,
        metadata={"doc": "Whether it takes OpenAI's strict schemas. Not set: only at OpenAI's and Azure's addresses."},
    )
    images: bool = field(default=True, metadata={"doc": "Whether the model can see images."})
    files: bool | None = field(
        default=None, metadata={"doc": "Whether it reads files. Not set: only at OpenAI's and Azure's addresses."}
    )
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] | None = field(
        default=None,
        metadata={
            "doc": "Field that carries the limit of generated tokens. Not set: `max_completion_tokens` at OpenAI's and "
            "Azure's addresses, `max_tokens` elsewhere."
        },
    )
    extras: tuple[str, ...] = field(
        default=(),
        validator=_further,
        metadata={"doc": "Names of further options that a request may carry, for servers with their own."},
    )

    @property
    def takes_strict(self) -> bool:
        """Whether strict schemas are sent."""
        return self.is_openai if self.strict is None else self.strict

    @property
    def takes_json_object(self) -> bool:
        """Whether a JSON object is asked for without a schema."""
        return self.is_openai if self.json_object is None else self.json_object

    @property
    def takes_files(self) -> bool:
        """Whether files are sent."""
        return self.is_openai if self.files is None else self.files

    @property
    def token_limit_field(self) -> str:
        """The field that carries the limit of generated tokens."""
        return self.max_tokens_field or ("max_completion_tokens" if self.is_openai else "max_tokens")


@frozen(kw_only=True)
class OpenAIEmbeddingsSettings(ConnectionSettings):
    """What can be set under ``[embeddings.openai]``.

    >>> OpenAIEmbeddingsSettings(model="text-embedding-3-small", dimensions=512).dimensions
    512
    """

    dimensions: int | None = field(
        default=None,
        validator=validators.optional(_POSITIVE),
        metadata={"doc": "Length of a vector, for models that can shorten theirs. Not set: the model's own."},
    )
    batch_size: int = field(default=128, validator=_POSITIVE, metadata={"doc": "Texts of one request at most."})
    batch_characters: int = field(
        default=200_000, validator=_POSITIVE, metadata={"doc": "Characters of one request at most, all texts together."}
    )
    max_text_characters: int = field(
        default=8_000,
        validator=_POSITIVE,
        metadata={"doc": "Characters embedded at once. The vector of a longer text is the mean of its pieces'."},
    )
    concurrency: int = field(
        default=4, validator=_POSITIVE, metadata={"doc": "Requests under way at once, for one call."}
    )
    document_prefix: str = field(
        default="",
        metadata={"doc": 'Put before each text that is searched, for models that want it: "search_document: ".'},
    )
    query_prefix: str = field(
        default="", metadata={"doc": 'Put before each text that is asked, for models that want it: "search_query: ".'}
    )
