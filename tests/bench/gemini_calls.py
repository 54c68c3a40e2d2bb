"""What a call of Gemini costs, against the raw Google client doing the same: `python -m tests.bench.gemini_calls`.

It measures as `chat_calls` does. The raw side is ``genai.Client`` as its documentation shows it, on aiohttp too:

- *one reply*: ``client.aio.models.generate_content``;
- *200 streamed pieces*: ``generate_content_stream``, every chunk looked at.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
from typing import Any

from tests.bench.chat_calls import ANSWERS, PIECES, QUESTION, ROUNDS, Row, measured, serve, served

MODEL = "gemini-3.8-flash"


def piece(text: str, finish: str | None = None) -> dict[str, Any]:
    """Return a piece of a reply, with all the fields that Gemini's have."""
    candidate = {"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}
    return {
        "candidates": [{**candidate, "finishReason": finish} if finish else candidate],
        "usageMetadata": {
            "promptTokenCount": 19,
            "candidatesTokenCount": 10,
            "totalTokenCount": 29,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 19}],
        },
        "modelVersion": MODEL,
        "responseId": "3kQ-aZqLCdS1vdIPh4XQ6Qg",
    }


def reply() -> bytes:
    """Write a whole answer."""
    text = json.dumps(piece("Hello! How can I assist you today?", "STOP"), indent=2).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(text)}\r\n\r\n"
    return head.encode() + text


def stream() -> bytes:
    """Write a streamed answer of `PIECES` pieces."""
    texts = [f" word{number}" for number in range(PIECES)]
    chunks = [json.dumps(piece(text, "STOP" if text is texts[-1] else None)) for text in texts]
    events = [f"data: {chunk}\r\n\r\n".encode() for chunk in chunks]
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return b"".join((head, *(b"%x\r\n%s\r\n" % (len(event), event) for event in events), b"0\r\n\r\n"))


class Ours:
    """The service."""

    def __init__(self, address: str) -> None:
        from portico import ChatRequest, Message
        from portico.plugins import Secret
        from portico_gemini.chat import GeminiChat
        from portico_gemini.config import GeminiChatSettings

        def service(path: str) -> GeminiChat:
            url = f"{address}/{path}/v1beta"
            return GeminiChat(GeminiChatSettings(model=MODEL, base_url=url, api_key=Secret("sk-0")))

        self.question = ChatRequest([Message.of("user", QUESTION)])
        self.reply, self.streamed = service("gemini-reply"), service("gemini-stream")

    async def one_reply(self) -> None:
        """Complete once."""
        await self.reply.complete(self.question)

    async def stream(self) -> None:
        """Read a stream to its end."""
        count = 0
        async for delta in self.streamed.stream(self.question):
            count += bool(delta.text)
        assert count == PIECES

    async def aclose(self) -> None:
        """Close both services."""
        await self.reply.aclose()
        await self.streamed.aclose()


class Raw:
    """The Google client by itself."""

    def __init__(self, address: str) -> None:
        from google import genai
        from google.genai.types import HttpOptions

        self.reply, self.streamed = (
            genai.Client(api_key="sk-0", vertexai=False, http_options=HttpOptions(base_url=f"{address}/{path}"))
            for path in ("gemini-reply", "gemini-stream")
        )

    async def one_reply(self) -> None:
        """Complete once."""
        await self.reply.aio.models.generate_content(model=MODEL, contents=QUESTION)

    async def stream(self) -> None:
        """Read a stream to its end."""
        count = 0
        async for chunk in await self.streamed.aio.models.generate_content_stream(model=MODEL, contents=QUESTION):
            count += bool(chunk.text)
        assert count == PIECES

    async def aclose(self) -> None:
        """Close both clients."""
        await self.reply.aio.aclose()
        await self.streamed.aio.aclose()


async def compare(address: str) -> int:
    """Measure, print the table and one JSON line; return 1 where a limit is broken."""
    ours, raw = Ours(address), Raw(address)
    rows = [
        Row("one reply", ours.one_reply, raw.one_reply, 0.6),
        Row(f"{PIECES} streamed pieces", ours.stream, raw.stream, 0.25, repeats=2),
    ]
    figures: dict[str, dict[str, float]] = {}
    print(f"medians of {ROUNDS} rounds each, milliseconds")
    try:
        for row in rows:
            mine, theirs = await measured(row)
            ratio = statistics.median(own.wall / other.wall for own, other in zip(mine, theirs, strict=True))
            own, other = (statistics.median(sample.wall for sample in side) for side in (mine, theirs))
            print(f"{row.name:34}{other:10.2f}{own:10.2f}{ratio:8.2f}x  <= {row.limit:4.2f}x")
            figures[row.name] = {"ms": own, "raw_ms": other, "ratio": ratio, "limit": row.limit}
    finally:
        await ours.aclose()
        await raw.aclose()
    broken = [name for name, figure in figures.items() if figure["ratio"] > figure["limit"]]
    print(json.dumps({"bench": "gemini_calls", "broken": broken, "figures": figures}))
    return 1 if broken else 0


def main() -> int:
    """Serve, or compare."""
    if sys.argv[1:] == ["serve"]:
        ANSWERS.update({b"/gemini-reply": reply(), b"/gemini-stream": stream()})
        asyncio.run(serve())
        return 0
    with served("tests.bench.gemini_calls") as address:
        return asyncio.run(compare(address))


if __name__ == "__main__":
    sys.exit(main())
