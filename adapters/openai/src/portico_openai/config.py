"""The settings of chat and embeddings; both share what concerns the connection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from attrs import Attribute, field, frozen, validators

from portico.plugins import Secret

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

_OWN_HEADERS = {"content-length", "transfer-encoding"}


def _filled(_: object, attribute: Attribute[Any], value: str) -> None:
    if not value.strip():
        raise ValueError(f"{attribute.name} is empty")


def _address(_: object, attribute: Attribute[Any], value: str) -> None:
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"{attribute.name} is of the form https://host/v1, not {value!r}")
    if parts.username or parts.password:
        raise ValueError(f"{attribute.name} has a user or password in it: set api_key instead")


def _key(_: object, attribute: Attribute[Any], value: Secret | None) -> None:
    # A key that was copied with a line break would be refused deep inside of the HTTP client, and shown there.
    if value is not None and not (value.reveal().isascii() and value.reveal().isprintable()):
        raise ValueError(f"{attribute.name} has characters in it that no key has, perhaps a line break")


def _is_header(name: str) -> bool:
    return name.isascii() and name.replace("-", "").replace("_", "").isalnum()


def _header_name(_: object, attribute: Attribute[Any], value: str) -> None:
    if not _is_header(value):
        raise ValueError(f"{attribute.name} is a header's name such as X-Api-Key, not {value!r}")


def _header_value(_: object, attribute: Attribute[Any], value: str | None) -> None:
    if value is not None and not (value.isascii() and value.isprintable()):
        raise ValueError(f"{attribute.name} goes into a header, which holds ASCII characters on one line")


def _headers(_: object, attribute: Attribute[Any], value: Mapping[str, str | Secret]) -> None:
    for name, content in value.items():
        text = content.reveal() if isinstance(content, Secret) else content
        if not _is_header(name) or not (text.isascii() and text.isprintable()):
            raise ValueError(f"{attribute.name} has {name!r}, which cannot be sent: a line break or an odd character")
        if name.lower() in _OWN_HEADERS:
            raise ValueError(f"{attribute.name} may not set {name}: it follows from the request")


def _names(_: object, attribute: Attribute[Any], value: Iterable[str]) -> None:
    own = sorted(_OWN_FIELDS.intersection(value))
    if own:
        raise ValueError(f"{attribute.name} may not name {', '.join(own)}: the request has a place for it")


def _body(_: object, attribute: Attribute[Any], value: Mapping[str, Any]) -> None:
    own = sorted(_OWN_FIELDS & value.keys())
    if own:
        raise ValueError(f"{attribute.name} may not set {', '.join(own)}: the request does")


def _positive(_: object, attribute: Attribute[Any], value: float) -> None:
    if not value > 0:
        raise ValueError(f"{attribute.name} is more than 0, not {value}")


@frozen(kw_only=True)
class ConnectionSettings:
    """Where a service is and how it is reached.

    >>> ConnectionSettings(model="gpt-4o-mini").host
    'api.openai.com'
    """

    model: str = field(
        validator=_filled, metadata={"doc": "The model's name at the service; on Azure, the deployment's."}
    )
    api_key: Secret | None = field(
        default=None,
        validator=_key,
        metadata={"doc": "The key. None is sent where none is set, as local servers want it."},
    )
    base_url: str = field(
        default="https://api.openai.com/v1",
        validator=_address,
        metadata={"doc": "Address of the service, with its `/v1`: `http://127.0.0.1:8080/v1` for llama.cpp."},
    )
    api_key_header: str = field(
        default="Authorization",
        validator=_header_name,
        metadata={"doc": "Header that carries the key: after `Bearer ` in `Authorization`, bare in any other."},
    )
    organization: str | None = field(
        default=None, validator=_header_value, metadata={"doc": "Organization that is billed, at OpenAI."}
    )
    project: str | None = field(
        default=None, validator=_header_value, metadata={"doc": "Project that is billed, at OpenAI."}
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
        validator=_body,
        metadata={"doc": 'Further fields of every request, such as `reasoning_effort = "low"`. A request\'s own win.'},
    )
    timeout: float = field(
        default=600.0,
        validator=_positive,
        metadata={"doc": "Seconds that a call may wait for the service, retries included."},
    )
    connect_timeout: float = field(
        default=10.0, validator=_positive, metadata={"doc": "Seconds that one connection may take to be made."}
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
        validator=_positive,
        metadata={"doc": "Bytes of a reply, or of a whole stream, at most."},
    )

    @property
    def host(self) -> str:
        """The service's host, with the port where there is one."""
        return urlsplit(self.base_url).netloc

    @property
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
        validator=_positive,
        metadata={"doc": "Seconds between two pieces of a stream. The first one has until `timeout`."},
    )
    max_line_bytes: int = field(
        default=4 * 1024 * 1024, validator=_positive, metadata={"doc": "Bytes of one line of a stream at most."}
    )
    tools: bool = field(default=True, metadata={"doc": "Whether the model can call tools."})
    response_schema: bool = field(default=True, metadata={"doc": "Whether the service holds replies to a JSON Schema."})
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
    return_reasoning: bool = field(
        default=True,
        metadata={"doc": "Whether the model's reasoning is sent back with its messages. A few servers refuse that."},
    )
    extras: tuple[str, ...] = field(
        default=(),
        validator=_names,
        metadata={"doc": "Names of further options that a request may carry, for servers with their own."},
    )

    @property
    def takes_strict(self) -> bool:
        """Whether strict schemas are sent."""
        return self.is_openai if self.strict is None else self.strict

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
        validator=validators.optional(_positive),
        metadata={"doc": "Length of a vector, for models that can shorten theirs. Not set: the model's own."},
    )
    batch_size: int = field(default=128, validator=_positive, metadata={"doc": "Texts of one request at most."})
    batch_characters: int = field(
        default=200_000, validator=_positive, metadata={"doc": "Characters of one request at most, all texts together."}
    )
    max_text_characters: int = field(
        default=8_000,
        validator=_positive,
        metadata={"doc": "Characters embedded at once. The vector of a longer text is the mean of its pieces'."},
    )
    concurrency: int = field(
        default=4, validator=_positive, metadata={"doc": "Requests under way at once, for one call."}
    )
    document_prefix: str = field(
        default="",
        metadata={"doc": 'Put before each text that is searched, for models that want it: "search_document: ".'},
    )
    query_prefix: str = field(
        default="", metadata={"doc": 'Put before each text that is asked, for models that want it: "search_query: ".'}
    )
