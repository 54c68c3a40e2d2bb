"""The ChatService on OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from portico import ChatDelta, ChatReply, ChatRequest, Message, Part, Reasoning, Text, ToolCall, ToolCallDelta, Usage
from portico.errors import ContentRefused, ResponseInvalid, ServiceUnavailable
from portico.plugins import Services
from portico_openai._connection import Connection, Incoming
from portico_openai._errors import Peer, filtered_categories, invalid, reported
from portico_openai._tools import ToolTexts
from portico_openai._wire import REASONING_FIELDS, capabilities, request_body
from portico_openai.config import OpenAIChatSettings

if TYPE_CHECKING:
    import httpx2


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: Any = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None


class _Choice(msgspec.Struct):
    index: int | None = 0
    message: _Message | None = None
    delta: _Message | None = None
    finish_reason: str | None = None
    content_filter_results: Any = None


class _InputDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _InputDetails | None = None
    completion_tokens_details: _OutputDetails | None = None


class Piece(msgspec.Struct):
    """A completion, or a chunk of one: the fields that are read of either."""

    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    model: str | None = None
    error: Any = None
    message: Any = None


_decode = msgspec.json.Decoder(Piece).decode


def decoded(text: bytes, peer: Peer, what: str) -> Piece:
    """Read a completion or a chunk; raises the error that it reports, or ``ResponseInvalid``."""
    try:
        piece = _decode(text)
    except msgspec.ValidationError as error:
        raise invalid(peer, f"sent {what} that is not in OpenAI's format ({error})", text) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        broken = text.strip()
        raise invalid(
            peer, f"sent {what} that is not JSON" if broken else f"sent {what} that is empty", text
        ) from error
    if piece.error:
        raise reported(peer, piece.error)
    if piece.choices is None and isinstance(piece.message, str):
        # An error without its envelope.
        raise reported(peer, {"message": piece.message})
    return piece


@dataclass(slots=True)
class _WrittenCall:
    id: str
    name: str
    given: str | None
    """The service's own identifier, which another call of the reply may have as well."""
    arguments: list[str] = field(default_factory=list)


class Gathering:
    """Put a reply together from its pieces: one piece for a whole reply, many for a streamed one."""

    def __init__(self, peer: Peer, service: str) -> None:
        self._peer = peer
        self._service = service
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._reasoning: dict[str, Any] = {}
        self._calls: list[_WrittenCall] = []
        self._positions: dict[int, int] = {}
        self._filtered: Any = None
        self._usage: _Usage | None = None
        self._model = ""
        self.started = False
        """Whether a message has begun."""
        self.finish: str | None = None
        """The service's own word for why it ended; None while it goes on."""

    @property
    def characters(self) -> int:
        """Characters of text so far."""
        return sum(map(len, self._texts))

    def add(self, piece: Piece) -> list[ChatDelta]:
        """Take a piece in and return what it brings."""
        if piece.usage is not None:
            self._usage = piece.usage
        if piece.model:
            self._model = piece.model
        deltas: list[ChatDelta] = []
        for choice in piece.choices or ():
            if choice.index:
                continue
            said = choice.delta or choice.message
            if said is not None:
                self.started = True
                thought = self._think(said)
                if said.content or thought:
                    self._texts.append(said.content or "")
                    deltas.append(ChatDelta(said.content or "", reasoning=thought))
                if said.refusal:
                    self._refusals.append(said.refusal)
                if said.tool_calls:
                    self._call(said.tool_calls, deltas)
            if choice.finish_reason:
                self.finish = choice.finish_reason
                self._filtered = choice.content_filter_results
        return deltas

    def end(self) -> list[ChatDelta]:
        """Return what is still to be reported before the reply: arguments that the service left empty."""
        deltas = []
        for index, call in enumerate(self._calls):
            if not any(call.arguments):
                call.arguments.append("{}")
                deltas.append(ChatDelta(tool_call=ToolCallDelta(index, arguments="{}")))
        return deltas

    def reply(self) -> ChatReply:
        """Return the reply.

        Raises ``ContentRefused``, ``ServiceUnavailable`` where the service gave up, and
        ``ResponseInvalid`` where it said nothing at all.
        """
        if self._refusals:
            raise ContentRefused(self._peer.says(f"refused to answer: {''.join(self._refusals)}"))
        if self.finish == "content_filter":
            raise ContentRefused(self._peer.says(f"filtered its answer{filtered_categories(self._filtered)}."))
        if self.finish in {"error", "insufficient_system_resource"}:
            raise ServiceUnavailable(self._peer.says(f"gave up on its answer ({self.finish}). Try again."))
        if not self.started:
            raise invalid(self._peer, "sent a reply without a message in it.")
        parts: list[Part] = []
        if self._reasoning:
            parts.append(Reasoning(self._reasoning, self._summary()))
        text = "".join(self._texts)
        if text or not self._calls:
            parts.append(Text(text))
        parts += [ToolCall(call.id, call.name, "".join(call.arguments)) for call in self._calls]
        return ChatReply(
            Message("assistant", tuple(parts)),
            # OpenAI itself says "stop" of a call that was asked for by name.
            "length" if self.finish == "length" else "tool_calls" if self._calls else "stop",
            _usage(self._usage),
            self._model or self._peer.model,
            self._service,
        )

    def _think(self, said: _Message) -> str:
        thought = ""
        for name in REASONING_FIELDS:
            value = getattr(said, name)
            if not value:
                continue
            if isinstance(value, str):
                # Servers that fill two fields put the same words into both.
                thought = thought or value
                self._reasoning[name] = self._reasoning.get(name, "") + value
            elif isinstance(value, list):
                _join_details(self._reasoning.setdefault(name, []), value)
            else:
                self._reasoning[name] = value
        return thought

    def _summary(self) -> str | None:
        return next((value for value in self._reasoning.values() if isinstance(value, str)), None)

    def _call(self, pieces: list[_Call], deltas: list[ChatDelta]) -> None:
        for order, piece in enumerate(pieces):
            function = piece.function or _Function()
            name = function.name or ""
            number = piece.index if piece.index is not None else order
            position = self._positions.get(number)
            # Some servers count every call as the first: another id is another call.
            if position is None or (name and piece.id and piece.id != self._calls[position].given):
                position = self._positions[number] = len(self._calls)
                # Some servers give no id; the answer to a call needs one.
                self._calls.append(_WrittenCall(self._own_id(piece.id or f"call_{position}"), name, piece.id))
                first = True
            else:
                first = False
            call = self._calls[position]
            arguments = function.arguments
            if not isinstance(arguments, str):
                arguments = "" if arguments is None else msgspec.json.encode(arguments).decode()
            call.arguments.append(arguments)
            if first:
                deltas.append(ChatDelta(tool_call=ToolCallDelta(position, call.id, name, arguments)))
            elif arguments:
                deltas.append(ChatDelta(tool_call=ToolCallDelta(position, arguments=arguments)))

    def _own_id(self, wanted: str) -> str:
        taken = {call.id for call in self._calls}
        while wanted in taken:
            wanted += f"_{len(taken)}"
        return wanted


def _join_details(known: list[Any], pieces: list[Any]) -> None:
    """Add pieces of OpenRouter's ``reasoning_details``: those of one index and type are one, cut up."""
    for piece in pieces:
        last = known[-1] if known else None
        if not isinstance(piece, dict) or not isinstance(last, dict) or not _is_same(last, piece):
            known.append(dict(piece) if isinstance(piece, dict) else piece)
            continue
        for key, value in piece.items():
            if key in {"text", "summary", "data"} and isinstance(value, str):
                last[key] = (last.get(key) or "") + value
            elif value is not None:
                last[key] = value


def _is_same(last: dict[str, Any], piece: dict[str, Any]) -> bool:
    return "index" in piece and all(piece.get(key) == last.get(key) for key in ("index", "type"))


def _usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage()
    read, written = usage.prompt_tokens_details, usage.completion_tokens_details
    return Usage(
        usage.prompt_tokens or 0,
        usage.completion_tokens or 0,
        (read and read.cached_tokens) or 0,
        (written and written.reasoning_tokens) or 0,
    )


_BOM = b"\xef\xbb\xbf"


class LineTooLong(Exception):
    """A line of a stream is longer than allowed."""


class EventReader:
    r"""Collect the data of server-sent events from pieces of a stream.

    >>> reader = EventReader(1_000)
    >>> reader.feed(b': hello\ndata: {"a":'), reader.feed(b' 1}\r\n\r\ndata: [DO'), reader.end()
    ([], [b'{"a": 1}'], [b'[DO'])

    Only data counts: names, identifiers and comments are passed over. Lines end with LF, CR or CRLF, the lines of
    one event are joined with LF, a byte order mark at the beginning is skipped (HTML Living Standard, 9.2.6). Bytes are
    decoded by whoever reads the data, so a character may be cut anywhere.
    """

    def __init__(self, max_line: int) -> None:
        self._max_line = max_line
        self._rest: list[bytes] = []
        """What has come of a line that is not complete."""
        self._rest_bytes = 0
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._started = False

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the data of the events that ``piece`` completes; raises `LineTooLong`."""
        # Without any end of a line, the piece is only kept: joining it each time would be quadratic.
        if b"\n" not in piece and b"\r" not in piece:
            self._keep(piece)
            return []
        if self._rest:
            piece = b"".join((*self._rest, piece))
            self._rest.clear()
            self._rest_bytes = 0
        if not self._started:
            self._started = True
            piece = piece.removeprefix(_BOM)
        lines = piece.splitlines(keepends=True)
        last = lines[-1]
        # A CR at the very end may be the first half of a CRLF.
        if not last.endswith(b"\n"):
            self._keep(lines.pop())
        events: list[bytes] = []
        for line in lines:
            self._take(line, events)
        return events

    def end(self) -> list[bytes]:
        """Return the data of an event that the end of the stream completes, or cuts off."""
        events: list[bytes] = []
        rest = b"".join(self._rest)
        for line in rest.removeprefix(b"" if self._started else _BOM).splitlines(keepends=True):
            self._take(line, events)
        self._rest.clear()
        self._take(b"\n", events)
        return events

    def _keep(self, piece: bytes) -> None:
        self._rest.append(piece)
        self._rest_bytes += len(piece)
        self._check(self._rest_bytes)

    def _take(self, line: bytes, events: list[bytes]) -> None:
        if line.startswith(b"data:"):
            data = line[6 if line.startswith(b"data: ") else 5 :].rstrip(b"\r\n")
            self._data.append(data)
            self._data_bytes += len(data)
            self._check(self._data_bytes)
        elif line in {b"\n", b"\r\n", b"\r"}:
            if self._data:
                events.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                self._data.clear()
                self._data_bytes = 0
        elif line.startswith(b"error: {"):
            # So llama.cpp has long written what went wrong in a stream.
            self._data.append(b'{"error":' + line[7:].rstrip(b"\r\n") + b"}")
            self._check(len(line))
        elif line.rstrip(b"\r\n") == b"data":
            self._data.append(b"")
        else:
            self._check(len(line))

    def _check(self, length: int) -> None:
        if length > self._max_line:
            raise LineTooLong


_PATH = "/chat/completions"
_DONE = b"[DONE]"


class OpenAIChat:
    """Complete conversations with OpenAI, or with any server that speaks its protocol.

    >>> from portico_openai.config import OpenAIChatSettings
    >>> chat = OpenAIChat(OpenAIChatSettings(model="qwen3:8b", base_url="http://127.0.0.1:11434/v1"))
    >>> chat.capabilities.tools, chat.capabilities.strict
    (True, False)

    Nothing is opened before the first call. Calls may run concurrently; cancelling one, or closing a stream, closes
    its connection at once. Failed connections and answers of 408, 409, 429 and 5xx are tried again as the settings
    say, a stream never once some of it was delivered. Whoever makes a service closes it with `aclose`; an injected
    HTTP client stays open. Raises ``UnsupportedOption`` and the ``ServiceError`` that fits.
    """

    def __init__(
        self,
        settings: OpenAIChatSettings,
        services: Services | None = None,
        *,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        self.name = "openai"
        self.capabilities = capabilities(settings)
        self._settings = settings
        self._connection = Connection(settings, "Chat service", http_client)
        self._tools = ToolTexts()

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the whole reply."""
        gathering = Gathering(self._connection.peer, self.name)
        text = await self._connection.fetch(_PATH, self._body(request, stream=False))
        gathering.add(decoded(text, self._connection.peer, "a reply"))
        gathering.end()
        return gathering.reply()

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """Yield the reply in pieces: text, reasoning and tool calls as they come, then the reply itself."""
        gathering = Gathering(self._connection.peer, self.name)
        async with self._connection.stream(_PATH, self._body(request, stream=True)) as incoming:
            if incoming.content_type == "application/json":
                # A server that does not stream answers whole.
                for delta in gathering.add(decoded(await incoming.rest(), incoming.peer, "a reply")):
                    yield delta
            else:
                reader = EventReader(self._settings.max_line_bytes)
                over = False
                while not over:
                    data = await incoming.read(self._settings.stream_timeout)
                    over = not data
                    for event in self._events(reader, data):
                        if event == _DONE:
                            over = True
                            gathering.finish = gathering.finish or "stop"
                            break
                        try:
                            piece = decoded(event, incoming.peer, "a piece of a stream")
                        except ResponseInvalid as error:
                            raise (error if data else self._cut_off(incoming, gathering)) from error.__cause__
                        for delta in gathering.add(piece):
                            yield delta
                if gathering.finish is None:
                    raise self._cut_off(incoming, gathering)
            for delta in gathering.end():
                yield delta
            reply = gathering.reply()
            await incoming.drain()
        yield ChatDelta(reply=reply)

    async def aclose(self) -> None:
        """Close the connections; a second time does nothing."""
        await self._connection.aclose()

    def _body(self, request: ChatRequest, *, stream: bool) -> bytes:
        request.check(self.capabilities, self.name)
        return request_body(request, self._settings, self._tools, stream=stream)

    def _events(self, reader: EventReader, data: bytes) -> list[bytes]:
        try:
            events = reader.feed(data) if data else reader.end()
        except LineTooLong:
            limit = self._settings.max_line_bytes
            raise invalid(
                self._connection.peer, f"sent a line of more than {limit:,} bytes in its stream (max_line_bytes)."
            ) from None
        return [event for event in events if event]

    def _cut_off(self, incoming: Incoming, gathering: Gathering) -> ResponseInvalid:
        if not gathering.started:
            kind = incoming.content_type or "no content type"
            what = f"sent no stream of events ({kind})" if incoming.beginning.strip() else "sent an empty stream."
            return invalid(self._connection.peer, what, incoming.beginning)
        return invalid(
            self._connection.peer,
            f"ended its stream before the reply was complete: {gathering.characters:,} characters of text had come.",
        )
