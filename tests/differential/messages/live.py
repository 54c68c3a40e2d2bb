"""Asks aimock, a server of Anthropic's protocol that others wrote: `python -m tests.differential.messages.live`.

The version of package.json is installed by npm into a temporary folder (or taken from `--modules`). The server holds
the rules of thinking: a turn that goes on after calls begins with its thoughts, signed as they were. Exit code 1 means
a difference.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from portico import ChatReply, ChatRequest, Message, Reasoning, Tool, ToolResult
from portico.errors import ServiceUnavailable
from portico.plugins import Secret
from portico_anthropic.chat import AnthropicChat
from portico_anthropic.config import AnthropicChatSettings

HERE = Path(__file__).parent
CLOCK = Tool("Clock-Now", "Tells the time.", {"type": "object", "properties": {"town": {"type": "string"}}})


@contextmanager
def server(modules: Path | None) -> Iterator[str]:
    """Install aimock, start it and give its address."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        sys.exit("This asks aimock, so node and npm must be installed.")
    with tempfile.TemporaryDirectory(prefix="portico-messages-") as folder:
        shutil.copy(HERE / "package.json", folder)
        if modules is None:
            command = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--silent"]
            subprocess.run(command, cwd=folder, check=True, timeout=600)
        else:
            (Path(folder) / "node_modules").symlink_to(modules.resolve())
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        program = Path(folder, "node_modules", "@copilotkit", "aimock", "dist", "cli.js")
        options = [f"--port={port}", f"--fixtures={HERE / 'fixtures.json'}", "--log-level=warn"]
        process = subprocess.Popen([node, str(program), *options])
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(10)


async def asked(chat: AnthropicChat, way: str, request: ChatRequest) -> ChatReply:
    """Return the reply, whole or streamed."""
    if way == "complete":
        return await chat.complete(request)
    *_, last = [delta async for delta in chat.stream(request)]
    assert last.reply is not None
    return last.reply


async def until_it_listens(chat: AnthropicChat) -> None:
    """Ask until there is an answer."""
    async with asyncio.timeout(30):
        while True:
            try:
                await chat.complete(ChatRequest([Message.of("user", "Greet me.")]))
            except ServiceUnavailable:
                await asyncio.sleep(0.1)
            else:
                return


async def compare(address: str) -> None:
    """Hold greetings, calls and failures to what the fixtures say."""
    settings = AnthropicChatSettings(
        model="claude-sonnet-4-5", base_url=address, api_key=Secret("k"), thinking="budget", max_retries=0
    )
    chat = AnthropicChat(settings)
    await until_it_listens(chat)
    for way in ("complete", "stream"):
        greeting = await asked(chat, way, ChatRequest([Message.of("user", "Greet me.")]))
        assert greeting.text == "Good morning! It is a fine day in Köln.", greeting
        assert [part.summary for part in greeting.message.content if isinstance(part, Reasoning)] == [
            "The user greets me, so I greet back."
        ]
        request = ChatRequest([Message.of("user", "What time is it?")], tools=(CLOCK,))
        calls = await asked(chat, way, request)
        assert [call.arguments for call in calls.tool_calls] == ['{"town":"Oslo"}', '{"town":"Köln"}'], calls
        results = [ToolResult(call.id, call.name, "noon") for call in calls.tool_calls]
        after = [*request.messages, calls.message, Message.of("tool", *results)]
        answer = await asked(chat, way, ChatRequest(after, tools=(CLOCK,)))
        assert answer.text == "Noon in both.", answer
        try:
            await asked(chat, way, ChatRequest([Message.of("user", "Fail.")]))
        except ServiceUnavailable as error:
            assert "Overloaded" in str(error), error
        else:
            raise AssertionError("a failure was not told")
    await chat.aclose()
    print("aimock's messages are read and written as they should be")


def main() -> None:
    """Take the options and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", type=Path, help="a folder node_modules that has the package")
    with server(parser.parse_args().modules) as address:
        asyncio.run(compare(address))


if __name__ == "__main__":
    main()
