"""The process of LlamaCppChat's model: loading, stopping, failing, ending with whoever started it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from portico import ChatDelta, ChatRequest, Message, Tool
from portico.errors import ConfigurationError, ServiceTimeout, ServiceUnavailable
from portico_llamacpp.chat import LlamaCppChat
from portico_llamacpp.config import LlamaCppSettings
from portico_llamacpp.server import LlamaCppServer
from portico_testkit.event_loop import leaves_the_event_loop_free

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc"),
]

TEMPLATE = Path(__file__).with_name("tool_template.jinja")
CLOCK = Tool("Clock-Now", "Tell the time.", {"type": "object", "properties": {"town": {"type": "string"}}})


def settings(**options: Any) -> LlamaCppSettings:
    return LlamaCppSettings(**{"context_size": 1024, "temperature": 0, "seed": 1, "threads": 1, **options})


def ask(question: str, **options: Any) -> ChatRequest:
    return ChatRequest([Message.of("user", question)], **options)


GREETING = ask("Say good morning.", max_tokens=6)
LONG = ask("Tell me a very long story.", max_tokens=1900)


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
    async def ask_four_at_once(_: int) -> None:
        await chat.aclose()  # so that each measurement loads the model
        calls = [asyncio.create_task(chat.complete(GREETING)) for _ in range(4)]
        processes = set()
        while not all(call.done() for call in calls):
            if chat._process is not None:
                processes.add(chat._process)
            await asyncio.sleep(0.01)
        assert len(processes) == 1
        assert {(await call).text for call in calls} == {(await calls[0]).text}

    await leaves_the_event_loop_free(ask_four_at_once)


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
        await chat._load()
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
        # Up to three questions, since a busy host may stop this process while the one that reads goes on.
        for word in ("word", "door", "roof"):
            question = ask(f"{word} " * 700, max_tokens=1)
            reading = asyncio.create_task(chat.complete(question))
            await asyncio.sleep(0.3)
            reading.cancel()
            await asyncio.wait([reading])
            # What had been read is not read again.
            if (await chat.complete(question)).usage.cached_tokens < 600:
                break
        else:
            pytest.fail("what nobody waited for was read to its end")
    finally:
        await chat.aclose()


async def test_a_reply_that_takes_too_long_is_a_timeout_and_frees_its_slot() -> None:
    chat = LlamaCppChat(settings(timeout=0.5, context_size=2048))
    process, _ = await chat._load()
    try:
        with pytest.raises(ServiceTimeout, match=r"0\.5 seconds"):
            await chat.complete(LONG)
        async with asyncio.timeout(30):
            while not process._free:
                await asyncio.sleep(0.01)
    finally:
        await chat.aclose()


async def test_a_model_that_takes_too_long_to_load_is_a_timeout() -> None:
    chat = LlamaCppChat(settings(load_timeout=0.001))
    with pytest.raises(ServiceTimeout, match="load_timeout"):
        await chat.complete(GREETING)
    await chat.aclose()


async def test_a_process_that_dies_is_an_error_and_the_next_call_starts_another(chat: LlamaCppChat) -> None:
    stream = chat.stream(LONG)
    await anext(stream)
    os.kill(process_of(chat), signal.SIGKILL)
    with pytest.raises(ServiceUnavailable, match="SIGKILL"):
        _ = [delta async for delta in stream]
    assert (await chat.complete(GREETING)).text


PROGRAM = """
import asyncio, sys
from portico import ChatDelta, ChatRequest, Message
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


@pytest.mark.parametrize("stop", ["SIGINT", "SIGTERM", "SIGKILL"])
async def test_the_model_ends_with_the_program_however_that_ends(stop: str) -> None:
    with program("stay") as running:
        assert running.stdout is not None
        process = int(await asyncio.to_thread(running.stdout.readline))
        assert is_running(process)
        running.send_signal(signal.Signals[stop])
        _, errors = await asyncio.to_thread(running.communicate, timeout=60)
    assert running.returncode != 0
    assert ("KeyboardInterrupt" in errors) == (stop == "SIGINT")
    assert await has_ended(process)


FORK = """
import asyncio, os, sys
from portico import ChatRequest, Message
from portico_llamacpp.chat import LlamaCppChat
from portico_llamacpp.config import LlamaCppSettings

chat = LlamaCppChat(LlamaCppSettings(context_size=512, threads=1))
request = ChatRequest([Message.of("user", "Hello.")], max_tokens=4)
asyncio.run(chat.complete(request))
process = chat._process
child = os.fork()
if child == 0:
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
asyncio.run(chat.complete(request))
assert chat._process is process
"""


def test_a_fork_of_the_program_that_ends_does_not_take_the_model_along() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


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
    with pytest.raises(ConfigurationError, match="not a GGUF file"), LlamaCppServer(settings(model=str(path))):
        pass
    with pytest.raises(ServiceTimeout, match="load_timeout"), LlamaCppServer(settings(load_timeout=0.001)):
        pass
