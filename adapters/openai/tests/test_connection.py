"""HTTP clients of the user's own, and the ways in which keys are sent to services of OpenAI's protocol."""

from __future__ import annotations

import logging

import httpx2
import pytest

from portico import ChatRequest, Message
from portico.errors import AuthenticationFailed
from portico.plugins import Secret
from portico_openai.chat import OpenAIChat
from portico_openai.config import OpenAIChatSettings, OpenAIEmbeddingsSettings
from portico_openai.embeddings import OpenAIEmbeddings

REQUEST = ChatRequest([Message.of("user", "Say hello.")])


async def test_an_injected_client_is_used_and_stays_open():
    asked = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        if request.url.path.endswith("/embeddings"):
            return httpx2.Response(200, json={"data": [{"index": 0, "embedding": [0.0, 2.0]}]})
        message = {"role": "assistant", "content": "Hello."}
        return httpx2.Response(200, json={"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as client:
        settings = {"model": "m", "base_url": "http://example.org/v1", "api_key": Secret("k")}
        chat = OpenAIChat(OpenAIChatSettings(**settings), http_client=client)
        embeddings = OpenAIEmbeddings(OpenAIEmbeddingsSettings(**settings), http_client=client)
        assert (await chat.complete(REQUEST)).text == "Hello."
        assert [delta.text async for delta in chat.stream(REQUEST)] == ["Hello.", ""]
        assert (await embeddings.embed(["x"])).buffer.tolist() == [0.0, 1.0]
        await chat.aclose()
        await embeddings.aclose()
        assert not client.is_closed
    assert [str(request.url) for request in asked[1:]] == [
        "http://example.org/v1/chat/completions",
        "http://example.org/v1/embeddings",
    ]


def test_another_kind_of_client_is_a_mistake():
    with pytest.raises(TypeError, match=r"httpx2\.AsyncClient, not Client"):
        OpenAIChat(OpenAIChatSettings(model="m"), http_client=httpx2.Client())


async def test_azure_takes_its_key_in_a_header_of_its_own(loopback, make_chat, make_embeddings):
    loopback.will(loopback.whole(loopback.completion()), loopback.whole({"data": [{"index": 0, "embedding": [1.0]}]}))
    azure = {"base_url": f"http://127.0.0.1:{loopback.port}/openai/v1/", "api_key_header": "api-key", "model": "prod"}
    await make_chat(**azure).complete(REQUEST)
    await make_embeddings(**azure).embed(["x"])
    assert [visit.path for visit in loopback.visits] == ["/openai/v1/chat/completions", "/openai/v1/embeddings"]
    for visit in loopback.visits:
        assert visit.headers["api-key"] == loopback.key
        assert "authorization" not in visit.headers
        assert visit.json["model"] == "prod"


async def test_an_authorization_of_ones_own_is_sent_as_it_is(loopback, make_chat):
    loopback.will(loopback.whole(loopback.completion()))
    await make_chat(api_key=None, headers={"Authorization": "Basic dXNlcjp3b3Jk"}).complete(REQUEST)
    assert loopback.visits[0].headers["authorization"] == "Basic dXNlcjp3b3Jk"


@pytest.mark.parametrize("way", ["bare header", "own header"])
async def test_a_key_that_the_service_quotes_is_blotted_out(way, loopback, make_chat, caplog):
    caplog.set_level(logging.DEBUG)
    secret = "sk-very-secret.0123"
    settings = {
        "bare header": {"api_key": Secret(secret), "api_key_header": "X-Key"},
        "own header": {"api_key": None, "headers": {"Authorization": f"Token {secret}"}},
    }[way]
    body = {"error": {"message": f"Bad key '{secret}' ({secret})."}}
    loopback.will(loopback.whole(body, status="401 Unauthorized"))
    chat = make_chat(**settings)
    with pytest.raises(AuthenticationFailed) as caught:
        await chat.complete(REQUEST)
    error: BaseException | None = caught.value
    assert "Bad key '********' (********)" in str(error)
    while error is not None:
        assert secret not in str(error) + repr(error)
        error = error.__cause__
    assert secret not in caplog.text
    if way != "own header":
        assert secret not in repr(chat._settings)


@pytest.mark.parametrize("name", ["X Key", "X-Schlüssel"])
def test_a_header_for_the_key_has_a_headers_name(name):
    with pytest.raises(ValueError, match="api_key_header"):
        OpenAIChatSettings(model="m", api_key_header=name)
