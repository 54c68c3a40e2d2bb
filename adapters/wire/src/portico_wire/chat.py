"""What chat services that are reached over HTTP have in common: one reply or a stream of events, read as it comes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable
from dataclasses import replace

from portico import ChatCapabilities, ChatDelta, ChatReply, ChatRequest
from portico.errors import ResponseInvalid, ServiceTimeout
from portico_wire.connection import Connection, Incoming
from portico_wire.errors import Peer, invalid
from portico_wire.events import EventReader
from portico_wire.prices import Prices

_ENDING = 2.0
"""Seconds to wait for the end of a stream whose reply is complete, where the service does not say that it is over."""


def web_label(service: str) -> tuple[str, ...]:
    """Return what had a part in a reply for which the service searched the web."""
    return (f"the web, searched by {service}",)


def unused_id(wanted: str, taken: Iterable[str]) -> str:
    """Return the identifier, made longer where another call of the reply has it."""
    others = set(taken)
    while wanted in others:
        wanted += "_"
    return wanted


class ReplyReader(ABC):
    """Reads one reply in a service's form: whole, or event by event."""

    begun = False
    """Whether something of a reply has come."""
    complete = False
    """Whether all of it has come: what a stream that breaks off lacks."""
    over = False
    """Whether the service said that no event follows; the end of the connection is not waited for then."""
    characters = 0
    """Characters of text so far."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    @abstractmethod
    def read(self, text: bytes) -> list[ChatDelta]:
        """Read a whole reply and return what it brings. Raises a ``ServiceError``."""

    @abstractmethod
    def add(self, event: bytes) -> list[ChatDelta]:
        """Read the data of one event and return what it brings. Raises a ``ServiceError``."""

    def end(self) -> list[ChatDelta]:
        """Return what is still to be reported before the reply."""
        return []

    @abstractmethod
    def reply(self) -> ChatReply:
        """Return the reply that has been read. Raises a ``ServiceError``, for a refusal too."""


class WireChat(ABC):
    """A chat service on a `Connection`: a service says how its requests and replies are written.

    Calls may run concurrently; cancelling one, or closing a stream, closes its connection at once.
    """

    name: str
    capabilities: ChatCapabilities

    def __init__(self, connection: Connection, stream_timeout: float) -> None:
        self._connection = connection
        self._stream_timeout = stream_timeout
        self._prices = Prices(connection.settings)

    @property
    def knows_cost(self) -> bool:
        """Whether the price of the model is known, so that replies say what they cost."""
        return self._prices.known

    def _check(self, request: ChatRequest) -> None:
        """Raise ``UnsupportedOption`` for what the capabilities do not allow."""
        request.check(self.capabilities, self.name)

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self._connection.peer.model

    @property
    def address(self) -> str:
        """The address of the service."""
        return self._connection.settings.address

    @abstractmethod
    def _path(self, *, stream: bool) -> str:
        """Return what follows ``base_url``."""

    @abstractmethod
    def _body(self, request: ChatRequest, *, stream: bool) -> bytes:
        """Write a request that the capabilities allow."""

    @abstractmethod
    def _reader(self, request: ChatRequest) -> ReplyReader:
        """Return what reads the reply to a request."""

    def _events(self) -> EventReader:
        """Return what reads the events of a stream."""
        return EventReader()

    def _further(self, request: ChatRequest, reader: ReplyReader, *, stream: bool) -> bytes | None:
        """Return the body of a further request, where the service wants one before its reply is whole."""
        return None

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the whole reply."""
        self._check(request)
        reader = self._reader(request)
        with self._connection.peer.hiding():
            body: bytes | None = self._body(request, stream=False)
            while body is not None:
                reader.read(await self._connection.fetch(self._path(stream=False), body))
                reader.end()
                body = self._further(request, reader, stream=False)
            return self._finish(request, reader.reply())

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """Yield the reply in pieces: text, reasoning and tool calls as they come, then the reply itself."""
        self._check(request)
        reader = self._reader(request)
        with self._connection.peer.hiding():
            body: bytes | None = self._body(request, stream=True)
            while body is not None:
                async with self._connection.open(self._path(stream=True), body) as incoming:
                    if incoming.content_type == "application/json":
                        # A server that does not stream answers whole.
                        for delta in reader.read(await incoming.rest()):
                            yield delta
                    else:
                        events = self._events()
                        while True:
                            data = await self._next(incoming, reader)
                            at_end = not data
                            for event in filter(None, events.end() if at_end else events.feed(data)):
                                try:
                                    deltas = reader.add(event)
                                except ResponseInvalid as error:
                                    raise (_cut_off(reader, incoming) if at_end else error) from error.__cause__
                                for delta in deltas:
                                    yield delta
                                if reader.over:
                                    break
                            if at_end or reader.over:
                                break
                        if not reader.complete:
                            raise _cut_off(reader, incoming)
                    for delta in reader.end():
                        yield delta
                    body = self._further(request, reader, stream=True)
                    reply = None if body else self._finish(request, reader.reply())
                    await incoming.drain()
        yield ChatDelta(reply=reply)

    async def _next(self, incoming: Incoming, reader: ReplyReader) -> bytes:
        """Return the next piece of a stream; after a complete reply, tokens may still be counted, and that is all."""
        if not reader.complete:
            return await incoming.read(self._stream_timeout)
        try:
            return await incoming.read(min(self._stream_timeout, _ENDING))
        except ServiceTimeout:
            return b""

    def _finish(self, request: ChatRequest, reply: ChatReply) -> ChatReply:
        """Check a reply for a call that was required, and add what it cost."""
        if request.tool_choice.mode == "required" and reply.finish == "stop" and not reply.tool_calls:
            peer = self._connection.peer
            answer = f"answered with text: {peer.shorten(reply.text)}" if reply.text else "did not answer"
            advice = "Choose a model or a service that honours the option, or leave the choice to the model (auto)."
            said = peer.says(f"ignored tool_choice 'required', called no tool and {answer}. {advice}")
            raise ResponseInvalid(said, text=reply.text)
        if reply.usage.cost is not None:
            return reply
        return replace(reply, usage=self._prices.add(reply.usage, reply.model))

    async def aclose(self) -> None:
        """Close the connections; a second time does nothing."""
        await self._connection.aclose()


def _cut_off(reader: ReplyReader, incoming: Incoming) -> ResponseInvalid:
    if not reader.begun:
        return invalid(reader.peer, "sent no stream of events", incoming.beginning)
    size = f"{reader.characters:,} characters"
    return invalid(reader.peer, f"ended its stream before the reply was complete: {size} of text had come.")
