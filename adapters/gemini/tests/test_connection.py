"""Where requests go and with which credentials, as Google's SDK says it; HTTP clients of the user's own."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.genai import _api_client

from portico import ChatRequest, Message
from portico.errors import AuthenticationFailed
from portico.plugins import Secret
from portico_gemini.chat import GeminiChat
from portico_gemini.config import GeminiChatSettings, GeminiEmbeddingsSettings
from portico_gemini.embeddings import GeminiEmbeddings

REQUEST = ChatRequest([Message.of("user", "Say hello.")])
HELLO = {"candidates": [{"content": {"parts": [{"text": "Hello."}]}, "finishReason": "STOP"}]}
STREAMED = b"data: " + json.dumps(HELLO).encode() + b"\n\n"
VERTEX: dict[str, Any] = {"through": "vertex", "project": "p-1", "location": "europe-west1"}


def test_the_sdk_still_has_what_is_used_of_it():
    """They are private to the SDK: another version may have others, and then its pin and the connection change."""
    client = _api_client.BaseApiClient
    assert list(inspect.signature(client._build_request).parameters)[:4] == [
        "self",
        "http_method",
        "path",
        "request_dict",
    ]
    assert {"url", "headers"} <= _api_client.HttpRequest.__dataclass_fields__.keys()
    assert inspect.iscoroutinefunction(client._async_access_token)
    assert inspect.iscoroutinefunction(client.aclose)


async def test_an_injected_client_is_used_and_stays_open():
    asked: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        if "batchEmbed" in request.url.path:
            return httpx2.Response(200, json={"embeddings": [{"values": [0.0, 2.0]}]})
        return httpx2.Response(200, json=HELLO)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as client:
        settings = {"model": "m", "api_key": Secret("k")}
        chat = GeminiChat(GeminiChatSettings(**settings), http_client=client)
        embeddings = GeminiEmbeddings(GeminiEmbeddingsSettings(**settings), http_client=client)
        assert (await chat.complete(REQUEST)).text == "Hello."
        assert [delta.text async for delta in chat.stream(REQUEST)] == ["Hello.", ""]
        assert (await embeddings.embed(["x"])).buffer.tolist() == [0.0, 1.0]
        await chat.aclose()
        await embeddings.aclose()
        assert not client.is_closed
    assert [str(request.url) for request in asked] == [
        "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent",
        "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
        "https://generativelanguage.googleapis.com/v1beta/models/m:batchEmbedContents",
    ]
    assert {request.headers["x-goog-api-key"] for request in asked} == {"k"}


@pytest.mark.parametrize(
    ("model", "settings", "path"),
    [
        ("gemini-3.8-flash", {}, "/v1beta/models/gemini-3.8-flash:"),
        ("models/gemini-3.8-flash", {}, "/v1beta/models/gemini-3.8-flash:"),
        ("tunedModels/mine", {}, "/v1beta/tunedModels/mine:"),
        (
            "gemini-3.8-flash",
            VERTEX,
            "/v1beta/projects/p-1/locations/europe-west1/publishers/google/models/gemini-3.8-flash:",
        ),
        (
            "meta/llama-4",
            {**VERTEX, "location": "global"},
            "/v1beta/projects/p-1/locations/global/publishers/meta/models/llama-4:",
        ),
        (
            "projects/7/locations/us/endpoints/9",
            {**VERTEX, "location": "us"},
            "/v1beta/projects/7/locations/us/endpoints/9:",
        ),
        ("gemini-3.8-flash", {"through": "vertex"}, "/v1beta/publishers/google/models/gemini-3.8-flash:"),
    ],
)
async def test_a_model_is_asked_where_it_is(model, settings, path, loopback, make_chat):
    loopback.will(loopback.whole(HELLO), loopback.streamed(STREAMED))
    chat = make_chat(model=model, **settings)
    await chat.complete(REQUEST)
    assert [delta.text async for delta in chat.stream(REQUEST)] == ["Hello.", ""]
    assert [visit.path for visit in loopback.visits] == [
        f"{path}generateContent",
        f"{path}streamGenerateContent?alt=sse",
    ]
    assert {visit.headers["x-goog-api-key"] for visit in loopback.visits} == {loopback.key}


def test_vertex_has_an_address_for_each_location():
    hosts = {
        "global": "aiplatform.googleapis.com",
        "eu": "aiplatform.eu.rep.googleapis.com",
        "europe-west1": "europe-west1-aiplatform.googleapis.com",
    }
    for location, host in hosts.items():
        settings = GeminiChatSettings(model="m", **{**VERTEX, "location": location})
        assert (settings.host, settings.address) == (host, f"https://{host}/v1beta1")


@pytest.fixture
def credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loopback: Any) -> Path:
    """Write the key of a service account whose tokens the loopback server gives."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    account = {
        "type": "service_account",
        "client_email": "portico@p-1.iam.gserviceaccount.com",
        "private_key": pem.decode(),
        "private_key_id": "k1",
        "project_id": "p-1",
        "token_uri": f"http://127.0.0.1:{loopback.port}/token",
    }
    file = tmp_path / "account.json"
    file.write_text(json.dumps(account), "utf-8")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    return file


@pytest.mark.usefixtures("credentials")
async def test_vertex_is_asked_with_the_credentials_of_google_cloud(loopback, make_chat, make_embeddings):
    async def answer(visit):
        if visit.path == "/token":
            body: Any = {"access_token": "ya29.token", "expires_in": 3599, "token_type": "Bearer"}
        else:
            body = {"embeddings": [{"values": [3.0, 4.0]}]} if "batchEmbed" in visit.path else HELLO
        await visit.send(loopback.whole(body))

    loopback.will(answer)
    chat = make_chat(api_key=None, **VERTEX)
    for _ in range(2):
        assert (await chat.complete(REQUEST)).text == "Hello."
    await make_embeddings(api_key=None, dimensions=2, **VERTEX).embed(["x"])
    tokens = [visit.path for visit in loopback.visits].count("/token")
    assert tokens == 2, "each service asks for a token once"
    asked = [visit for visit in loopback.visits if visit.path != "/token"]
    assert {visit.headers["authorization"] for visit in asked} == {"Bearer ya29.token"}
    assert all("x-goog-api-key" not in visit.headers for visit in asked)
    assert asked[2].json == {
        "requests": [
            {
                "content": {"parts": [{"text": "x"}]},
                "embedContentConfig": {"taskType": "RETRIEVAL_DOCUMENT", "outputDimensionality": 2},
            }
        ]
    }


async def test_credentials_that_are_missing_or_refused_are_told(loopback, make_chat, credentials, monkeypatch):
    refused = {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}
    loopback.will(loopback.whole(refused, status="400 Bad Request"))
    with pytest.raises(
        AuthenticationFailed, match=r"for want of Google Cloud's credentials: invalid_grant: Invalid JWT Signature"
    ):
        await make_chat(api_key=None, **VERTEX).complete(REQUEST)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(credentials.with_name("nothing.json")))
    with pytest.raises(AuthenticationFailed, match=r"nothing\.json was not found.*gcloud auth application-default"):
        await make_chat(api_key=None, **VERTEX).complete(REQUEST)


async def test_an_authorization_of_ones_own_is_sent_as_it_is(loopback, make_chat):
    loopback.will(loopback.whole(HELLO))
    own = {"secret_headers": {"Authorization": Secret("Bearer mine")}}
    await make_chat(api_key=None, **VERTEX, **own).complete(REQUEST)
    assert loopback.visits[0].headers["authorization"] == "Bearer mine"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"through": "vertex"}, "project is missing"),
        ({"project": "p-1"}, "project is for Vertex"),
        ({"through": "elsewhere"}, "through"),
        ({**VERTEX, "location": "Europe West"}, "location takes a location such as europe-west1"),
        ({"base_url": "generativelanguage.googleapis.com"}, "base_url is of the form https://"),
        ({"body": {"contents": []}}, "body may not name contents"),
        ({"extras": ("tools",)}, "extras may not name tools"),
        ({"thinking_budget": -2}, "thinking_budget"),
        ({"thinking_budget": 0, "thinking_level": "low"}, "give one of them"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        GeminiChatSettings(model="m", **settings)


def test_listing_what_it_registers_imports_no_vendor():
    code = (
        "import sys, portico_gemini._plugin as p; p.portico_chat_services(); p.portico_embedding_generators(); "
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"google.genai", "httpx2", "aiohttp", "numpy", "attr", "msgspec"} & set(loaded)
