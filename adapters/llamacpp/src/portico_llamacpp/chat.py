"""The ChatService on a model of this machine."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import AsyncIterator

from portico import ChatCapabilities, ChatDelta, ChatReply, ChatRequest
from portico.errors import PorticoError, ServiceTimeout, ServiceUnavailable
from portico.plugins import Services
from portico_llamacpp._errors import refusal
from portico_llamacpp._exchange import ReplyReader, body_of
from portico_llamacpp._process import Call, Event, ModelProcess
from portico_llamacpp._starting import start
from portico_llamacpp._wire import About, Chunk, Failure, Guard, guard_of, write_json
from portico_llamacpp.config import LlamaCppSettings


class LlamaCppChat:
    """Answer with a language model on this machine, run by llama.cpp in its own process.

    >>> chat = LlamaCppChat(LlamaCppSettings(context_size=4096, temperature=0))
    >>> chat.capabilities.tools, chat.capabilities.response_schema
    (True, True)

    The first call starts the process and loads the weights. `aclose` ends it; a later call starts another.
    A call that is cancelled, or a stream that is closed, stops the model at its next token, or within 256 tokens while
    it still reads the prompt. Calls beyond ``parallel`` wait for their turn.
    If the chat template has no tools, or a call is required, a grammar holds the reply to the form of a call.
    Raises ``ConfigurationError`` for an invalid model or template, ``ServiceUnavailable`` for a model that cannot be
    loaded or whose process ends, ``ContextOverflow``, ``ServiceTimeout``, ``SchemaUnsupported`` for a schema without a
    grammar in llama.cpp, and ``ValueError`` for a request without messages.
    """

    def __init__(self, settings: LlamaCppSettings | None = None, services: Services | None = None) -> None:
        self._settings = settings or LlamaCppSettings()
        self._starting = threading.Lock()
        self._process: ModelProcess | None = None
        self._close: weakref.finalize[[], LlamaCppChat] | None = None
        self._guard: tuple[About, Guard] | None = None
        self.name = "llamacpp"
        self.capabilities = ChatCapabilities(
            tools=True,
            response_schema=True,
            sampling=frozenset({"temperature", "top_p", "max_tokens", "stop", "seed"}),
            extras=frozenset({"top_k", "min_p", "repeat_penalty", "chat_template_kwargs", "parallel_tool_calls"}),
        )

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the whole reply."""
        async for delta in self.stream(request):
            if delta.reply is not None:
                return delta.reply
        raise ServiceUnavailable(f"The chat service {self.name!r} ended without a reply.")

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        """Yield the reply token by token; a reply in the form of a call comes whole."""
        request.check(self.capabilities, self.name)
        if not request.messages:
            raise ValueError("a chat request needs at least one message")
        if request.tool_choice.mode == "required" and not request.offered:
            raise ValueError("a call is required, and no tool is offered")
        process, about = await self._load()
        body, formed = body_of(request, self._settings, about, self._guarding(about))
        reader = ReplyReader(self.name, about.model, formed=formed)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.timeout
        events: asyncio.Queue[Event] = asyncio.Queue()

        def tell(event: Event) -> None:
            try:
                loop.call_soon_threadsafe(events.put_nowait, event)
            except RuntimeError:  # the caller's loop is closed
                process.cancel(call)

        call = Call(write_json(body), tell)
        process.submit(call)
        try:
            while (event := await self._next(events, deadline)) is not None:
                if isinstance(event, PorticoError):
                    raise event
                failure = event if isinstance(event, Failure) else event.error
                if failure is not None:
                    raise refusal(failure, constrained="response_format" in body)
                if isinstance(event, Chunk):
                    for delta in reader.feed(event):
                        yield delta
            for delta in reader.end():
                yield delta
        finally:
            process.cancel(call)

    async def aclose(self) -> None:
        """End the model's process. Running calls raise ``ServiceUnavailable``."""
        with self._starting:
            close, self._close, self._process = self._close, None, None
        if close is not None:
            await asyncio.to_thread(close)

    async def _load(self) -> tuple[ModelProcess, About]:
        process = self._process
        if process is None or process.over:
            process = await asyncio.to_thread(self._start)
        if process.ready.done():
            return process, process.ready.result()
        try:
            async with asyncio.timeout(self._settings.load_timeout):
                # Shielded: others may wait for the same model.
                return process, await asyncio.shield(asyncio.wrap_future(process.ready))
        except TimeoutError as error:
            raise ServiceTimeout(
                f"The chat service {self.name!r} loaded no model within {self._settings.load_timeout:g} seconds. "
                "Set a longer load_timeout."
            ) from error

    def _start(self) -> ModelProcess:
        with self._starting:
            if self._process is None or self._process.over:
                if self._close is not None:
                    self._close.detach()
                self._process = start(self._settings)
                # Ends the process if the service is never closed.
                self._close = weakref.finalize(self, self._process.close)
            return self._process

    def _guarding(self, about: About) -> Guard:
        if self._guard is None or self._guard[0] is not about:
            self._guard = (about, guard_of(about.control))
        return self._guard[1]

    async def _next(self, events: asyncio.Queue[Event], deadline: float) -> Event:
        if not events.empty():
            return events.get_nowait()
        try:
            async with asyncio.timeout_at(deadline):
                return await events.get()
        except TimeoutError as error:
            raise ServiceTimeout(
                f"The chat service {self.name!r} gave no whole reply within {self._settings.timeout:g} seconds. "
                "Set a longer timeout, or fewer max_tokens."
            ) from error
