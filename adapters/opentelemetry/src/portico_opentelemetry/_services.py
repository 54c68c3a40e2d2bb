"""Services with spans around their calls. Each has all members of the service that it stands for."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any

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
from portico_opentelemetry._spans import Tracing, ended_with, error_type, said, tokens_of


class _Traced:
    def __init__(self, service: Any, tracing: Tracing) -> None:
        self._service = service
        self._tracing = tracing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._service, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._service!r})"

    @property
    def _provider(self) -> str:
        package = type(self._service).__module__.partition(".")[0]
        return names.PROVIDERS.get(package) or str(self._service.name)

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
            async with aclosing(ended_with(span, self._service.stream(request))) as pieces:
                async for delta in pieces:
                    if first:
                        span.set_attribute(names.TIME_TO_FIRST_CHUNK, time.perf_counter() - begun)
                        first = False
                    if delta.reply is not None:
                        self._take(span, delta.reply, labels)
                    yield delta

    def _labels(self) -> dict[str, Any]:
        labels = {names.OPERATION: names.CHAT, names.PROVIDER: self._provider}
        return {**labels, names.REQUEST_MODEL: self._model} if self._model else labels

    @property
    def _model(self) -> str:
        model = getattr(self._service, "model", "")
        return model if isinstance(model, str) else ""

    def _about(self, request: ChatRequest) -> tuple[str, str, dict[str, Any]]:
        attributes = {
            names.PROVIDER: self._provider,
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
        labels = {names.OPERATION: names.EMBEDDINGS, names.PROVIDER: self._provider, names.REQUEST_MODEL: model}
        attributes = {names.PROVIDER: self._provider, names.REQUEST_MODEL: model, names.TEXTS: len(texts)}
        with self._tracing.span(names.EMBEDDINGS, model, attributes, kind=SpanKind.CLIENT) as span, self._timed(labels):
            vectors = await self._service.embed(texts, **options)
            span.set_attribute(names.DIMENSIONS, vectors.dimensions)
            return vectors


class TracedTextSearch(_Traced):
    """A text search that makes a span of each search."""

    async def search(self, query: str, options: TextSearchOptions | None = None) -> SearchResults[str]:
        """Return the passages' texts."""
        return await self._found(self._service.search(query, options), query, options)

    async def get_text_search_results(
        self, query: str, options: TextSearchOptions | None = None
    ) -> SearchResults[TextSearchResult]:
        """Return the passages with name and link."""
        return await self._found(self._service.get_text_search_results(query, options), query, options)

    async def get_search_results(self, query: str, options: TextSearchOptions | None = None) -> SearchResults[Any]:
        """Return the source's own records."""
        return await self._found(self._service.get_search_results(query, options), query, options)

    async def _found(
        self, searching: Awaitable[SearchResults[Any]], query: str, options: TextSearchOptions | None
    ) -> SearchResults[Any]:
        name = self._service.name
        labels = {names.OPERATION: names.RETRIEVAL}
        attributes = {names.DATA_SOURCE: name, names.REQUEST_TOP_K: (options or TextSearchOptions()).top}
        with self._tracing.span(names.RETRIEVAL, name, attributes, kind=SpanKind.CLIENT) as span, self._timed(labels):
            self._tracing.tell(span, names.QUERY, query)
            return await searching


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
