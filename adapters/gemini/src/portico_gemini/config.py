"""The settings of chat and embeddings; both share what concerns the connection."""

from __future__ import annotations

from typing import Any, Literal

from attrs import Attribute, field, frozen, validators

from portico.plugins import ValueForm
from portico_wire.settings import POSITIVE, BatchSettings, ConnectionSettings, check_further

_ADDRESS = "https://generativelanguage.googleapis.com/v1beta"
_MULTIREGIONS = {"us", "eu"}


def _base_url(settings: object, attribute: Attribute[Any], value: str) -> None:
    if value:
        ValueForm.service_address(_ADDRESS)(settings, attribute, value)


@frozen(kw_only=True)
class GeminiSettings(ConnectionSettings):
    """Where Gemini is, and who asks.

    >>> GeminiSettings(model="gemini-3.8-flash").host
    'generativelanguage.googleapis.com'
    >>> GeminiSettings(model="gemini-3.8-flash", through="vertex", project="p-1", location="europe-west1").address
    'https://europe-west1-aiplatform.googleapis.com/v1beta1'
    """

    own_fields = frozenset({"contents", "model", "requests", "systemInstruction", "toolConfig", "tools"})

    through: Literal["developer", "vertex"] = field(
        default="developer",
        validator=validators.in_(("developer", "vertex")),
        metadata={
            "doc": "Where Gemini is asked: `developer` is the Gemini API, with a key of Google AI Studio; `vertex` is "
            "Google Cloud, with `project` and its credentials, or with a key of Vertex."
        },
    )
    project: str = field(default="", metadata={"doc": "The project in Google Cloud, for Vertex."})
    location: str = field(
        default="global",
        validator=ValueForm("[0-9a-z-]+", "a location such as europe-west1"),
        metadata={"doc": "The location in Google Cloud, for Vertex: `global`, `eu`, `europe-west1`."},
    )
    base_url: str = field(
        default="",
        validator=_base_url,
        metadata={"doc": "Address of the service, with its `/v1beta`. Not set: Google's own."},
    )

    def __attrs_post_init__(self) -> None:
        """Refuse a project where there is none, and Vertex without a project."""
        if self.through == "vertex" and not (self.project or self.api_key):
            raise ValueError("project is missing: Vertex needs a project in Google Cloud, or an api_key")
        if self.through == "developer" and self.project:
            raise ValueError('project is for Vertex: set through = "vertex" too')

    @property
    def address(self) -> str:
        """The service's address: ``base_url``, or Google's own."""
        if self.base_url:
            return self.base_url
        if self.through == "developer":
            return _ADDRESS
        if self.location == "global" or not self.project:
            host = "aiplatform.googleapis.com"
        elif self.location in _MULTIREGIONS:
            host = f"aiplatform.{self.location}.rep.googleapis.com"
        else:
            host = f"{self.location}-aiplatform.googleapis.com"
        return f"https://{host}/v1beta1"


@frozen(kw_only=True)
class GeminiChatSettings(GeminiSettings):
    """What can be set under ``[chat.gemini]``.

    >>> GeminiChatSettings(model="gemini-3.8-flash", thinking_level="low").web_search
    False
    """

    stream_timeout: float = field(
        default=120.0,
        validator=POSITIVE,
        metadata={"doc": "Seconds between two pieces of a stream. The first one has until `timeout`."},
    )
    tools: bool = field(default=True, metadata={"doc": "Whether the model can call tools."})
    response_schema: bool = field(
        default=True,
        metadata={
            "doc": "Whether replies are held to a JSON Schema. Before Gemini 3, a request cannot have tools and a "
            "schema: without this, the schema is asked for in words."
        },
    )
    thinking_level: Literal["minimal", "low", "medium", "high", "xhigh"] | None = field(
        default=None, metadata={"doc": "How much a model of Gemini 3 or later thinks. Not set: the model's own."}
    )
    thinking_budget: int | None = field(
        default=None,
        validator=validators.optional(validators.ge(-1)),
        metadata={
            "doc": "Tokens that a model of Gemini 2.5 may think: 0 for none, -1 for as many as it finds right. Not "
            "set: the model's own."
        },
    )
    include_thoughts: bool = field(
        default=False, metadata={"doc": "Whether summaries of the thinking come with the replies."}
    )
    web_search: bool = field(
        default=False,
        metadata={
            "doc": "Whether the model may search with Google, at the service's own cost. What it finds is untrusted."
        },
    )
    extras: tuple[str, ...] = field(
        default=(),
        validator=check_further,
        metadata={"doc": "Names of further fields of a body that a request may carry."},
    )

    def __attrs_post_init__(self) -> None:
        """Refuse two ways to say how much is thought, as Gemini does."""
        super().__attrs_post_init__()
        if self.thinking_level is not None and self.thinking_budget is not None:
            raise ValueError("thinking_level and thinking_budget both say how much the model thinks: give one of them")


@frozen(kw_only=True)
class GeminiEmbeddingsSettings(GeminiSettings, BatchSettings):
    """What can be set under ``[embeddings.gemini]``.

    >>> GeminiEmbeddingsSettings(model="gemini-embedding-001", dimensions=768).batch_size
    100
    """

    batch_size: int = field(default=100, validator=POSITIVE, metadata={"doc": "Texts of one request at most."})
    document_task: str = field(
        default="RETRIEVAL_DOCUMENT",
        metadata={"doc": "The `taskType` of texts that are searched; empty for a model that takes none."},
    )
    query_task: str = field(
        default="RETRIEVAL_QUERY",
        metadata={
            "doc": "The `taskType` of texts that are asked: `QUESTION_ANSWERING`, `CODE_RETRIEVAL_QUERY`; empty for a "
            "model that takes none."
        },
    )
