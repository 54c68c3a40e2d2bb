"""Every reader of what comes from outside: whatever is damaged is read, or refused as its reader says, and never else.

Each line of `READERS` is one: samples that it reads, how, and the errors with which it refuses. `nox -s fuzz` tries
thousands of damaged samples of each.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.support.damage import damaged_bytes, damaged_json
from tests.support.loopback import KEY, Loopback

import portico_host
from portico import ChatReply, ChatRequest, Message, Thread, Tool, ToolResult, plan_from_json
from portico.errors import ConfigurationError, PlanFormatError, ServiceError, StoreError, ThreadFormatError
from portico.plans import XmlPlan, plan_to_text
from portico.plugins import RunState, Secret
from portico_anthropic.chat import AnthropicChat
from portico_anthropic.config import AnthropicChatSettings
from portico_basics.prompts._files import PromptInvalid, read_document
from portico_documents.reading import Unreadable, read_sections
from portico_gemini.chat import GeminiChat
from portico_gemini.config import GeminiChatSettings
from portico_openai.chat import OpenAIChat
from portico_openai.config import OpenAIChatSettings
from portico_openapi.config import OpenAPISettings
from portico_openapi.functions import OpenAPIFunctions
from portico_serve._runs.traces import spans_of_file

ROOT = Path(__file__).parents[2]
FORMATS = Path(__file__).parent / "formats"
FUZZ = pytest.mark.fuzz
SETTINGS = settings(suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class Reader:
    """How one kind of text is read, and how refused. ``samples`` are bytes, or JSON values."""

    name: str
    samples: list[Any]
    read: Callable[[Any], Any]
    refusals: tuple[type[Exception], ...]
    json: bool = False

    def damaged(self) -> st.SearchStrategy[Any]:
        return damaged_json(self.samples) if self.json else damaged_bytes(self.samples)


@contextmanager
def as_file(data: bytes, name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(data)
        yield Path(folder) / name


def of_format(name: str) -> list[Any]:
    return [json.loads((FORMATS / name).read_text("utf-8"))]


def read_plan(value: Any) -> Any:
    return plan_to_text(plan_from_json(value))


def read_configuration(data: bytes) -> Any:
    with as_file(data, "portico.toml") as file:
        return portico_host.load(file).settings()


def read_operations(data: bytes) -> Any:
    async def load(file: Path) -> Any:
        source = OpenAPIFunctions(OpenAPISettings(document=file))
        try:
            return [function.spec for function in await source.load("service")]
        finally:
            await source.aclose()

    with as_file(data, "service.json") as file:
        return asyncio.run(load(file))


def read_trace(data: bytes) -> Any:
    with as_file(data, "trace.jsonl") as file:
        return spans_of_file(file, "run-1")


def read_trace_of(value: Any) -> Any:
    return read_trace(json.dumps(value).encode())


def sections_of(name: str) -> Callable[[bytes], Any]:
    return lambda data: read_sections(PurePath(name), data)


def prompt_as(kind: str) -> Callable[[bytes], Any]:
    return lambda data: read_document(data.decode("utf-8", "replace"), kind)


SPAN = {"traceId": "0" * 31 + "1", "spanId": "0" * 15 + "1", "name": "x", "startTimeUnixNano": "1"}
SPAN["attributes"] = [{"key": "portico.run", "value": {"stringValue": "run-1"}}]  # type: ignore[assignment]
TRACE = json.dumps({"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [SPAN]}]}]})
PROMPT = b"name: Greet\ndescription: Say hello.\ntemplate: |\n  Hello {{$name}}!\ninput_variables:\n  - name: name\n"
PET = {"$ref": "#/components/schemas/Pet"}
PETS = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "http://127.0.0.1/v1"}],
    "paths": {
        "/pets/{id}": {
            "get": {
                "operationId": "getPet",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}
                },
            }
        }
    },
    "components": {"schemas": {"Pet": {"type": "object", "properties": {"name": {"type": "string"}}}}},
}
TOML = (ROOT / "adapters/cli/src/portico_cli/starter.toml").read_bytes()
PAGE = b"<html><head><title>T</title></head><body><h1>A</h1><p>x <b>y</b></p><table><tr><td>1</table></body>"
MARKDOWN = b"---\ntitle: T\n---\n# A\n\nText [1](x).\n\n```py\ncode\n```\n\n| a |\n|---|\n| 1 |\n\n## B\n\n- x\n"
CODE = b'"""Doc."""\n\ndef f(x):\n    """Do."""\n    return x\n'
STRUCTURED = b"Title\n=====\n\nText.\n\n.. code::\n\n   x\n\nPart\n----\n\n* a\n* b\n"

READERS = [
    Reader("a plan in JSON", of_format("plan.json"), read_plan, (PlanFormatError,), json=True),
    Reader(
        "a plan in XML",
        [(FORMATS / "plan.xml").read_bytes()],
        lambda data: XmlPlan.read(data.decode("utf-8", "replace"), recover=True),
        (PlanFormatError,),
    ),
    Reader("a thread", of_format("thread.json"), Thread.from_json, (ThreadFormatError,), json=True),
    Reader("a journal", [*of_format("journal.json")[0].values()], RunState.of, (StoreError,), json=True),
    Reader("a configuration", [TOML, b'[planner]\nuse = "retrieval"\n'], read_configuration, (ConfigurationError,)),
    Reader("an OpenAPI document as text", [json.dumps(PETS).encode()], read_operations, (ConfigurationError,)),
    Reader(
        "an OpenAPI document",
        [PETS],
        lambda value: read_operations(json.dumps(value).encode("utf-8", "surrogatepass")),
        (ConfigurationError,),
        json=True,
    ),
    Reader("a prompt in YAML", [PROMPT], prompt_as("yaml"), (PromptInvalid,)),
    Reader("a prompt in TOML", [b'name = "Greet"\ntemplate = "Hello"\n'], prompt_as("toml"), (PromptInvalid,)),
    Reader("a file of Markdown", [MARKDOWN], sections_of("a.md"), (Unreadable,)),
    Reader("a file of reStructuredText", [STRUCTURED], sections_of("a.rst"), (Unreadable,)),
    Reader("a file of HTML", [PAGE], sections_of("a.html"), (Unreadable,)),
    Reader("a file of Python", [CODE], sections_of("a.py"), (Unreadable,)),
    Reader("a file of traces as text", [TRACE.encode() + b"\n"], read_trace, ()),
    Reader("a file of traces", [json.loads(TRACE)], read_trace_of, (), json=True),
]


@FUZZ
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
@SETTINGS
@given(data=st.data())
def test_what_is_damaged_is_read_or_refused(reader: Reader, data: st.DataObject) -> None:
    given = data.draw(reader.damaged())
    try:
        reader.read(given)
    except reader.refusals as error:
        assert str(error).strip()


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_what_is_whole_is_read(reader: Reader) -> None:
    for sample in reader.samples:
        reader.read(sample)


CHATS: dict[str, tuple[type[Any], type[Any], str, str]] = {
    "openai": (OpenAIChat, OpenAIChatSettings, "/v1", "openai/tests/exchanges/replies"),
    "openai-responses": (OpenAIChat, OpenAIChatSettings, "/v1", "openai/tests/exchanges/responses/replies"),
    "anthropic": (AnthropicChat, AnthropicChatSettings, "", "anthropic/tests/exchanges/replies"),
    "gemini": (GeminiChat, GeminiChatSettings, "", "gemini/tests/exchanges/replies"),
}
REQUEST = ChatRequest([Message.of("user", "Hello.")], tools=[Tool("weather", "Tell it.", {"type": "object"})])


@contextmanager
def chat_over(name: str) -> Iterator[Callable[[bytes, bool], None]]:
    """Give what lets a service get a reply, whole or as a stream, and send it back; what it raises is raised."""
    kind, made_of, base, _ = CHATS[name]
    runner, server = asyncio.Runner(), Loopback()
    runner.run(server.start())
    further = {"api": name.rpartition("-")[2] if "-" in name else "chat"} if kind is OpenAIChat else {}
    address = f"http://127.0.0.1:{server.port}{base}"
    chat = kind(made_of(model="m-1", base_url=address, api_key=Secret(KEY), max_retries=0, timeout=20, **further))

    async def say(request: ChatRequest, stream: bool) -> ChatReply:
        if not stream:
            return cast("ChatReply", await chat.complete(request))
        async with aclosing(chat.stream(request)) as pieces:
            [reply] = [piece.reply async for piece in pieces if piece.reply]
        return cast("ChatReply", reply)

    async def ask(reply: bytes, stream: bool) -> None:
        server.will(server.streamed(reply) if stream else server.whole(reply))
        said = await say(REQUEST, stream)
        # What came goes back with the next question.
        results = [Message.of("tool", ToolResult(call.id, call.name, "Rain.")) for call in said.tool_calls]
        further = (said.message, *results, Message.of("user", "Why?"))
        await say(replace(REQUEST, messages=(*REQUEST.messages, *further)), stream)

    async def close() -> None:
        await chat.aclose()
        await server.stop()

    try:
        yield lambda reply, stream: runner.run(ask(reply, stream))
    finally:
        runner.run(close())
        runner.close()


def samples_of(name: str, suffix: str) -> list[bytes]:
    """Return replies of a service, as its exchange files have them."""
    found = sorted((ROOT / "adapters" / CHATS[name][3]).glob(f"*{suffix}"))
    assert found, name
    return [each.read_bytes() for each in found]


@FUZZ
@pytest.mark.parametrize("way", ["whole", "in values", "streamed"])
@pytest.mark.parametrize("name", CHATS)
def test_a_damaged_reply_is_a_reply_or_an_error_of_its_service(name: str, way: str) -> None:
    samples = samples_of(name, ".sse" if way == "streamed" else ".json")
    replies: st.SearchStrategy[bytes] = damaged_bytes(samples)
    if way == "in values":
        written = damaged_json([json.loads(each) for each in samples])
        replies = written.map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass"))

    with chat_over(name) as ask:

        @SETTINGS
        @given(reply=replies)
        def try_it(reply: bytes) -> None:
            try:
                ask(reply, way == "streamed")
            except ServiceError as error:
                assert "m-1 at 127.0.0.1" in str(error)

        try_it()
