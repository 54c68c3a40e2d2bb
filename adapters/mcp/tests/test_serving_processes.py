"""The command ``portico mcp serve`` as a process: its streams, its port, and its end."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner
from mcp import Client, StdioServerParameters
from mcp.client import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestParams, ElicitResult, ResourceLink
from tests.support.packages import write_metadata
from tests.support.processes import PATIENCE, started

from portico_mcp.commands import command

NOISY = '''
import asyncio, os, subprocess, sys
from portico import FunctionPlugin, function
from portico.plugins import Registration

def portico_function_plugins():
    return [Registration(name="noisy", factory="portico_noisy:Noisy", summary="Prints.")]

class Noisy:
    def __init__(self, settings=None, services=None):
        pass

    async def load(self, name):
        print("loading")
        return FunctionPlugin.of(self, name)

    @function
    def chatter(self) -> str:
        """Print in each way."""
        print("printed")
        sys.__stdout__.write("written\\n")
        sys.__stdout__.flush()
        os.write(1, b"raw\\n")
        subprocess.run([sys.executable, "-c", "print(7)"], check=True)
        return "done"

    @function
    def listen(self) -> str:
        """Read what is not for functions."""
        return sys.stdin.read() + "done"

    @function
    def flood(self) -> str:
        """Say more than a pipe holds."""
        open("begun", "w").close()
        return "x" * 1_000_000

    @function
    async def linger(self) -> str:
        """Take long."""
        open("begun", "w").close()
        try:
            await asyncio.sleep(600)
        finally:
            print("ended")
        return "done"

    @function(effects=True)
    def send(self, text: str) -> str:
        """Send a text."""
        with open("sent.txt", "a") as file:
            file.write(text)
        return text
'''
SENDING = {
    "version": 1,
    "goal": "Send",
    "steps": [{"id": "s1", "function": "noise-send", "arguments": {"text": {"value": "hi"}}}],
    "result": {"from": "s1"},
}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
}
COMMAND = [sys.executable, "-m", "portico_cli", "mcp", "serve", "--docs", "docs"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder with documents, a configuration, and an installed package whose functions print."""
    made = tmp_path / "work"
    (made / "docs").mkdir(parents=True)
    (made / "docs" / "otters.md").write_text("# Otters\n\nOtters swim in cold rivers.\n")
    (made / "portico.toml").write_text('[functions.noise]\nuse = "noisy"\n')
    write_metadata(tmp_path / "site", "portico-noisy", {"portico": {"noisy": "portico_noisy"}})
    (tmp_path / "site" / "portico_noisy.py").write_text(NOISY)
    for name, value in {"PYTHONPATH": str(tmp_path / "site"), "PYTHONDONTWRITEBYTECODE": "1"}.items():
        monkeypatch.setenv(name, value)
    return made


async def approve(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    return ElicitResult(action="accept", content={"run": True})


async def use(client: Client, *functions: str) -> None:
    """Call a search, some functions, and a plan with effects."""
    async with client:
        found = await client.call_tool("docs-GetTextSearchResults", {"query": "otters"})
        [link] = [each for each in found.content if isinstance(each, ResourceLink)]
        assert (link.name, link.uri.startswith("file://")) == ("otters.md › Otters", True)
        for name in functions:
            called = await client.call_tool(name)
            assert (called.is_error, called.content[0].text) == (False, "done")  # type: ignore[union-attr]
        ran = await client.call_tool("plan_run", {"plan": SENDING})
        assert ran.structured_content["value"] == "hi"
        run = await client.read_resource(f"portico://runs/{ran.structured_content['run']}")
        assert json.loads(run.contents[0].text)["state"] == "done"  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_it_serves_over_its_streams_whatever_functions_print(folder: Path, mode: Any) -> None:
    parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=dict(os.environ), cwd=folder)
    client = Client(parameters, mode=mode, elicitation_callback=approve)
    await use(client, "noise-chatter", "noise-chatter", "noise-listen")
    assert (folder / "sent.txt").read_text() == "hi"


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str, list[str]]]:
    """Start the server over HTTP, and give its process, its URL and what else it wrote."""
    with started([*COMMAND, "--http", "0", *options], cwd=folder) as process:
        assert process.stderr is not None
        lines: list[str] = []
        while "Serving at" not in (line := process.stderr.readline()):
            assert line, lines
            lines.append(line)
        yield process, line.split()[-1], lines


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_it_serves_over_http_to_those_with_the_token(
    folder: Path, mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PORTICO_MCP_TOKEN", "a-token")
    with serving(folder) as (process, url, _):
        async with httpx2.AsyncClient() as stranger:
            for headers in ({}, {"Authorization": "Bearer b-token"}, {"Authorization": "a-token"}):
                answer = await stranger.post(url, json={}, headers=headers)
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
            # A page of the web whose name leads to this machine.
            headers = {"Authorization": "Bearer a-token", "Host": "evil.example"}
            assert (await stranger.post(url, json={}, headers=headers)).status_code == 421
            headers = {"Authorization": "Bearer a-token", "Origin": "https://evil.example"}
            assert (await stranger.post(url, json={}, headers=headers)).status_code == 403
        async with httpx2.AsyncClient(headers={"Authorization": "Bearer a-token"}, timeout=60) as http:
            transport = streamable_http_client(url, http_client=http)
            await use(Client(transport, mode=mode, elicitation_callback=approve))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "Traceback" not in err
    assert "a-token" not in out + err


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_calls_under_way_over_http_end_with_the_server(
    folder: Path, mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PORTICO_MCP_TOKEN", "a-token")
    with serving(folder) as (process, url, _):
        async with httpx2.AsyncClient(headers={"Authorization": "Bearer a-token"}, timeout=60) as http:
            client = Client(streamable_http_client(url, http_client=http), mode=mode)
            async with client:
                calling = asyncio.create_task(client.call_tool("noise-linger"))
                while not (folder / "begun").exists():
                    await asyncio.sleep(0.02)
                process.send_signal(signal.SIGINT)
                _, err = await asyncio.to_thread(process.communicate, timeout=PATIENCE)
                calling.cancel()
    assert (process.returncode, err) == (0, "ended\n")


def test_a_token_is_made_and_shown_once(folder: Path) -> None:
    with serving(folder) as (process, url, _):
        assert process.stderr is not None
        token = re.fullmatch(r"Authorization: Bearer ([\w-]{40,})\n", process.stderr.readline())
        assert token
        headers = {"Authorization": f"Bearer {token[1]}", "Accept": "application/json, text/event-stream"}
        assert httpx2.post(url, json={}, headers=headers).status_code == 400
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, "")
    assert token[1] not in err


@pytest.mark.parametrize("address", ["0.0.0.0:8000", "example.org:80", "8000x", "70000", "9" * 5_000])
def test_another_address_than_one_on_loopback_is_refused(address: str) -> None:
    done = CliRunner().invoke(command, ["serve", "--http", address])
    assert done.exit_code == 2
    assert address.rpartition(":")[0] in done.output


def test_a_port_that_is_taken_is_an_error_that_names_it(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run([*COMMAND, "--http", str(port)], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"127.0.0.1:{port} cannot be served" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="a shell closes the stream")
def test_an_input_that_is_closed_at_the_start_is_an_error_with_a_sentence(folder: Path) -> None:
    words = ["sh", "-c", 'exec "$@" <&-', "sh", *COMMAND]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 2
    assert "closed" in done.stderr


def children(process: subprocess.Popen[str]) -> list[int]:
    """Return the processes in the group of a process that still are there."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == process.pid and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def call_of(tool: str) -> str:
    params = {"name": tool, "arguments": {}, "_meta": META}
    return json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}) + "\n"


def stop_by_its_input(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.stdin = None


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the processes are read from /proc")
@pytest.mark.parametrize(
    "stop",
    [
        stop_by_its_input,
        lambda process: process.send_signal(signal.SIGINT),
        lambda process: process.send_signal(signal.SIGTERM),
    ],
)
def test_it_ends_without_a_word_and_without_leaving_a_process(
    folder: Path, stop: Callable[[subprocess.Popen[str]], None]
) -> None:
    lists = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
    said = json.dumps(lists) + "\n" + call_of("noise-linger")
    with started(COMMAND, cwd=folder, said=said, until=(folder / "begun").exists) as process:
        assert process.stdout is not None
        answer = json.loads(process.stdout.readline())
        assert any(tool["name"] == "plan_run" for tool in answer["result"]["tools"])
        stop(process)
        out, err = process.communicate(timeout=PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while children(process) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert children(process) == []
    assert process.returncode == 0
    # A client that only closed its end may read that there is no answer.
    assert all("Connection closed" in line for line in out.splitlines())
    assert err.split() == ["loading", "ended"]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_client_that_does_not_read_cannot_keep_it(folder: Path, sent: signal.Signals) -> None:
    said = call_of("noise-flood")
    with started(COMMAND, cwd=folder, said=said, until=(folder / "begun").exists) as process:
        process.send_signal(sent)
        assert process.wait(PATIENCE) == 0
