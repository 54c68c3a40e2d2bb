"""The settings of the chat service."""

from __future__ import annotations

import re
from typing import Any, Literal
from urllib.parse import quote

from attrs import Factory, field, frozen, validators

from portico.plugins import Secret, ValueForm
from portico_wire.settings import POSITIVE, ConnectionSettings, check_further

_ADDRESS = "https://api.anthropic.com"
LEAST_BUDGET = 1_024
"""Tokens of thinking."""
_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?!\d)(?:-(\d{1,2})(?!\d))?")
"""The version in a model's name; a longer number is a date."""
_WITHOUT_SAMPLING = (4, 7)
_PRESERVING = (5, 1)


def _usual_address(settings: AnthropicChatSettings) -> str:
    match settings.through:
        case "bedrock":
            # That there is no region is said once, below.
            return f"https://bedrock-runtime.{settings.aws_region or 'none'}.amazonaws.com"
        case "vertex" if settings.region == "global":
            return "https://aiplatform.googleapis.com/v1"
        case "vertex" if settings.region in {"us", "eu"}:
            return f"https://aiplatform.{settings.region}.rep.googleapis.com/v1"
        case "vertex":
            return f"https://{settings.region}-aiplatform.googleapis.com/v1"
    return _ADDRESS


@frozen(kw_only=True)
class AnthropicChatSettings(ConnectionSettings):
    """What can be set under ``[chat.anthropic]``.

    >>> AnthropicChatSettings(model="claude-sonnet-5-5").host
    'api.anthropic.com'
    """

    own_fields = frozenset(
        {
            "cache_control",
            "max_tokens",
            "messages",
            "model",
            "output_config",
            "stream",
            "system",
            "thinking",
            "tool_choice",
            "tools",
        }
    )

    auth_token: Secret | None = field(
        default=None,
        validator=validators.optional(ValueForm.service_key()),
        metadata={
            "doc": "A token that is sent after `Bearer ` in `Authorization`, instead of `api_key`: of a gateway, or an "
            "access token of Google's."
        },
    )
    through: Literal["anthropic", "bedrock", "vertex"] = field(
        default="anthropic",
        metadata={
            "doc": "Who is asked: `anthropic`, or a server of its protocol; Amazon's `bedrock`; Google's `vertex`."
        },
    )
    aws_region: str = field(default="", metadata={"doc": "Bedrock's region, such as `us-east-1`."})
    aws_profile: str | None = field(
        default=None, metadata={"doc": "A profile of AWS's own files. Not set: where AWS's library looks by itself."}
    )
    aws_access_key: Secret | None = field(default=None, metadata={"doc": "An access key of AWS, with its secret key."})
    aws_secret_key: Secret | None = field(default=None, metadata={"doc": "The secret key of the access key."})
    aws_session_token: Secret | None = field(
        default=None, metadata={"doc": "The session's token, where the access key is a temporary one."}
    )
    project: str = field(default="", metadata={"doc": "Google's project, for Vertex."})
    region: str = field(
        default="global", validator=validators.min_len(1), metadata={"doc": "Vertex's region: `global`, `eu`, …"}
    )
    base_url: str = field(
        default=Factory(_usual_address, takes_self=True),
        validator=ValueForm.service_address(_ADDRESS),
        metadata={
            "doc": "Address of the service, with or without its `/v1`. Not set: `https://api.anthropic.com`, or "
            "Bedrock's or Vertex's of the region."
        },
    )
    stream_timeout: float = field(
        default=120.0,
        validator=POSITIVE,
        metadata={"doc": "Seconds between two pieces of a stream. The first one has until `timeout`."},
    )
    max_tokens: int = field(
        default=16_384,
        validator=POSITIVE,
        metadata={"doc": "Tokens that a reply may have, thinking included, where a request does not say."},
    )
    thinking: Literal["off", "adaptive", "between_tools", "budget"] | None = field(
        default=None,
        metadata={
            "doc": "Whether the model thinks first: `adaptive` where it finds it useful, `between_tools` only between "
            "calls, `budget` as far as `thinking_budget`. Not set: as is usual for the model. Each model takes some of "
            "these."
        },
    )
    thinking_budget: int = field(
        default=8_192,
        validator=validators.ge(LEAST_BUDGET),
        metadata={
            "doc": "Tokens of thinking with `budget`; less than `max_tokens`. A request with a lower limit thinks less."
        },
    )
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = field(
        default=None, metadata={"doc": "How much the model does for a reply. Not set: as is usual for the model."}
    )
    cache: Literal["off", "5m", "1h"] = field(
        default="off",
        metadata={"doc": "How long the beginning of a request is kept, so that the next one like it costs less."},
    )
    web_search: bool = field(
        default=False, metadata={"doc": "Whether the model searches the web by itself. A request may say otherwise."}
    )
    web_search_options: dict[str, Any] = field(
        factory=dict,
        metadata={"doc": "Options of that search: `max_uses`, `allowed_domains`, `blocked_domains`, `type`, …"},
    )
    system_in_place: bool = field(
        default=False,
        metadata={
            "doc": "Whether a system message that comes after others is sent where it stands, which only newer models "
            "take, and not on Bedrock or Vertex. Otherwise it is put behind the first ones."
        },
    )
    sampling: bool | None = field(
        default=None,
        metadata={
            "doc": "Whether the model takes `temperature`, `top_p` and `top_k`. Not set: by its name; Claude does not "
            "from 4.7 on, nor where it thinks."
        },
    )
    preserved_thinking: bool | None = field(
        default=None,
        metadata={
            "doc": "Whether the model ties what it thought to all that came before it, and cannot be made to call a "
            "tool. Not set: by its name; Claude does from 5.1 on."
        },
    )
    tools: bool = field(default=True, metadata={"doc": "Whether the model can call tools."})
    response_schema: bool = field(default=True, metadata={"doc": "Whether the service holds replies to a JSON Schema."})
    strict: bool = field(
        default=True, metadata={"doc": "Whether it holds calls of tools to their schemas: Claude from 4.5."}
    )
    images: bool = field(default=True, metadata={"doc": "Whether the model can see images."})
    files: bool = field(default=True, metadata={"doc": "Whether it reads files: PDF and text."})
    extras: tuple[str, ...] = field(
        default=(),
        validator=check_further,
        metadata={"doc": "Names of further options that a request may carry, for servers with their own."},
    )

    def __attrs_post_init__(self) -> None:
        for through, needed in (("bedrock", "aws_region"), ("vertex", "project")):
            given = bool(getattr(self, needed))
            if self.through == through and not given:
                raise ValueError(f"through = {through!r} needs {needed}")
            if given and self.through != through:
                raise ValueError(f"{needed} is for {through}: set through = {through!r} too")
        if (self.aws_access_key is None) != (self.aws_secret_key is None):
            raise ValueError("aws_access_key and aws_secret_key are given together or not at all")
        if self.api_key and self.auth_token:
            raise ValueError("api_key and auth_token are two ways to say who asks: give one of them")
        if self.through == "vertex" and self.api_key:
            raise ValueError(
                "Vertex takes no api_key: give auth_token, an access token, or leave both to Google's library"
            )
        if self.through == "bedrock" and self.api_key and (self.aws_access_key or self.aws_profile):
            raise ValueError("api_key, a key of Bedrock's, is given instead of aws_access_key and aws_profile")
        if self.through == "bedrock" and self.web_search:
            raise ValueError("Bedrock has no web_search")
        if self.thinking == "budget" and self.thinking_budget >= self.max_tokens:
            raise ValueError(f"thinking_budget is less than max_tokens, which is {self.max_tokens}")

    @property
    def takes_sampling(self) -> bool:
        """Whether temperature and the like are sent."""
        if self.sampling is not None:
            return self.sampling
        if self.thinking not in (None, "off"):
            return False
        version = self._version
        return "claude" not in self.model if version is None else version < _WITHOUT_SAMPLING

    @property
    def preserves_thinking(self) -> bool:
        """Whether thinking is tied to what came before it, and no call can be forced."""
        if self.preserved_thinking is not None:
            return self.preserved_thinking
        return (self._version or (0, 0)) >= _PRESERVING

    @property
    def _version(self) -> tuple[int, int] | None:
        found = _VERSION.search(self.model)
        return None if found is None else (int(found[1]), int(found[2] or 0))

    @property
    def cache_tokens(self) -> str:
        """The kind of tokens that are written to the cache, as genai-prices names it."""
        return "cache_write_1h_tokens" if self.cache == "1h" else super().cache_tokens

    def path(self, *, stream: bool) -> str:
        """Return what follows ``base_url``: where it has the model in it, bodies do not."""
        model = quote(self.model, safe=":" if self.through == "bedrock" else "@")
        match self.through:
            case "bedrock":
                return f"/model/{model}/{'invoke-with-response-stream' if stream else 'invoke'}"
            case "vertex":
                place = f"/projects/{quote(self.project)}/locations/{quote(self.region)}/publishers/anthropic/models"
                return f"{place}/{model}:{'streamRawPredict' if stream else 'rawPredict'}"
        return "/messages" if self.base_url.rstrip("/").endswith("/v1") else "/v1/messages"
