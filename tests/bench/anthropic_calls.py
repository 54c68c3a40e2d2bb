"""What a call costs against the raw Anthropic client doing the same: `python -m tests.bench.anthropic_calls`.

It measures as `chat_calls` does. The raw side is ``anthropic.AsyncAnthropic`` as its documentation shows it:

- *one reply*: ``messages.create``;
- *200 streamed pieces*: ``create(stream=True)``, every event looked at.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
from typing import Any

from tests.bench.chat_calls import PIECES, QUESTION, ROUNDS, Row, measured, served

MODEL = "claude-sonnet-5-5"


class Ours:
    """The service."""

    def __init__(self, address: str) -> None:
        from portico import ChatRequest, Message
        from portico.plugins import Secret
        from portico_anthropic.chat import AnthropicChat
        from portico_anthropic.config import AnthropicChatSettings

        def service(path: str) -> AnthropicChat:
            return AnthropicChat(
                AnthropicChatSettings(model=MODEL, base_url=f"{address}/{path}", api_key=Secret("sk-0"))
            )

        self.question = ChatRequest([Message.of("user", QUESTION)])
        self.reply, self.streamed = service("claude-reply"), service("claude-stream")

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
    """The Anthropic client by itself."""

    def __init__(self, address: str) -> None:
        import anthropic

        self.messages: list[Any] = [{"role": "user", "content": QUESTION}]
        self.reply, self.streamed = (
            anthropic.AsyncAnthropic(api_key="sk-0", base_url=f"{address}/{path}")
            for path in ("claude-reply", "claude-stream")
        )

    async def one_reply(self) -> None:
        """Complete once."""
        await self.reply.messages.create(model=MODEL, max_tokens=1_000, messages=self.messages)

    async def stream(self) -> None:
        """Read a stream to its end."""
        count = 0
        async for event in await self.streamed.messages.create(
            model=MODEL, max_tokens=1_000, messages=self.messages, stream=True
        ):
            count += event.type == "content_block_delta" and bool(event.delta.text)
        assert count == PIECES

    async def aclose(self) -> None:
        """Close both clients."""
        await self.reply.close()
        await self.streamed.close()


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
    print(json.dumps({"bench": "anthropic_calls", "broken": broken, "figures": figures}))
    return 1 if broken else 0


if __name__ == "__main__":
    with served() as address:
        sys.exit(asyncio.run(compare(address)))
