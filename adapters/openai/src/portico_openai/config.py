"""The settings of chat and embeddings; both share what concerns the connection."""

from __future__ import annotations

from functools import cached_property
from typing import Literal
from urllib.parse import urlsplit

from attrs import field, frozen

from portico.plugins import ValueForm
from portico_wire.settings import HEADER, POSITIVE, BatchSettings, ConnectionSettings, check_further

_OWN_FIELDS: frozenset[str] = frozenset(
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


@frozen(kw_only=True)
class OpenAISettings(ConnectionSettings):
    """Where a service is that speaks OpenAI's protocol.

    >>> OpenAISettings(model="gpt-4o-mini").host
    'api.openai.com'
    """

    own_fields = _OWN_FIELDS

    base_url: str = field(
        default="https://api.openai.com/v1",
        validator=ValueForm.service_address("https://api.openai.com/v1"),
        metadata={"doc": "Address of the service, with its `/v1`: `http://127.0.0.1:8080/v1` for llama.cpp."},
    )
    api_key_header: str = field(
        default="Authorization",
        validator=ValueForm(HEADER, "a header's name such as X-Api-Key"),
        metadata={"doc": "Header that carries the key: after `Bearer ` in `Authorization`, bare in any other."},
    )

    @cached_property
    def is_openai(self) -> bool:
        """Whether OpenAI's own models answer: at OpenAI itself, or at Azure."""
        return self._is_at("api.openai.com", "openai.azure.com", "services.ai.azure.com")

    def _is_at(self, *domains: str) -> bool:
        return f".{urlsplit(self.base_url).hostname}".endswith(tuple(f".{domain}" for domain in domains))


@frozen(kw_only=True)
class OpenAIChatSettings(OpenAISettings):
    """What can be set under ``[chat.openai]``.

    >>> OpenAIChatSettings(model="qwen3:8b", base_url="http://127.0.0.1:11434/v1").takes_strict
    False
    """

    api: Literal["auto", "responses", "chat"] = field(
        default="auto",
        metadata={
            "doc": "Which API is called: Responses or Chat Completions. `auto`: Responses at OpenAI's own address, "
            "Chat Completions elsewhere."
        },
    )
    stream_timeout: float = field(
        default=120.0,
        validator=POSITIVE,
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
    audio: bool = field(
        default=False, metadata={"doc": "Whether the model hears sound. Chat Completions only; Responses has none."}
    )
    web_search: bool = field(
        default=False,
        metadata={"doc": "Whether the service searches the web itself. A request's extra `web_search` wins."},
    )
    tool_by_name: bool | None = field(
        default=None,
        metadata={
            "doc": "Whether a single tool that must be called is asked for by its name. Not set: only at OpenAI's and "
            "Azure's addresses."
        },
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
        validator=check_further,
        metadata={"doc": "Names of further options that a request may carry, for servers with their own."},
    )

    @cached_property
    def takes_responses(self) -> bool:
        """Whether Responses is called."""
        return self.api == "responses" or (self.api == "auto" and self._is_at("api.openai.com"))

    @cached_property
    def is_openrouter(self) -> bool:
        """Whether OpenRouter answers, which has its own form of web search and takes links to files."""
        return self._is_at("openrouter.ai")

    @cached_property
    def is_mistral(self) -> bool:
        """Whether Mistral answers, which refuses fields that it does not know."""
        return self._is_at("api.mistral.ai")

    @property
    def calls_by_name(self) -> bool:
        """Whether a single tool that must be called is named: llama.cpp takes an object as "auto"."""
        return self.is_openai if self.tool_by_name is None else self.tool_by_name

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
class OpenAIEmbeddingsSettings(OpenAISettings, BatchSettings):
    """What can be set under ``[embeddings.openai]``.

    >>> OpenAIEmbeddingsSettings(model="text-embedding-3-small", dimensions=512).dimensions
    512
    """
