"""Services that repeat all that they were sent: no key reaches a message, a log, or the variables of a traceback."""

from __future__ import annotations

import asyncio
import html
import json
import logging
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import pytest
from hypothesis import given, settings, strategies as st

from portico import ChatRequest, Kernel, Message
from portico.errors import PorticoError
from portico.plugins import HttpRequest, Secret
from portico_bing.search import BingTextSearch
from portico_brave.search import BraveTextSearch
from portico_google.search import GoogleTextSearch
from portico_mediawiki.search import MediaWikiTextSearch
from portico_openai.chat import OpenAIChat
from portico_openai.config import OpenAIChatSettings, OpenAIEmbeddingsSettings
from portico_openai.embeddings import OpenAIEmbeddings
from portico_openapi.config import OpenAPISettings
from portico_openapi.functions import OpenAPIFunctions
from portico_searxng.search import SearxngTextSearch
from portico_tavily.search import TavilyTextSearch
from portico_testkit.raw_server import RawRequest, RawServer
from portico_web.http.client import HttpxHttpClient
from portico_web.http.config import HttpxSettings

BEGINNING, END = "sEcr3T", "k3yEnd"
"""What a key begins and ends with; no way of writing it changes these."""

DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Echo", "version": "1"},
    "paths": {"/look": {"get": {"operationId": "look", "responses": {"200": {"content": {"application/json": {}}}}}}},
    "components": {
        "securitySchemes": {
            "query": {"type": "apiKey", "in": "query", "name": "appid"},
            "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "cookie": {"type": "apiKey", "in": "cookie", "name": "session"},
            "basic": {"type": "http", "scheme": "basic"},
            "bearer": {"type": "http", "scheme": "bearer"},
        }
    },
}


class Only:
    """The services that a connector asks for: the HTTP client."""

    def __init__(self, client: HttpxHttpClient) -> None:
        self._client = client

    def get(self, port: Any, name: str | None = None) -> Any:
        return self._client

    def names(self, port: Any) -> tuple[str, ...]:
        return ()


Ask = Callable[[str, Secret, HttpxHttpClient], Awaitable[object]]
"""Asks the server at an address, with a key. No variable has the key as text: they are in the tracebacks."""


def search(kind: Any, **how: str) -> Ask:
    def made(base: str, key: Secret, client: HttpxHttpClient) -> Any:
        values = {name: value.format(base=base, key=key.reveal()) for name, value in how.items()}
        return kind(kind._own_settings(None, values), Only(client))

    async def ask(base: str, key: Secret, client: HttpxHttpClient) -> object:
        return [each async for each in await made(base, key, client).search("ports")]

    return ask


def openai(kind: Any, settings: Any, call: str, **how: Callable[[Secret], Any]) -> Ask:
    def made(base: str, key: Secret) -> Any:
        given = {name: value(key) for name, value in how.items()}
        return kind(settings(model="m-1", base_url=f"{base}/v1", max_retries=0, **given))

    async def ask(base: str, key: Secret, client: HttpxHttpClient) -> object:
        service = made(base, key)
        try:
            asked = getattr(service, call)(["a"] if call == "embed" else ChatRequest([Message.of("user", "Hello")]))
            return [delta async for delta in asked] if call == "stream" else await asked
        finally:
            await service.aclose()

    return ask


def openapi(scheme: str) -> Ask:
    def made(base: str, key: Secret) -> OpenAPIFunctions:
        path = Path(FOLDER[0]) / "echo.json"
        path.write_text(json.dumps({**DOCUMENT, "servers": [{"url": base}], "security": [{scheme: []}]}), "utf-8")
        secret = Secret(f"ada:{key.reveal()}") if scheme == "basic" else key
        return OpenAPIFunctions(OpenAPISettings(document=path, credentials={scheme: secret}, retries=0))

    async def ask(base: str, key: Secret, client: HttpxHttpClient) -> object:
        source = made(base, key)
        try:
            plugin = await source.load("echo")
            return await Kernel(plugins=[plugin]).invoke_json("echo-look", {})
        finally:
            await source.aclose()

    return ask


async def bare(base: str, key: Secret, client: HttpxHttpClient) -> object:
    def address() -> str:
        return f"{base.replace('//', '//ada:' + quote(key.reveal(), safe='') + '@')}/find"

    return (await client.send(HttpRequest(address(), json={"key": [key]}))).ok


FOLDER: list[str] = []
SERVICES: dict[str, Ask] = {
    "bing": search(BingTextSearch, base_url="{base}", api_key="{key}"),
    "bing-bearer": search(BingTextSearch, base_url="{base}", api_key="{key}", api_key_scheme="Bearer"),
    "brave": search(BraveTextSearch, base_url="{base}", api_key="{key}"),
    "google": search(GoogleTextSearch, base_url="{base}", api_key="{key}", search_engine_id="0123:abc"),
    "tavily": search(TavilyTextSearch, base_url="{base}", api_key="{key}"),
    "searxng": search(SearxngTextSearch, base_url="{base}"),
    "mediawiki": search(MediaWikiTextSearch, base_url="{base}/w/api.php"),
    "bare": bare,
    "openai": openai(OpenAIChat, OpenAIChatSettings, "complete", api_key=lambda key: key),
    "openai-stream": openai(OpenAIChat, OpenAIChatSettings, "stream", api_key=lambda key: key),
    "openai-query": openai(OpenAIChat, OpenAIChatSettings, "complete", query=lambda key: {"api-key": key.reveal()}),
    "openai-header": openai(OpenAIChat, OpenAIChatSettings, "stream", secret_headers=lambda key: {"X-Gate": key}),
    "openai-embeddings": openai(OpenAIEmbeddings, OpenAIEmbeddingsSettings, "embed", api_key=lambda key: key),
    **{f"openapi-{scheme}": openapi(scheme) for scheme in DOCUMENT["components"]["securitySchemes"]},
}

WRITINGS: dict[str, Callable[[str], str]] = {
    "as it came": lambda text: text,
    "quoted": lambda text: quote(text, safe=""),
    "quoted twice": lambda text: quote(quote(text, safe=""), safe=""),
    "html": html.escape,
    "html with numbers": lambda text: "".join(f"&#{ord(each)};" if each in "<&>'\"" else each for each in text),
    "xml": lambda text: html.escape(text).replace("&#x27;", "&apos;"),
    "json": lambda text: json.dumps(text)[1:-1],
}
SHAPES: dict[str, tuple[str, Callable[[str], str]]] = {
    "error": ("application/json", lambda said: json.dumps({"error": {"message": said, "code": "wrong"}})),
    "errors": ("application/json", lambda said: json.dumps({"errors": [{"detail": said}], "results": said})),
    "results": ("application/json", lambda said: json.dumps({"results": [], "unresponsive_engines": [[said, said]]})),
    "other": ("application/json", lambda said: json.dumps({said: [said]})),
    "half": ("application/json", lambda said: json.dumps([said])[:-1]),
    "text": ("text/plain", lambda said: said),
    "page": ("text/html", lambda said: f"<html><title>{said}</title>{said}</html>"),
    "stream": ("text/event-stream", lambda said: f"data: {json.dumps({'error': {'message': said}})}\n\n"),
}


def echo(server: list[RawServer], status: int, shape: str, write: Callable[[str], str]) -> Any:
    """Return a play that repeats the address, the headers and the body, wherever an answer has room for words."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request: RawRequest = server[0].requests[-1]
        headers = [value for _, value in request.headers]
        words = write(" ".join([request.target, *dict(parse_qsl(request.target.partition("?")[2])).values(), *headers]))
        words = f"{words} {request.body.decode()}"
        line = "".join(letter for letter in words if " " <= letter <= "~")
        kind, form = SHAPES[shape]
        body = form(words).encode()
        first = f"HTTP/1.1 {status} {line}" if status else f"HTTP/1.1 {line}"
        fields = f"content-type: {kind}\r\ncontent-length: {len(body)}\r\nx-echo: {line}\r\nwww-authenticate: {line}"
        # A value of an address is quoted; else the next answer would repeat a part of a key. JSON in JSON has twice the
        # backslashes with each redirect, so there are few.
        moves = 300 <= status < 400 and request.target.count("moved") < 3
        moved = f"\r\nlocation: /moved?q={quote(line, safe='')}" if moves else ""
        writer.write(f"{first}\r\n{fields}{moved}\r\nconnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    return play


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(logging.Formatter().format(record))


async def failing(ask: Callable[[str, HttpxHttpClient], Awaitable[object]], play: Any, known: list[RawServer]) -> Any:
    """Ask a server that plays, and return the error. No variable here has the key."""
    async with RawServer(play) as server:
        known.append(server)
        client = HttpxHttpClient(HttpxSettings(retries=0))
        try:
            await ask(server.url, client)
        except PorticoError as error:
            return error
        finally:
            await client.aclose()
    return None


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    FOLDER[:] = [str(tmp_path_factory.mktemp("echo"))]


STATUSES = (200, 302, 307, 400, 401, 403, 404, 422, 429, 500, 503, 0)
"""0 is no status, but words in its place."""
KEYS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=12)


ANSWERS = st.tuples(st.sampled_from(STATUSES), st.sampled_from(sorted(SHAPES)), st.sampled_from(sorted(WRITINGS)), KEYS)


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize(
    ("status", "shape", "writing", "middle"),
    [
        (302, "text", "quoted", "/+="),
        (401, "page", "html with numbers", "<&>'\""),
        (403, "error", "xml", "<&>'\""),
        (200, "results", "json", '"\\/'),
    ],
)
def test_a_key_that_comes_back_is_seen_nowhere(name: str, status: int, shape: str, writing: str, middle: str) -> None:
    check(name, status, shape, writing, middle)


@pytest.mark.slow
@pytest.mark.parametrize("name", SERVICES)
@settings(max_examples=150)
@given(ANSWERS)
def test_no_way_of_writing_a_key_back_is_seen(name: str, answer: tuple[int, str, str, str]) -> None:
    check(name, *answer)


def check(name: str, status: int, shape: str, writing: str, middle: str) -> None:
    key = Secret(f"{BEGINNING}{middle}{END}")
    known: list[RawServer] = []
    log, root = Kept(), logging.getLogger()
    level = root.level
    root.addHandler(log)
    root.setLevel(logging.DEBUG)
    try:
        play = echo(known, status, shape, WRITINGS[writing])
        error = asyncio.run(failing(lambda base, client: SERVICES[name](base, key, client), play, known))
    finally:
        root.setLevel(level)
        root.removeHandler(log)
    lines = list(log.lines)
    if error is not None:
        shown = traceback.TracebackException.from_exception(error, capture_locals=True)
        lines += ["".join(shown.format()), str(error), repr(error), repr(vars(error))]
    for line in lines:
        assert BEGINNING not in line, line
        assert END not in line, line
    assert known[0].requests, "it was asked"
