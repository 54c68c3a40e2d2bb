"""What a call costs against each vendor's SDK doing the same: `python -m tests.bench.vendor_calls`.

It measures as `chat_calls` does, which has OpenAI's Chat Completions. The raw sides are the SDKs as their documentation
shows them: ``openai``'s Responses, ``anthropic``'s Messages, ``google-genai``'s models; one whole reply, and a stream
of which every piece is looked at.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterable, Awaitable, Callable
from typing import Any

from tests.bench.chat_calls import ANSWERS, PIECES, QUESTION, Row, report, serve, served
from tests.support.model_forms import Gemini, Messages, ModelForm, Responses, pieces_of

FORMS: dict[str, ModelForm] = {"responses": Responses(), "anthropic": Messages(), "gemini": Gemini()}
TEXT = "abc" * PIECES
assert len(list(pieces_of(TEXT))) == PIECES


def answers() -> dict[bytes, bytes]:
    """Return what the server says: whole replies, and streams of `PIECES` pieces."""
    made = {}
    for name, form in FORMS.items():
        whole, kind = form.answer("generateContent", {}, "Hello! How can I assist you today?", 1)
        length = f"content-type: {kind}\r\ncontent-length: {len(whole)}"
        made[f"/{name}".encode()] = f"HTTP/1.1 200 OK\r\n{length}\r\n\r\n".encode() + whole
        events, kind = form.answer("streamGenerateContent", {"stream": True}, TEXT, 1)
        chunks = [event + b"\n\n" for event in events.split(b"\n\n") if event]
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
        body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
        made[f"/{name}-stream".encode()] = head + body + b"0\r\n\r\n"
    return made


def services(address: str, path: str) -> dict[str, Any]:
    """Return ours, by the names of the forms."""
    from portico.plugins import Secret
    from portico_anthropic.chat import AnthropicChat
    from portico_anthropic.config import AnthropicChatSettings
    from portico_gemini.chat import GeminiChat
    from portico_gemini.config import GeminiChatSettings
    from portico_openai.chat import OpenAIChat
    from portico_openai.config import OpenAIChatSettings

    common: dict[str, Any] = {"model": "m-1", "api_key": Secret("sk-0")}
    return {
        "responses": OpenAIChat(
            OpenAIChatSettings(**common, api="responses", base_url=f"{address}/responses{path}/v1")
        ),
        "anthropic": AnthropicChat(AnthropicChatSettings(**common, base_url=f"{address}/anthropic{path}")),
        "gemini": GeminiChat(GeminiChatSettings(**common, base_url=f"{address}/gemini{path}/v1beta")),
    }


class Raw:
    """The vendors' clients by themselves."""

    def __init__(self, address: str, path: str) -> None:
        import anthropic
        import openai
        from google import genai
        from google.genai.types import HttpOptions

        self.openai = openai.AsyncOpenAI(api_key="sk-0", base_url=f"{address}/responses{path}/v1")
        self.anthropic = anthropic.AsyncAnthropic(api_key="sk-0", base_url=f"{address}/anthropic{path}")
        options = HttpOptions(base_url=f"{address}/gemini{path}")
        self.gemini = genai.Client(api_key="sk-0", vertexai=False, http_options=options).aio
        self.messages: list[Any] = [{"role": "user", "content": QUESTION}]

    def asked(self, name: str, *, stream: bool = False) -> Awaitable[Any]:
        """Return a call of one client."""
        match name:
            case "responses":
                return self.openai.responses.create(model="m-1", input=self.messages, store=False, stream=stream)
            case "anthropic":
                return self.anthropic.messages.create(
                    model="m-1", max_tokens=1_000, messages=self.messages, stream=stream
                )
        models = self.gemini.models
        ask: Any = models.generate_content_stream if stream else models.generate_content
        return ask(model="m-1", contents=QUESTION)  # type: ignore[no-any-return]

    def one_reply(self, name: str) -> Callable[[], Awaitable[Any]]:
        """Return what asks once."""
        return lambda: self.asked(name)

    def streamed(self, name: str) -> Callable[[], Awaitable[None]]:
        """Return what reads a stream to its end."""

        def has_text(event: Any) -> bool:
            if name == "responses":
                return event.type == "response.output_text.delta" and bool(event.delta)
            if name == "anthropic":
                return event.type == "content_block_delta" and bool(event.delta.text)
            return bool(event.text)

        async def read() -> None:
            assert await count(await self.asked(name, stream=True), has_text) == PIECES

        return read

    async def aclose(self) -> None:
        """Close the clients."""
        await self.openai.close()
        await self.anthropic.close()
        await self.gemini.aclose()


async def count(events: AsyncIterable[Any], has_text: Callable[[Any], bool]) -> int:
    """Count the pieces of text in a stream."""
    found = 0
    async for event in events:
        found += has_text(event)
    return found


async def compare(address: str) -> int:
    """Compare both sides, for each vendor."""
    from portico import ChatRequest, Message

    question = ChatRequest([Message.of("user", QUESTION)])
    whole, streaming = services(address, ""), services(address, "-stream")
    raw, raw_streaming = Raw(address, ""), Raw(address, "-stream")

    def complete(name: str) -> Callable[[], Awaitable[Any]]:
        return lambda: whole[name].complete(question)

    def stream(name: str) -> Callable[[], Awaitable[None]]:
        async def read() -> None:
            assert await count(streaming[name].stream(question), lambda delta: bool(delta.text)) == PIECES

        return read

    rows = []
    for name in FORMS:
        rows.append(Row(f"{name}: one reply", complete(name), raw.one_reply(name), 0.6))
        rows.append(Row(f"{name}: {PIECES} pieces", stream(name), raw_streaming.streamed(name), 0.25, repeats=2))
    try:
        return await report("vendor_calls", rows)
    finally:
        for service in (*whole.values(), *streaming.values(), raw, raw_streaming):
            await service.aclose()


def main() -> int:
    """Serve, or compare."""
    if sys.argv[1:] == ["serve"]:
        ANSWERS.update(answers())
        asyncio.run(serve())
        return 0
    with served("tests.bench.vendor_calls") as address:
        return asyncio.run(compare(address))


if __name__ == "__main__":
    sys.exit(main())
