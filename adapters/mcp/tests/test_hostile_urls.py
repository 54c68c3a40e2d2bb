"""A server behind a URL that is broken or means harm is bounded too, and gets no secret that is another's."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import threading
import unicodedata
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

import psutil
import pytest

from portico import Kernel
from portico.errors import AuthenticationFailed, LimitExceeded, PorticoError, ServiceTimeout, ServiceUnavailable
from portico.plugins import Secret
from portico_mcp.config import MCPSettings
from portico_mcp.functions import MCPFunctions

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [
    {"name": "look", "inputSchema": TEXT, "annotations": {"readOnlyHint": True}},
    {"name": "echo", "inputSchema": TEXT},
]
INFO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "1"}}


class Handler(BaseHTTPRequestHandler):
    """Answers as the protocol wants it, unless the server's ``odd`` says that it has answered."""

    server: Web
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.headers.append(dict(self.headers))
        method = message.get("method", "")
        self.server.methods.append(method)
        if self.server.odd(self, method, message):
            return
        if "id" not in message:
            self.reply(202, b"")
        elif method == "initialize":
            self.result(message, INFO)
        elif method == "tools/list":
            self.result(message, {"tools": TOOLS})
        elif method == "tools/call":
            self.result(message, {"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]})
        else:
            self.reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": NO_METHOD}).encode())

    def do_GET(self) -> None:
        self.server.headers.append(dict(self.headers))
        self.reply(405, b"")

    def do_DELETE(self) -> None:
        self.reply(405, b"")

    def result(self, message: Any, result: Any) -> None:
        self.reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())

    def reply(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing."""


NO_METHOD = {"code": -32601, "message": "no such method"}


class Web(ThreadingHTTPServer):
    """A server on loopback that remembers what it got."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.headers: list[dict[str, str]] = []
        self.methods: list[str] = []
        self.odd: Callable[[Handler, str, Any], bool] = lambda handler, method, message: False
        self.stopped = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that leave."""


@pytest.fixture
def webs() -> Iterator[Callable[[], Web]]:
    """Give what makes servers."""
    made: list[Web] = []

    def make() -> Web:
        made.append(Web())
        threading.Thread(target=made[-1].serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return made[-1]

    yield make
    for web in made:
        web.stopped.set()
        web.shutdown()
        web.server_close()


@pytest.fixture
def web(webs: Callable[[], Web]) -> Web:
    return webs()


Load: TypeAlias = Callable[..., Awaitable[Kernel]]


@pytest.fixture
async def load() -> AsyncIterator[Load]:
    """Give what makes a kernel with the functions of the server at a URL."""
    sources: list[MCPFunctions] = []

    async def loaded(url: str, **more: Any) -> Kernel:
        sources.append(MCPFunctions(MCPSettings(**{"url": url, "trusted": True, "timeout": 20, **more})))
        kernel = Kernel()
        kernel.add_plugin(await sources[-1].load("web"))
        return kernel

    yield loaded
    for source in sources:
        await source.aclose()


async def failure(awaited: Awaitable[Any]) -> PorticoError:
    """Return the error of what fails, which must be one plain sentence that names the plugin."""
    with pytest.raises(PorticoError) as caught:
        await awaited
    text = str(caught.value)
    assert text.startswith("functions.web")
    assert text.endswith((".", "!", "?", "…"))
    assert len(text) < 3_000
    assert [each for each in text if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl")] == []
    return caught.value


async def test_a_server_that_does_as_it_should_is_used(load: Load, web: Web) -> None:
    kernel = await load(web.url)
    assert await kernel.invoke("web-look", text="x") == "x"


async def test_a_url_that_no_server_listens_to_is_told_of(load: Load) -> None:
    assert isinstance(await failure(load("http://127.0.0.1:9/mcp")), ServiceUnavailable)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_key_that_is_missing_is_told_of(load: Load, web: Web, status: int) -> None:
    web.odd = lambda handler, method, message: handler.reply(status, b"{}") is None
    assert isinstance(await failure(load(web.url)), AuthenticationFailed)


@pytest.mark.parametrize(("status", "body"), [(500, b"{}"), (404, b"gone"), (200, b"<html>Hello</html>"), (200, b"{}")])
async def test_what_is_no_server_of_the_protocol_is_told_of(load: Load, web: Web, status: int, body: bytes) -> None:
    kind = "text/html" if body.startswith(b"<") else "application/json"
    web.odd = lambda handler, method, message: handler.reply(status, body, kind) is None
    await failure(load(web.url, start_timeout=5, timeout=2))


async def test_a_redirect_takes_no_secret_to_another_server(load: Load, webs: Callable[[], Web]) -> None:
    web, other = webs(), webs()
    web.odd = lambda handler, method, message: handler.reply(307, b"", Location=other.url) is None
    await failure(load(web.url, headers={"Authorization": Secret("Bearer s3cret"), "X-Key": Secret("s3cret")}))
    assert web.headers[0]["Authorization"] == "Bearer s3cret"
    assert not [each for each in other.headers if "s3cret" in str(each)]


def odd_call(answer: Callable[[Handler, Any], object], times: int = 1_000) -> Callable[[Handler, str, Any], bool]:
    """Return an oddity that answers the first calls of tools."""
    left = [times]

    def odd(handler: Handler, method: str, message: Any) -> bool:
        if method != "tools/call" or not left[0]:
            return False
        left[0] -= 1
        answer(handler, message)
        return True

    return odd


def large(message: Any) -> bytes:
    content = [{"type": "text", "text": "x" * 50_000_000}]
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"content": content}}).encode()


LARGE: dict[str, Callable[[Handler, Any], object]] = {
    "plain": lambda handler, message: handler.reply(200, large(message)),
    "event": lambda handler, message: handler.reply(200, b"data: " + large(message) + b"\n\n", "text/event-stream"),
    "packed": lambda handler, message: handler.reply(200, gzip.compress(large(message), 1), Content_Encoding="gzip"),
}


@pytest.mark.parametrize("form", list(LARGE))
async def test_an_answer_that_is_too_large_is_not_taken_in(load: Load, web: Web, form: str) -> None:
    kernel = await load(web.url)
    web.odd = odd_call(LARGE[form], times=1)
    held = large({"id": 1})  # the server's own share of this process
    before = psutil.Process().memory_info().rss
    error = await failure(kernel.invoke("web-echo", text="x"))
    del held
    assert form == "packed" or isinstance(error, LimitExceeded), repr(error)
    assert psutil.Process().memory_info().rss - before < 150_000_000
    assert await kernel.invoke("web-echo", text="after") == "after"


def say_nothing(handler: Handler, message: Any) -> None:
    handler.server.stopped.wait(30)


def chatter(handler: Handler, message: Any) -> None:
    """Send events without end, and none that answers."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.end_headers()
    message = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}
    while not handler.server.stopped.wait(0.02):
        handler.wfile.write(f"data: {json.dumps(message)}\n\n: a comment\n\n".encode())
        handler.wfile.flush()


@pytest.mark.parametrize("answer", [say_nothing, chatter])
async def test_a_call_that_gets_no_answer_ends_at_its_time(load: Load, web: Web, answer: Any) -> None:
    kernel = await load(web.url, timeout=1)
    web.odd = odd_call(answer, times=1)
    assert isinstance(await failure(kernel.invoke("web-echo", text="x")), ServiceTimeout)
    assert await kernel.invoke("web-echo", text="after") == "after"


def break_off(handler: Handler, message: Any) -> None:
    """Promise more than is sent, and close the connection."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"jsonrpc": "2.0", ')
    handler.close_connection = True


@pytest.mark.parametrize(
    "answer",
    [
        break_off,
        lambda handler, message: handler.reply(500, b"\x1b[31mbroken\x1b[0m", "text/plain"),
        lambda handler, message: handler.reply(200, b"not JSON"),
        lambda handler, message: handler.reply(200, b"[" * 100_000),
        lambda handler, message: handler.reply(200, b"<p>login</p>", "text/html"),
        lambda handler, message: handler.result({"id": "another"}, {"content": []}),
        lambda handler, message: handler.result(message, {"content": "none"}),
    ],
)
async def test_a_broken_answer_is_an_error_of_that_call_alone(load: Load, web: Web, answer: Any) -> None:
    kernel = await load(web.url, timeout=3)
    web.odd = odd_call(answer, times=1)
    await failure(kernel.invoke("web-echo", text="x"))
    assert await kernel.invoke("web-echo", text="after") == "after"
    assert web.methods.count("tools/call") == 2


async def test_a_call_without_effects_whose_answer_breaks_off_is_repeated_once(load: Load, web: Web) -> None:
    kernel = await load(web.url)
    web.odd = odd_call(break_off, times=1)
    assert await kernel.invoke("web-look", text="x") == "x"
    web.odd = odd_call(break_off)
    assert isinstance(await failure(kernel.invoke("web-look", text="x")), ServiceUnavailable)
    assert web.methods.count("tools/call") == 4


async def test_the_words_of_a_server_are_not_taken_for_those_of_the_client(load: Load, web: Web) -> None:
    kernel = await load(web.url)
    error = {"code": -32000, "message": "The plan has a byte limit"}
    web.odd = odd_call(
        lambda handler, message: handler.reply(
            200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
        )
    )
    assert str(await failure(kernel.invoke("web-look", text="x"))) == (
        "functions.web: look failed: The plan has a byte limit."
    )
    assert web.methods.count("tools/call") == 1


@pytest.mark.parametrize("header", [{"X-Key": Secret("schlüssel")}, {"X-Käy": Secret("k")}, {"X": Secret("k\nY: z")}])
def test_a_header_that_cannot_be_sent_is_a_fault_of_the_settings(header: dict[str, Secret]) -> None:
    with pytest.raises(ValueError, match="the header 'X"):
        MCPSettings(url="http://127.0.0.1:9/mcp", headers=header)


async def test_templates_of_resources_are_listed_beside_resources(load: Load, web: Web) -> None:
    answers = {
        "initialize": {**INFO, "capabilities": {"resources": {}}},
        "resources/list": {"resources": [{"uri": "a://b", "name": "b"}, {"name": "without"}]},
        "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "a://{x}", "name": "t"}]},
    }
    web.odd = lambda handler, method, message: method in answers and handler.result(message, answers[method]) is None
    assert await (await load(web.url)).invoke("web-list_resources") == [
        {"uri": "a://b", "name": "b"},
        {"uri_template": "a://{x}", "name": "t"},
    ]


@pytest.mark.parametrize(("code", "told"), [(-32601, False), (-32603, True)])
async def test_templates_of_resources_that_cannot_be_listed_are_an_error_unless_there_are_none(
    load: Load, web: Web, code: int, told: bool
) -> None:
    answers = {
        "initialize": {"result": {**INFO, "capabilities": {"resources": {}}}},
        "resources/list": {"result": {"resources": [{"uri": "a://b", "name": "b"}]}},
        "resources/templates/list": {"error": {"code": code, "message": "The disk is gone"}},
    }

    def odd(handler: Handler, method: str, message: Any) -> bool:
        if method in answers:
            handler.reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], **answers[method]}).encode())
        return method in answers

    web.odd = odd
    listing = (await load(web.url)).invoke("web-list_resources")
    if told:
        with pytest.raises(PorticoError, match="The disk is gone"):
            await listing
    else:
        assert await listing == [{"uri": "a://b", "name": "b"}]


async def test_a_broken_answer_ends_no_other_call_that_is_under_way(load: Load, web: Web) -> None:
    kernel = await load(web.url)
    both = threading.Barrier(2)

    def odd(handler: Handler, method: str, message: Any) -> bool:
        if method != "tools/call":
            return False
        both.wait(20)
        if message["params"]["name"] == "look":
            web.stopped.wait(0.3)
            return False
        break_off(handler, message)
        return True

    web.odd = odd
    looked, echoed = await asyncio.gather(
        kernel.invoke("web-look", text="x"), failure(kernel.invoke("web-echo", text="y"))
    )
    assert looked == "x"
    assert isinstance(echoed, ServiceUnavailable)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (404, None),
        (404, {"code": -32001, "message": "Session not found"}),
        (400, {"code": -32000, "message": "Bad Request: No valid session ID provided"}),
    ],
)
async def test_a_session_that_the_server_forgot_is_begun_again(
    load: Load, web: Web, status: int, error: dict[str, Any] | None
) -> None:
    forgotten = b"" if error is None else json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    sessions = iter("abc")
    valid = [""]

    def odd(handler: Handler, method: str, message: Any) -> bool:
        if method == "initialize":
            valid[0] = next(sessions)
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": INFO}).encode()
            handler.reply(200, body, mcp_session_id=valid[0])
            return True
        if method != "server/discover" and handler.headers.get("mcp-session-id") != valid[0]:
            handler.reply(status, forgotten)
            return True
        return False

    web.odd = odd
    kernel = await load(web.url)
    valid[0] = "gone"
    assert await kernel.invoke("web-look", text="x") == "x"
    valid[0] = "gone"
    await failure(kernel.invoke("web-echo", text="y"))
    assert await kernel.invoke("web-echo", text="z") == "z"


async def test_no_key_in_a_url_is_shown() -> None:
    settings = MCPSettings(url="http://ada:s3cret@127.0.0.1:9/mcp?key=s3cret#s3cret")
    assert settings.place == "http://127.0.0.1:9/mcp"
    source = MCPFunctions(settings)
    assert "s3cret" not in str(await failure(source.load("web")))
    await source.aclose()


async def test_what_the_sdk_logs_of_a_fault_is_not_printed(
    load: Load, web: Web, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    kernel = await load(web.url)
    web.odd = lambda handler, method, message: handler.reply(200, b"{not json") or True
    error = await failure(kernel.invoke("web-look", text="x"))
    assert str(error) == "functions.web: look failed: the answer is no message of the protocol."
    assert capsys.readouterr().err == ""
