"""Who is asked, and by which way: Anthropic, a gateway, Bedrock, Vertex; and HTTP clients of the user's own."""

from __future__ import annotations

import base64
import json
import logging
import struct
import sys
import zlib
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given, strategies as st

from portico import ChatRequest, Message
from portico.errors import (
    AuthenticationFailed,
    ConfigurationError,
    RateLimited,
    ResponseInvalid,
    ServiceError,
    ServiceUnavailable,
)
from portico.plugins import Secret
from portico_anthropic._event_stream import BedrockEvents
from portico_anthropic.chat import AnthropicChat
from portico_anthropic.config import AnthropicChatSettings
from portico_wire.errors import Peer

REQUEST = ChatRequest([Message.of("user", "Say hello.")])
EXCHANGES = Path(__file__).parent / "exchanges" / "replies"
EVENTS = [line[6:].encode() for line in (EXCHANGES / "tools.sse").read_text("utf-8").splitlines() if line[:1] == "d"]
PEER = Peer("Chat service", "anthropic", "Anthropic", "m-1", "https://example.org", "example.org")
BEDROCK = {"through": "bedrock", "aws_region": "eu-west-1", "model": "eu.anthropic.claude-sonnet-5-5-v1:0"}
ADAPTIVE = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
BINDING = "thinking-binding-controls-2026-08-01"
VERTEX = {"through": "vertex", "project": "my-project", "region": "europe-west1", "model": "claude-sonnet-5-5@20260601"}


def header(name: str, value: str) -> bytes:
    return bytes([len(name)]) + name.encode() + b"\x07" + len(value).to_bytes(2, "big") + value.encode()


def frame(headers: bytes, payload: bytes) -> bytes:
    """Write one message as Amazon's page "Event stream encoding" has it."""
    prelude = struct.pack("!II", len(headers) + len(payload) + 16, len(headers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack("!I", zlib.crc32(message))


def chunk(event: bytes) -> bytes:
    headers = header(":event-type", "chunk") + header(":content-type", "application/json")
    # A header that is no text: a boolean.
    headers += header(":message-type", "event") + b"\x05flags\x00"
    return frame(headers, json.dumps({"bytes": base64.b64encode(event).decode(), "p": "abcd"}).encode())


def failure(kind: str, words: str) -> bytes:
    headers = header(":message-type", "exception") + header(":exception-type", kind)
    return frame(headers, json.dumps({"message": words}).encode())


def amazons(*frames: bytes, loopback: Any) -> bytes:
    head = loopback.stream_head.replace(b"text/event-stream", b"application/vnd.amazon.eventstream")
    return head + loopback.chunk(b"".join(frames)) + b"0\r\n\r\n"


async def test_a_token_is_sent_in_the_place_of_a_key(loopback, make_chat):
    loopback.will(loopback.whole(loopback.message()))
    await make_chat(api_key=None, auth_token=Secret("token-1")).complete(REQUEST)
    headers = loopback.visits[0].headers
    assert headers["authorization"] == "Bearer token-1"
    assert "x-api-key" not in headers
    assert headers["anthropic-version"] == "2023-06-01"


async def test_the_beta_of_newer_models_is_named_beside_those_of_the_settings(loopback, make_chat):
    loopback.will(loopback.whole(loopback.message()))
    await make_chat(headers={"Anthropic-Beta": "one"}, preserved_thinking=True).complete(REQUEST)
    await make_chat(headers={"Anthropic-Beta": "one"}).complete(REQUEST)
    assert [visit.headers["anthropic-beta"] for visit in loopback.visits] == [f"one,{BINDING}", "one"]


@pytest.mark.parametrize("base", ["", "/", "/v1", "/v1/", "/anthropic", "/anthropic/v1"])
async def test_an_address_is_taken_with_its_v1_and_without(base, loopback, make_chat):
    loopback.will(loopback.whole(loopback.message()))
    await make_chat(base_url=f"{loopback.base_url}{base}").complete(REQUEST)
    assert loopback.visits[0].path == f"{base.removesuffix('/').removesuffix('/v1')}/v1/messages"


async def test_an_injected_client_is_used_and_stays_open():
    asked = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        content = [{"type": "text", "text": "Hello."}]
        return httpx2.Response(200, json={"type": "message", "content": content, "stop_reason": "end_turn"})

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as client:
        chat = AnthropicChat(AnthropicChatSettings(model="m", api_key=Secret("k")), http_client=client)
        assert (await chat.complete(REQUEST)).text == "Hello."
        assert [delta.text async for delta in chat.stream(REQUEST)] == ["Hello.", ""]
        await chat.aclose()
        assert not client.is_closed
    assert {str(request.url) for request in asked} == {"https://api.anthropic.com/v1/messages"}


@pytest.mark.parametrize("key", ["api_key", "auth_token"])
async def test_bedrock_is_asked_with_a_bearer_key(key, loopback, make_chat):
    loopback.will(
        loopback.whole((EXCHANGES / "tools.json").read_bytes()), amazons(*map(chunk, EVENTS), loopback=loopback)
    )
    chat = make_chat(**BEDROCK | {"api_key": None, key: Secret("bedrock-key")})
    whole = await chat.complete(REQUEST)
    *_, last = [delta async for delta in chat.stream(REQUEST)]
    assert last.reply == whole
    assert [visit.path for visit in loopback.visits] == [
        "/model/eu.anthropic.claude-sonnet-5-5-v1:0/invoke",
        "/model/eu.anthropic.claude-sonnet-5-5-v1:0/invoke-with-response-stream",
    ]
    for visit in loopback.visits:
        assert visit.headers["authorization"] == "Bearer bedrock-key"
        assert "x-api-key" not in visit.headers
        assert "anthropic-version" not in visit.headers
        assert visit.json == {
            "anthropic_version": "bedrock-2023-05-31",
            "anthropic_beta": [BINDING],
            "max_tokens": 16_384,
            "thinking": ADAPTIVE,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Say hello."}]}],
        }


@pytest.mark.skipif(find_spec("boto3") is None, reason="boto3 cannot be installed beside dbos")
async def test_bedrock_is_asked_with_a_signature(loopback, make_chat):
    loopback.will(loopback.whole(loopback.message()))
    keys = {"aws_access_key": Secret("AKIDEXAMPLE"), "aws_secret_key": Secret("secret"), "api_key": None}
    chat = make_chat(**BEDROCK, **keys)
    for question in ("one", "two"):
        await chat.complete(ChatRequest([Message.of("user", question)]))
    one, two = (visit.headers["authorization"] for visit in loopback.visits)
    assert one.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-west-1/bedrock/aws4_request" in one
    assert one.rpartition("=")[2] != two.rpartition("=")[2], "a signature is of one body"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("throttlingException", RateLimited),
        ("modelStreamErrorException", ServiceUnavailable),
        ("internalServerException", ServiceUnavailable),
        ("validationException", ServiceError),
    ],
)
async def test_what_goes_wrong_in_bedrocks_stream_is_told(kind, expected, loopback, make_chat):
    loopback.will(amazons(chunk(EVENTS[0]), failure(kind, "So it is."), loopback=loopback))
    with pytest.raises(ServiceError, match="So it is") as caught:
        _ = [delta async for delta in make_chat(**BEDROCK).stream(REQUEST)]
    assert type(caught.value) is expected


@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-3], lambda data: data[:-20] + b"?" + data[-19:], lambda _: b"{}" * 9]
)
async def test_a_damaged_stream_of_bedrocks_is_an_error(spoil, loopback, make_chat):
    loopback.will(amazons(spoil(b"".join(map(chunk, EVENTS[:4]))), loopback=loopback))
    with pytest.raises(ResponseInvalid):
        _ = [delta async for delta in make_chat(**BEDROCK).stream(REQUEST)]


@given(st.data())
def test_bedrocks_events_may_be_cut_anywhere(data: st.DataObject):
    whole = b"".join(map(chunk, EVENTS))
    cuts = sorted({0, len(whole), *data.draw(st.lists(st.integers(0, len(whole)), max_size=40))})
    reader = BedrockEvents(PEER)
    read = [event for at, cut in pairwise(cuts) for event in reader.feed(whole[at:cut])]
    assert read + reader.end() == EVENTS


async def test_vertex_is_asked_with_a_token(loopback, make_chat):
    events = (EXCHANGES / "tools.sse").read_bytes()
    loopback.will(loopback.whole((EXCHANGES / "tools.json").read_bytes()), loopback.streamed(events))
    chat = make_chat(**VERTEX, api_key=None, auth_token=Secret("ya29.token"), base_url=f"{loopback.base_url}/v1")
    whole = await chat.complete(REQUEST)
    *_, last = [delta async for delta in chat.stream(REQUEST)]
    assert last.reply == whole
    place = "/v1/projects/my-project/locations/europe-west1/publishers/anthropic/models/claude-sonnet-5-5@20260601"
    assert [visit.path for visit in loopback.visits] == [f"{place}:rawPredict", f"{place}:streamRawPredict"]
    for visit, further in zip(loopback.visits, ({}, {"stream": True}), strict=True):
        assert visit.headers["authorization"] == "Bearer ya29.token"
        assert visit.headers["anthropic-beta"] == BINDING
        assert visit.json == {
            "anthropic_version": "vertex-2023-10-16",
            "max_tokens": 16_384,
            "thinking": ADAPTIVE,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Say hello."}]}],
            **further,
        }


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({}, "https://api.anthropic.com"),
        ({"through": "bedrock", "aws_region": "us-east-1"}, "https://bedrock-runtime.us-east-1.amazonaws.com"),
        ({"through": "vertex", "project": "p"}, "https://aiplatform.googleapis.com/v1"),
        ({"through": "vertex", "project": "p", "region": "eu"}, "https://aiplatform.eu.rep.googleapis.com/v1"),
        ({"through": "vertex", "project": "p", "region": "us-east5"}, "https://us-east5-aiplatform.googleapis.com/v1"),
    ],
)
def test_each_platform_has_its_address(settings: dict[str, str], address: str):
    assert AnthropicChatSettings(model="m", **settings).base_url == address


async def test_credentials_that_googles_library_does_not_find_are_one_clear_error(loopback, make_chat, monkeypatch):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/no/such/file.json")
    chat = make_chat(**VERTEX, api_key=None)
    with pytest.raises(AuthenticationFailed, match=r"was not asked: .*Look at the credentials of Google and project\."):
        await chat.complete(REQUEST)
    assert loopback.visits == []


@pytest.mark.parametrize(
    ("settings", "library", "advice"),
    [(BEDROCK, "boto3", "pip install boto3"), (VERTEX, "google.auth", r"pip install 'portico-anthropic\[vertex\]'")],
)
def test_a_library_that_is_missing_is_named(settings, library, advice, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ConfigurationError, match=advice):
        AnthropicChat(AnthropicChatSettings(**settings))


async def test_a_token_that_the_service_quotes_is_blotted_out(loopback, make_chat, caplog):
    caplog.set_level(logging.DEBUG)
    secret = "token-very-secret.0123"
    body = {"type": "error", "error": {"type": "authentication_error", "message": f"Bad token {secret}"}}
    loopback.will(loopback.whole(body, status="401 Unauthorized"))
    chat = make_chat(api_key=None, auth_token=Secret(secret))
    with pytest.raises(AuthenticationFailed, match=r"Bad token \*{8}. Look at auth_token") as caught:
        await chat.complete(REQUEST)
    assert secret not in str(caught.value.__cause__) + repr(caught.value.__cause__) + caplog.text + repr(chat._settings)
