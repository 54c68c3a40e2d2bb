"""Chat: messages, requests, replies, and what a chat service can do."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from portico.errors import UnsupportedOption

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


SUMMARY_HEAD = "What was said before, in short:\n"
"""How a message begins that stands for earlier ones, in a model's words; its role is the user's."""
REPAIR_HEAD = "Your reply is not of the form asked for:\n"
"""How a message begins that sends a reply back, and may quote it; its role is the user's."""


@dataclass(frozen=True, slots=True)
class Text:
    """Words."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """A picture: bytes with a media type, or a URL that the service fetches itself."""

    data: bytes | None = None
    url: str | None = None
    media_type: str = "image/png"


@dataclass(frozen=True, slots=True)
class File:
    """A file: bytes, or a URL that the service fetches itself."""

    data: bytes | None
    name: str
    media_type: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Audio:
    """Sound: bytes with a media type, or a URL that the service fetches itself."""

    data: bytes | None = None
    url: str | None = None
    media_type: str = "audio/wav"


@dataclass(frozen=True, slots=True)
class Source:
    """A retrieved passage, as data: never an instruction. ``number`` is what a citation ``[1]`` refers to."""

    number: int
    text: str
    name: str | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to call a function; ``arguments`` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str = "{}"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to a tool call, as JSON text or words; ``error`` tells a failure from a result.

    ``cause`` is what was raised, for the developer: it is never sent.
    """

    id: str
    name: str
    content: str
    error: bool = False
    cause: BaseException | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A service's own record of its thinking; opaque, and handed back as it came to the ``service`` that made it.

    No other service gets it. Where ``service`` is "" it is not known who made it, and the form of the data tells.
    """

    data: Any
    summary: str | None = None
    service: str = ""


Part: TypeAlias = Text | Image | File | Audio | Source | ToolCall | ToolResult | Reasoning


@dataclass(frozen=True, slots=True)
class Message:
    """One turn: who speaks, and the parts of what is said.

    >>> Message.of("user", "Hello", Source(1, "Ports are protocols.")).text
    'Hello'

    ``untrusted`` are the untrusted places that had a part in it: ``()`` says that there are none, None that it is not
    known. Where a policy is enforced, None is the same as ``()`` for what the user or the system says; what an
    assistant said is untrusted then.
    """

    role: Role
    content: tuple[Part, ...]
    name: str | None = None
    untrusted: tuple[str, ...] | None = None

    @classmethod
    def of(cls, role: Role, *parts: Part | str | Path, untrusted: tuple[str, ...] | None = None) -> Message:
        """Make a message; plain strings become `Text`, and the files at paths what their content is.

        A rendered prompt says itself what had a part in it. Raises ``OSError`` for a file that cannot be read.
        """
        content = tuple(
            Text(part) if isinstance(part, str) else _attachment(part) if isinstance(part, PurePath) else part
            for part in parts
        )
        return cls(role, content, None, (_in_prompts(content) or None) if untrusted is None else untrusted)

    @property
    def text(self) -> str:
        """The words of the message: its `Text` parts joined."""
        return "".join(part.text for part in self.content if isinstance(part, Text))

    @staticmethod
    def render_sources(messages: Sequence[Message]) -> tuple[Message, ...]:
        """Turn `Source` parts into text, for services that do not take them as data.

        Each becomes a numbered block; the text inside is escaped, so that no passage can end its own block.
        """
        return tuple(
            replace(message, content=tuple(_as_text(part) for part in message.content)) for message in messages
        )

    @staticmethod
    def estimate_tokens(text: str) -> int:
        """Estimate, rather too high, how many tokens a text is: one for three bytes of UTF-8.

        English has about four characters to a token, and a character of Chinese or Japanese is three bytes and about
        one token, in the vocabularies of today's models.
        """
        return math.ceil(len(text.encode("utf-8", "surrogatepass")) / _BYTES_A_TOKEN)


@dataclass(frozen=True, slots=True)
class Tool:
    """A function offered to a model: its name on the wire, what it is for, JSON Schema of its arguments.

    ``strict`` asks the service to hold the arguments to the schema while they are written; ``parameters`` is
    then of the strict form (`portico.plugins.strict_form`), and only services that declare ``strict`` are asked.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    strict: bool = False


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Whether the model may (auto), must (required) or must not (none) call tools, and which.

    ``include`` and ``exclude`` name tools of the request; a service offers those that are included and not
    excluded, see `ChatRequest.offered`.
    """

    mode: Literal["auto", "required", "none"] = "auto"
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """Everything one completion needs. ``extras`` are a vendor's own options by name.

    ``temperature`` and ``top_p`` as services define them; ``max_tokens`` counts generated tokens;
    ``response_schema`` is a JSON Schema that the reply's text must satisfy; ``response_name`` names it to the
    service. With ``response_strict`` it is of the strict form (`portico.plugins.strict_form`).
    """

    messages: Sequence[Message]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    response_schema: Mapping[str, Any] | None = None
    response_name: str = "reply"
    response_strict: bool = False
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)

    @property
    def offered(self) -> tuple[Tool, ...]:
        """The tools that the model sees: none in mode "none", else those that the choice leaves."""
        choice = self.tool_choice
        if choice.mode == "none":
            return ()
        if choice.include is None and not choice.exclude:
            return self.tools
        return tuple(
            tool
            for tool in self.tools
            if (choice.include is None or tool.name in choice.include) and tool.name not in choice.exclude
        )

    def check(self, capabilities: ChatCapabilities, service: str) -> None:
        """Raise ``UnsupportedOption`` naming everything in ``request`` that ``service`` cannot honour."""
        parts = {type(part) for message in self.messages for part in message.content}
        wanted: dict[str, bool] = {
            "tools": bool(self.tools) and not capabilities.tools,
            "tool_choice": self.tool_choice.mode == "required" and not capabilities.tools,
            "response_schema": not capabilities.response_schema
            and self.response_schema is not None
            and not (capabilities.json_object and self.response_schema == {"type": "object"}),
            "strict": not capabilities.strict and (self.response_strict or any(tool.strict for tool in self.tools)),
            "images": Image in parts and not capabilities.images,
            "files": File in parts and not capabilities.files,
            "audio": Audio in parts and not capabilities.audio,
            "sources": Source in parts and not capabilities.sources,
        }
        for option in ("temperature", "top_p", "max_tokens", "stop", "seed"):
            wanted[option] = getattr(self, option) not in (None, ()) and option not in capabilities.sampling
        if not parts.isdisjoint((Image, File, Audio)):
            wanted |= self._attachments_refused(capabilities)
        for extra in self.extras:
            wanted[f"extras.{extra}"] = extra not in capabilities.extras
        refused = [option for option, missing in wanted.items() if missing]
        if refused:
            advice = "" if capabilities.language_model else " It is no language model: choose one under [chat]."
            raise UnsupportedOption(f"The chat service {service!r} does not support {', '.join(refused)}.{advice}")

    def _attachments_refused(self, capabilities: ChatCapabilities) -> dict[str, bool]:
        refused: dict[str, bool] = {}
        for part in (part for message in self.messages for part in message.content if isinstance(part, Attached)):
            if part.data is not None:
                refused[f"what is attached of the type {part.media_type}"] = not takes_type(part, capabilities)
            elif type(part).__name__ not in capabilities.links:
                refused["links to what is attached"] = True
        return refused


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that were read and written, zero where a service counts none, and what they cost.

    ``cached_tokens`` are those of the input that the service had at hand, ``cache_written_tokens`` those of the input
    that it stored, ``reasoning_tokens`` those of the output that were thought and not said. ``cost`` is in US dollars,
    None where the price is not known; a sum is known where each part that has tokens is.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cache_written_tokens: int = 0
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        costs = [part.cost for part in (self, other) if part != _NO_USAGE]
        known = [cost for cost in costs if cost is not None]
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.cache_written_tokens + other.cache_written_tokens,
            sum(known) if costs and len(known) == len(costs) else None,
        )


_NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class Citation:
    """A place in an answer's sources: the source's number, name and link, and the words relied on."""

    number: int
    name: str | None
    link: str | None
    quote: str


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What a service answered. ``finish`` is "length" where it was cut short.

    A refusal is not a reply: it is raised as ``ContentRefused``. ``citations`` are those that the service itself
    makes; most make none, and the caller reads the marks. ``model`` and ``service`` say who answered. ``details`` is
    what the service says besides, in its own form, such as ``logprobs`` and ``service_tier``; it does not count where
    replies are compared.
    """

    message: Message
    finish: Literal["stop", "length", "tool_calls"] = "stop"
    usage: Usage = Usage()
    model: str = ""
    service: str = ""
    citations: tuple[Citation, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def text(self) -> str:
        """The words of the reply."""
        return self.message.text

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that the model asks for, in its order."""
        return tuple(part for part in self.message.content if isinstance(part, ToolCall))


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a tool call while it is written: calls are told apart by ``index``, from 0.

    The first piece of a call has its id and name; the ``arguments`` of all its pieces joined are the call's.
    """

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class ChatDelta:
    """A piece of a streamed reply; the last one carries the whole ``reply`` and may carry text too.

    ``reasoning`` is a summary of the model's thinking, where a service streams one; it is not part of the text.
    """

    text: str = ""
    reply: ChatReply | None = None
    tool_call: ToolCallDelta | None = None
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class ChatCapabilities:
    """What a chat service honours; a request that needs more is refused before anything is sent.

    ``response_schema``: replies are held to any JSON Schema, as far as the service understands it. ``json_object``:
    they are held to be a JSON object, for the schema ``{"type": "object"}``. ``strict``: the service takes the strict
    form for response schemas and tools, and then holds to it exactly.
    ``language_model``: it follows instructions, so that it can write plans. One that only quotes says that it does not.
    """

    sources: bool = False
    tools: bool = False
    response_schema: bool = False
    strict: bool = False
    images: bool = False
    files: bool = False
    audio: bool = False
    links: frozenset[str] = frozenset({"Image"})
    """Which of Image, File and Audio may be links that the service fetches."""
    media_types: frozenset[str] | None = None
    """The media types, or patterns of them, of bytes that it takes; None for any."""
    sampling: frozenset[str] = frozenset()
    """Which of temperature, top_p, max_tokens, stop and seed are honoured."""
    extras: frozenset[str] = frozenset()
    language_model: bool = True
    json_object: bool = False


def takes_type(part: Attached, capabilities: ChatCapabilities) -> bool:
    """Tell whether a service takes bytes of the media type of what is attached."""
    types = capabilities.media_types
    return types is None or any(fnmatchcase(part.media_type, each) for each in types)


_BEGINNINGS = (
    (b"\x89PNG", 0, "image/png"),
    (b"\xff\xd8\xff", 0, "image/jpeg"),
    (b"GIF8", 0, "image/gif"),
    (b"WEBPVP8", 8, "image/webp"),
    (b"%PDF-", 0, "application/pdf"),
    (b"WAVEfmt ", 8, "audio/wav"),
    *((b"ID3" + version, 0, "audio/mpeg") for version in (b"\2", b"\3", b"\4")),
    (b"\xff\xfb", 0, "audio/mpeg"),
    (b"fLaC", 0, "audio/flac"),
    (b"OggS", 0, "audio/ogg"),
)
"""How the files begin that models take: these bytes at this place."""


def _attachment(path: Path) -> Attached:
    """Return the content of a file as an `Image`, an `Audio` or a `File`, by how it begins, else by its name."""
    data = path.read_bytes()
    for beginning, place, known in _BEGINNINGS:
        if data.startswith(beginning, place):
            kind = known
            break
    else:
        from mimetypes import guess_type  # its tables are only needed here

        words = words_of(data) is not None
        kind = guess_type(path.name)[0] or ("text/plain" if words else "application/octet-stream")
        # TypeScript has the name of a film, and a list of songs that of a song.
        if words and kind.startswith(("image/", "audio/", "video/")) and kind != "image/svg+xml":
            kind = "text/plain"
    if kind.startswith("image/") and kind != "image/svg+xml":
        return Image(data, media_type=kind)
    return Audio(data, media_type=kind) if kind.startswith("audio/") else File(data, path.name, kind)


def words_of(data: bytes) -> str | None:
    """Return what the bytes say if they are text."""
    try:
        words = data.decode("utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in words or words.startswith("%PDF-") else words


def _as_text(part: Part) -> Part:
    if not isinstance(part, Source):
        return part
    from html import escape  # its table of entities is only needed here

    name = f' name="{escape(part.name)}"' if part.name else ""
    link = f' link="{escape(part.link)}"' if part.link else ""
    return Text(f'<source number="{part.number}"{name}{link}>\n{escape(part.text, quote=False)}\n</source>\n')


Attached: TypeAlias = Image | File | Audio
_BYTES_A_TOKEN = 3

EARLIER_ANSWER = ("an earlier answer",)
ATTACHED_FILE = "an attached file"
SUMMARY_LABEL = ("a summary of what was said before",)
FOR_SOME = ", which only some may read"
"""How a name in `Message.untrusted` ends where only some may read what came from there; who may is no longer known."""


def untrusted_in(message: Message) -> tuple[str, ...]:
    """Return the untrusted places that had a part in the words of a message; `EARLIER_ANSWER` where it is not known.

    What is attached to the message and the results in it are not its words.
    """
    if message.role == "user" and message.text.startswith(SUMMARY_HEAD):
        return SUMMARY_LABEL if message.untrusted is None else message.untrusted
    quotes = message.role == "assistant" or (message.role == "user" and message.text.startswith(REPAIR_HEAD))
    if message.untrusted is not None:
        return message.untrusted
    return _in_prompts(message.content) or (EARLIER_ANSWER if quotes else ())


def _in_prompts(content: tuple[Part, ...]) -> tuple[str, ...]:
    """Return what had a part in the rendered prompts that the words of a message are."""
    names: set[str] = set()
    for part in content:
        if type(part) is Text and type(part.text) is not str:
            names.update(getattr(part.text, "untrusted", None) or ())
    return tuple(sorted(names)) if names else ()


def is_users(message: Message) -> bool:
    """Tell whether the words of a message are the user's."""
    own = message.role == "user" and not message.text.startswith((SUMMARY_HEAD, REPAIR_HEAD))
    return own and not untrusted_in(message)
