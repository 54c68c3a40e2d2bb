"""What a chat call costs, against the raw OpenAI client doing the same: `python -m tests.bench.chat_calls`.

Both sides talk to one server on loopback, a separate process that answers every request with bytes made beforehand:
what is measured is the client. The sides take turns in short rounds, and the ratio is the median over the rounds, so
that a slow moment of the machine falls on both alike. It is held to its limit by the clock, as a user waits; beside it
stands the ratio by processor time, which other work on the machine does not move. The raw side is
``openai.AsyncOpenAI`` as its documentation shows it:

- *one reply*, *one reply of 100 tools offered*: ``chat.completions.create``;
- *200 streamed pieces*: ``create(stream=True)``, every chunk looked at;
- *64 replies at once*: the same under ``asyncio.gather``; here the ratio is of replies per second;
- *a structured reply*: ``chat.completions.parse`` into a pydantic model, against the service and a JSON decoder;
- *a typed reply*: the same, against ``Kernel.complete(returns=...)`` into a dataclass;
- *one call and its answer*, *three calls and the answer*: the loop written by hand, against ``Kernel.complete``.

A row of `rows` is all that a further comparison needs; `answer` of the server picks the bytes by the path.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

ROUNDS = 41
AT_ONCE = 64
PIECES = 200


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison: what both sides do, how often in a round, and the ratio that is held to.

    With ``throughput`` the ratio is of how much each side gets done, and the limit is a least one.
    """

    name: str
    ours: Callable[[], Awaitable[Any]]
    raw: Callable[[], Awaitable[Any]]
    limit: float
    repeats: int = 5
    throughput: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a calculation."""

    explanation: str
    output: str


@dataclass(frozen=True, slots=True)
class MathReasoning:
    """A calculation and its result."""

    steps: list[Step]
    final_answer: str


QUESTION = "How can I solve 8x + 7 = -23?"
SOLUTION = {
    "steps": [
        {"explanation": f"Step {number}: do the same on both sides.", "output": f"8x = {-30 + number}"}
        for number in range(5)
    ],
    "final_answer": "x = -3.75",
}


def temperature(city: str, unit: str = "celsius") -> float:
    """Tell the temperature in a city."""
    return 21.5


# --- the server ---------------------------------------------------------------------------------------------------


def completion(message: dict[str, Any], finish: str = "stop") -> bytes:
    """Write a whole answer, with all the fields that OpenAI's have."""
    body = {
        "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
        "object": "chat.completion",
        "created": 1741569952,
        "model": "gpt-4o-mini-2024-07-18",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": None, "refusal": None, "annotations": [], **message},
                "logprobs": None,
                "finish_reason": finish,
            }
        ],
        "usage": {
            "prompt_tokens": 19,
            "completion_tokens": 10,
            "total_tokens": 29,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
        },
        "service_tier": "default",
        "system_fingerprint": "fp_06737a9306",
    }
    text = json.dumps(body).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(text)}\r\n\r\n"
    return head.encode() + text


def stream() -> bytes:
    """Write a streamed answer of `PIECES` pieces."""

    def chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
        body = {
            "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
            "object": "chat.completion.chunk",
            "created": 1741569952,
            "model": "gpt-4o-mini-2024-07-18",
            "service_tier": "default",
            "system_fingerprint": "fp_06737a9306",
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
        }
        data = b"data: " + json.dumps(body).encode() + b"\n\n"
        return b"%x\r\n%s\r\n" % (len(data), data)

    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    words = [chunk({"content": f" word{number}"}) for number in range(PIECES)]
    begin, end = chunk({"role": "assistant", "content": ""}), chunk({}, "stop")
    return b"".join((head, begin, *words, end, b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"))


def calls(count: int, name: str = "temperature") -> bytes:
    """Write an answer that asks for ``count`` calls of a function."""
    made = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps({"city": f"City {number}"})},
        }
        for number in range(count)
    ]
    return completion({"tool_calls": made}, "tool_calls")


WHOLE = completion({"content": "Hello! How can I assist you today?"})
ANSWERS = {
    b"/reply": WHOLE,
    b"/stream": stream(),
    b"/structured": completion({"content": json.dumps(SOLUTION)}),
    b"/one-call": calls(1),
    b"/three-calls": calls(3),
    # For those who put the name of a plugin before that of a function.
    b"/one-call-of-weather": calls(1, "Weather-temperature"),
    b"/three-calls-of-weather": calls(3, "Weather-temperature"),
}


def answer(request: bytes) -> bytes:
    """Pick the answer by the beginning of the path; calls are made until their results are there."""
    if b'"role":"tool"' in request or b'"role": "tool"' in request:
        return WHOLE
    path = request[request.index(b" ") + 1 :]
    return ANSWERS[path[: path.index(b"/", 1)]]


class Server(asyncio.Protocol):
    """As little HTTP as it takes: requests one after another on a connection, bodies of a known length."""

    def connection_made(self, transport: Any) -> None:
        """Begin with nothing read."""
        self.transport = transport
        self.read = b""

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole."""
        self.read += data
        while (end := self.read.find(b"\r\n\r\n")) >= 0:
            head = self.read[:end].lower() + b"\r\n"
            place = head.index(b"content-length:") + len(b"content-length:")
            whole = end + 4 + int(head[place : head.index(b"\r\n", place)])
            if len(self.read) < whole:
                return
            self.transport.write(answer(self.read[:whole]))
            self.read = self.read[whole:]


async def serve() -> None:
    """Serve until the process is ended; the first line of output is the port."""
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def served(module: str = "tests.bench.chat_calls") -> Iterator[str]:
    """Run the server in another process, as ``module serve`` does, and give its address."""
    process = subprocess.Popen([sys.executable, "-m", module, "serve"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


# --- the two sides ------------------------------------------------------------------------------------------------


class Ours:
    """The service and the kernel on it."""

    def __init__(self, address: str) -> None:
        from portico import ChatRequest, Kernel, Message, Tool
        from portico.plugins import Secret, compile_type
        from portico_openai.chat import OpenAIChat
        from portico_openai.config import OpenAIChatSettings

        def service(path: str) -> OpenAIChat:
            settings = OpenAIChatSettings(
                model="gpt-4o-mini", base_url=f"{address}/{path}", api_key=Secret("sk-0"), strict=True
            )
            self.services.append(OpenAIChat(settings))
            return self.services[-1]

        self.services: list[OpenAIChat] = []
        self.question = ChatRequest([Message.of("user", QUESTION)])
        self.with_tools = ChatRequest(
            self.question.messages,
            tools=tuple(Tool(tool["name"], tool["description"], tool["parameters"]) for tool in tools()),
        )
        self.with_schema = ChatRequest(self.question.messages, response_schema=compile_type(MathReasoning).schema)
        self.kernel = Kernel()
        self.kernel.add_function(temperature)
        self.reply, self.streamed, self.structured = service("reply"), service("stream"), service("structured")
        self.one_call, self.three_calls = service("one-call"), service("three-calls")

    async def one_reply(self) -> None:
        """Complete once."""
        await self.reply.complete(self.question)

    async def stream(self) -> None:
        """Read a stream to its end."""
        count = 0
        async for delta in self.streamed.stream(self.question):
            count += bool(delta.text)
        assert count == PIECES

    async def offer_tools(self) -> None:
        """Complete once with 100 tools."""
        await self.reply.complete(self.with_tools)

    async def decode(self) -> None:
        """Complete with a schema and decode the text."""
        import msgspec

        reply = await self.structured.complete(self.with_schema)
        assert msgspec.json.decode(reply.text)["final_answer"] == SOLUTION["final_answer"]

    async def typed(self) -> None:
        """Ask the kernel for a dataclass."""
        turn = await self.kernel.complete(QUESTION, returns=MathReasoning, chat=self.structured)
        assert turn.value.final_answer == SOLUTION["final_answer"]

    def loop(self, count: int) -> Callable[[], Awaitable[None]]:
        """Return a turn with so many calls in it."""
        chat = self.one_call if count == 1 else self.three_calls

        async def turn() -> None:
            made = await self.kernel.complete(QUESTION, functions=["temperature"], chat=chat)
            assert len(made.messages) == 3

        return turn

    async def aclose(self) -> None:
        """Close all services."""
        for service in self.services:
            await service.aclose()


class Raw:
    """The OpenAI client by itself."""

    def __init__(self, address: str) -> None:
        import openai
        from pydantic import BaseModel

        class PydanticStep(BaseModel):
            explanation: str
            output: str

        class PydanticMathReasoning(BaseModel):
            steps: list[PydanticStep]
            final_answer: str

        def client(path: str) -> openai.AsyncOpenAI:
            self.clients.append(openai.AsyncOpenAI(api_key="sk-0", base_url=f"{address}/{path}"))
            return self.clients[-1]

        self.clients: list[openai.AsyncOpenAI] = []
        self.messages: list[Any] = [{"role": "user", "content": QUESTION}]
        self.tools: list[Any] = [{"type": "function", "function": tool} for tool in tools()]
        self.form = PydanticMathReasoning
        self.reply, self.streamed, self.structured = client("reply"), client("stream"), client("structured")
        self.one_call, self.three_calls = client("one-call"), client("three-calls")

    async def one_reply(self) -> None:
        """Complete once."""
        await self.reply.chat.completions.create(model="gpt-4o-mini", messages=self.messages)

    async def stream(self) -> None:
        """Read a stream to its end."""
        count = 0
        async for chunk in await self.streamed.chat.completions.create(
            model="gpt-4o-mini", messages=self.messages, stream=True, stream_options={"include_usage": True}
        ):
            count += bool(chunk.choices and chunk.choices[0].delta.content)
        assert count == PIECES

    async def offer_tools(self) -> None:
        """Complete once with 100 tools."""
        await self.reply.chat.completions.create(model="gpt-4o-mini", messages=self.messages, tools=self.tools)

    async def typed(self) -> None:
        """Parse into a pydantic model."""
        parsed = await self.structured.chat.completions.parse(
            model="gpt-4o-mini", messages=self.messages, response_format=self.form
        )
        value = parsed.choices[0].message.parsed
        assert value is not None
        assert value.final_answer == SOLUTION["final_answer"]

    def loop(self, count: int) -> Callable[[], Awaitable[None]]:
        """Return a turn with so many calls in it, as a page of the documentation writes it."""
        client = self.one_call if count == 1 else self.three_calls
        parameters = {
            "type": "object",
            "properties": {"city": {"type": "string"}, "unit": {"type": "string"}},
            "required": ["city"],
        }
        function = {"name": "temperature", "description": temperature.__doc__, "parameters": parameters}

        async def turn() -> None:
            offered: list[Any] = [{"type": "function", "function": function}]
            messages = list(self.messages)
            while True:
                reply = await client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=offered)
                message = reply.choices[0].message
                if not message.tool_calls:
                    break
                messages.append(message)
                for call in message.tool_calls:
                    result = temperature(**json.loads(call.function.arguments))
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})
            assert len(messages) == 2 + count

        return turn

    async def aclose(self) -> None:
        """Close all clients."""
        for client in self.clients:
            await client.close()


def tools() -> list[dict[str, Any]]:
    """Return 100 tools of an ordinary shape."""
    parameters = {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What is looked for."},
            "count": {"type": "integer", "description": "How many at most."},
            "order": {"type": "string", "enum": ["newest", "oldest", "best"]},
            "place": {"type": "object", "properties": {"city": {"type": "string"}, "country": {"type": "string"}}},
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    return [
        {"name": f"Catalogue-Search{number}", "description": f"Search part {number}.", "parameters": parameters}
        for number in range(100)
    ]


def at_once(call: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
    """Return `AT_ONCE` of a call, side by side."""

    async def together() -> None:
        await asyncio.gather(*(call() for _ in range(AT_ONCE)))

    return together


def rows(ours: Ours, raw: Raw) -> list[Row]:
    """Return what is compared."""
    return [
        Row("one reply", ours.one_reply, raw.one_reply, 0.5),
        Row(f"{PIECES} streamed pieces", ours.stream, raw.stream, 0.15, repeats=2),
        Row(f"{AT_ONCE} replies at once", at_once(ours.one_reply), at_once(raw.one_reply), 3.5, 1, throughput=True),
        Row("one reply of 100 tools offered", ours.offer_tools, raw.offer_tools, 0.3, repeats=3),
        Row("a structured reply, decoded", ours.decode, raw.typed, 0.5),
        Row("a typed reply", ours.typed, raw.typed, 0.5),
        Row("one call and its answer", ours.loop(1), raw.loop(1), 0.5, repeats=3),
        Row("three calls and the answer", ours.loop(3), raw.loop(3), 0.5, repeats=3),
    ]


# --- the measurement ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sample:
    """Milliseconds of one call, by the clock and of this process."""

    wall: float
    processor: float


async def timed(call: Callable[[], Awaitable[Any]], repeats: int) -> Sample:
    """Time one call, over some."""
    started, worked = time.perf_counter(), time.process_time()
    for _ in range(repeats):
        await call()
    scale = 1000 / repeats
    return Sample((time.perf_counter() - started) * scale, (time.process_time() - worked) * scale)


async def measured(row: Row) -> tuple[list[Sample], list[Sample]]:
    """Return the samples of ours and of the raw side, taken in turn."""
    ours, raw = [], []
    for _ in range(ROUNDS + 2):
        ours.append(await timed(row.ours, row.repeats))
        raw.append(await timed(row.raw, row.repeats))
    # The first rounds open connections and warm what is kept.
    return ours[2:], raw[2:]


async def report(bench: str, rows: list[Row]) -> int:
    """Measure, print the table and one JSON line; return 1 where a limit is broken."""
    broken = []
    figures = {}
    print(f"medians of {ROUNDS} rounds each, milliseconds")
    print(f"{'':34}{'SDK':>10}{'portico':>10}{'ratio':>9}{'limit':>10}{'processor':>12}")
    for row in rows:
        mine, theirs = await measured(row)
        pairs = list(zip(mine, theirs, strict=True))
        by_clock = statistics.median(own.wall / other.wall for own, other in pairs)
        by_processor = statistics.median(own.processor / other.processor for own, other in pairs)
        ratio = 1 / by_clock if row.throughput else by_clock
        if ratio < row.limit if row.throughput else ratio > row.limit:
            broken.append(row.name)
        sign = ">=" if row.throughput else "<="
        own, other = (statistics.median(sample.wall for sample in side) for side in (mine, theirs))
        print(f"{row.name:34}{other:10.2f}{own:10.2f}{ratio:8.2f}x{sign:>5}{row.limit:4.2f}x{by_processor:11.2f}x")
        figures[row.name] = {
            "ms": own,
            "raw_ms": other,
            "ratio": ratio,
            "limit": row.limit,
            "processor_ratio": by_processor,
        }
    print(json.dumps({"bench": bench, "broken": broken, "figures": figures}))
    return 1 if broken else 0


async def compare(address: str) -> int:
    """Compare both sides."""
    ours, raw = Ours(address), Raw(address)
    try:
        return await report("chat_calls", rows(ours, raw))
    finally:
        await ours.aclose()
        await raw.aclose()


def main() -> int:
    """Serve, or compare."""
    if sys.argv[1:] == ["serve"]:
        asyncio.run(serve())
        return 0
    with served() as address:
        return asyncio.run(compare(address))


if __name__ == "__main__":
    sys.exit(main())
