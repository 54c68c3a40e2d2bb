"""Services with spans around their calls. Each has all members of the service that it stands for."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.trace import Span, SpanKind

from portico import (
    ChatDelta,
    ChatReply,
    ChatRequest,
    Message,
    SearchResults,
    Text,
    TextSearchOptions,
    TextSearchResult,
    ToolCall,
    ToolResult,
)
from portico_opentelemetry import _names as names
from portico_opentelemetry._spans import Tracing, ended_with, error_type, fail, inside, said, tokens_of

_PORTS = {"http": 80, "https": 443}
_SEARCHES = "__portico_search_method__"
"""The mark of `portico.search_method`."""


class _Traced:
    def __init__(self, service: Any, tracing: Tracing) -> None:
        self._service = service
        self._tracing = tracing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._service, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._service!r})"

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        # What a class has and a member has not, such as the marks of search methods, is found too.
        return type(self._service)

    @property
    def _asked(self) -> dict[str, Any]:
        """Return whom the service asks: the provider, and the server where it has an address."""
        package = type(self._service).__module__.partition(".")[0]
        provider = names.PROVIDERS.get(package) or str(self._service.name)
        try:
            address = urlsplit(getattr(self._service, "address", ""))
            server, port = address.hostname, address.port or _PORTS.get(address.scheme)
        except (AttributeError, TypeError, ValueError):
            server = port = None
        if not server:
            return {names.PROVIDER: provider}
        provider = next((cloud for end, cloud in names.CLOUDS.items() if server.endswith(end)), provider)
        return {names.PROVIDER: provider, names.SERVER: server, **({names.SERVER_PORT: port} if port else {})}

    @contextmanager
    def _timed(self, labels: dict[str, Any]) -> Iterator[None]:
        """Count how long the block takes, and the type of its error; ``labels`` may still grow in it."""
        begun = time.perf_counter()
        try:
            yield
        except GeneratorExit:
            raise
        except BaseException as error:
            labels[names.ERROR_TYPE] = error_type(error)
            raise
        finally:
            self._tracing.seconds.record(time.perf_counter() - begun, labels)


class TracedChatService(_Traced):
    """A chat service that makes a span of each reply."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the whole reply."""
        labels = self._labels()
        with self._tracing.span(*self._about(request), kind=SpanKind.CLIENT) as span, self._timed(labels):
            self._ask(span, request)
            reply: ChatReply = await self._service.complete(request)
            self._take(span, reply, labels)
            return reply

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """Yield the reply in pieces."""
        labels, begun, first = self._labels(), time.perf_counter(), True
        operation, subject, attributes = self._about(request)
        span = self._tracing.start(operation, subject, {**attributes, names.REQUEST_STREAM: True}, kind=SpanKind.CLIENT)
        self._ask(span, request)
        with self._timed(labels):
            async with aclosing(ended_with(span, partial(self._service.stream, request))) as pieces:
                async for delta in pieces:
                    if first:
                        span.set_attribute(names.TIME_TO_FIRST_CHUNK, time.perf_counter() - begun)
                        first = False
                    if delta.reply is not None:
                        self._take(span, delta.reply, labels)
                    yield delta

    def _labels(self) -> dict[str, Any]:
        labels = {names.OPERATION: names.CHAT, **self._asked}
        return {**labels, names.REQUEST_MODEL: self._model} if self._model else labels

    @property
    def _model(self) -> str:
        model = getattr(self._service, "model", "")
        return model if isinstance(model, str) else ""

    def _about(self, request: ChatRequest) -> tuple[str, str, dict[str, Any]]:
        attributes = {
            **self._asked,
            names.REQUEST_MODEL: self._model or None,
            names.REQUEST_TEMPERATURE: request.temperature,
            names.REQUEST_TOP_P: request.top_p,
            names.REQUEST_MAX_TOKENS: request.max_tokens,
            names.REQUEST_SEED: request.seed,
            names.REQUEST_STOP: tuple(request.stop) or None,
            names.OUTPUT_TYPE: None if request.response_schema is None else "json",
        }
        return names.CHAT, self._model, attributes

    def _ask(self, span: Span, request: ChatRequest) -> None:
        if self._tracing.content:
            self._tracing.tell(span, names.INPUT_MESSAGES, list(map(_as_written, request.messages)))

    def _take(self, span: Span, reply: ChatReply, labels: dict[str, Any]) -> None:
        if reply.model:
            span.set_attribute(names.RESPONSE_MODEL, reply.model)
            labels[names.RESPONSE_MODEL] = reply.model
        span.set_attribute(names.FINISH_REASONS, (reply.finish,))
        span.set_attributes(tokens_of(reply.usage))
        counted = (("input", reply.usage.input_tokens), ("output", reply.usage.output_tokens))
        for kind, count in counted if any(count for _, count in counted) else ():
            self._tracing.tokens.record(count, {**labels, names.TOKEN_TYPE: kind})
        if self._tracing.content:
            answer = {**_as_written(reply.message), "finish_reason": reply.finish.replace("tool_calls", "tool_call")}
            self._tracing.tell(span, names.OUTPUT_MESSAGES, [answer])


class TracedEmbeddingGenerator(_Traced):
    """An embedding generator that makes a span of each call."""

    async def embed(self, texts: Sequence[str], **options: Any) -> Any:
        """Embed texts."""
        model = self._service.model
        asked = {**self._asked, names.REQUEST_MODEL: model}
        labels = {names.OPERATION: names.EMBEDDINGS, **asked}
        attributes = {**asked, names.TEXTS: len(texts) if hasattr(texts, "__len__") else None}
        with self._tracing.span(names.EMBEDDINGS, model, attributes, kind=SpanKind.CLIENT) as span, self._timed(labels):
            vectors = await self._service.embed(texts, **options)
            span.set_attribute(names.DIMENSIONS, vectors.dimensions)
            return vectors


class TracedTextSearch(_Traced):
    """A text search that makes a span of each search, which ends when its results have been read."""

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._service, name)
        return partial(self._find, member) if hasattr(member, _SEARCHES) else member

    async def search(self, query: str, options: TextSearchOptions | None = None) -> SearchResults[str]:
        """Return the passages' texts."""
        return await self._find(self._service.search, query, options)

    async def get_text_search_results(
        self, query: str, options: TextSearchOptions | None = None
    ) -> SearchResults[TextSearchResult]:
        """Return the passages with name and link."""
        return await self._find(self._service.get_text_search_results, query, options)

    async def get_search_results(self, query: str, options: TextSearchOptions | None = None) -> SearchResults[Any]:
        """Return the source's own records."""
        return await self._find(self._service.get_search_results, query, options)

    async def _find(
        self, method: Callable[..., Awaitable[SearchResults[Any]]], query: str, options: TextSearchOptions | None = None
    ) -> SearchResults[Any]:
        name = self._service.name
        attributes = {names.DATA_SOURCE: name, names.REQUEST_TOP_K: (options or TextSearchOptions()).top}
        span = self._tracing.start(names.RETRIEVAL, name, attributes, kind=SpanKind.CLIENT)
        try:
            self._tracing.tell(span, names.QUERY, query, text=True)
            with inside(span), self._timed({names.OPERATION: names.RETRIEVAL, names.PROVIDER: str(name)}):
                found = await method(query, options)
        except BaseException as error:
            fail(span, error)
            span.end()
            raise
        return found.over(_Counted(span, found), found.total_count)


class _Counted:
    """Results that are counted as they are read, and whose span ends with them."""

    def __init__(self, span: Span, results: SearchResults[Any]) -> None:
        self._results = aiter(results)
        self._read = 0
        self._span = span
        span.set_attribute(names.RESULTS, 0)
        # Results may be left without being closed. Nothing is exported in the middle of a collection of garbage.
        self._left = weakref.finalize(self, _end_soon, asyncio.get_running_loop(), span)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        try:
            with inside(self._span):
                found = await anext(self._results)
        except BaseException as error:
            if not isinstance(error, StopAsyncIteration):
                fail(self._span, error)
            await self.aclose()
            raise
        self._read += 1
        self._span.set_attribute(names.RESULTS, self._read)
        return found

    async def aclose(self) -> None:
        """End the span; the results that are read are closed by those that the reader has."""
        if self._left.detach() is not None:
            self._span.end()


def _end_soon(loop: asyncio.AbstractEventLoop, span: Span) -> None:
    with suppress(RuntimeError):  # The loop is closed.
        loop.call_soon_threadsafe(span.end)


def _as_written(message: Message) -> dict[str, Any]:
    """Return a message as the conventions write it; of what is attached, its kind."""
    parts: list[dict[str, Any]] = []
    for part in message.content:
        if isinstance(part, Text):
            parts.append({"type": "text", "content": str(part.text)})
        elif isinstance(part, ToolCall):
            parts.append({"type": "tool_call", "id": part.id, "name": part.name, "arguments": part.arguments})
        elif isinstance(part, ToolResult):
            parts.append({"type": "tool_call_response", "id": part.id, "response": part.content})
        else:
            parts.append({"type": type(part).__name__.lower()})
    return {**said(message.role, ""), "parts": parts}
