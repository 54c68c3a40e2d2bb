"""Each service owns its connections: made when first needed, told no more than it must, closed by whoever made it."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import threading

import httpx2
import pytest

from portico import ChatRequest, Image, Message
from portico.errors import AuthenticationFailed, ServiceError
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


def test_nothing_is_opened_before_the_first_call():
    before = threading.active_count()
    chat = OpenAIChat(OpenAIChatSettings(model="m", api_key=Secret("k")))
    assert threading.active_count() == before
    asyncio.run(chat.aclose())


async def test_a_closed_service_says_so_and_closing_twice_does_nothing(loopback, make_chat):
    loopback.will(loopback.whole(loopback.completion()))
    chat = make_chat()
    await chat.complete(REQUEST)
    await chat.aclose()
    await chat.aclose()
    with pytest.raises(RuntimeError, match="was closed"):
        await chat.complete(REQUEST)
    with pytest.raises(RuntimeError, match="was closed"):
        await anext(chat.stream(REQUEST))


async def test_closing_ends_the_calls_that_are_under_way(loopback, make_chat):
    async def silence(visit):
        await visit.until_gone()

    loopback.will(silence)
    chat = make_chat()
    call = asyncio.create_task(chat.complete(REQUEST))
    while not loopback.visits:
        await asyncio.sleep(0.01)
    await chat.aclose()
    with pytest.raises(ServiceError):
        await asyncio.wait_for(call, 10)
    await asyncio.wait_for(loopback.visits[0].gone.wait(), 10)


def test_a_service_works_in_one_event_loop_after_another_without_being_closed(llmock_url):
    """As `kernel.run_sync` uses it; an unclosed client would be warned of, and warnings are errors."""
    chat = OpenAIChat(OpenAIChatSettings(model="m", base_url=llmock_url))

    async def both() -> tuple[str, str]:
        deltas = [delta async for delta in chat.stream(REQUEST)]
        return deltas[-1].reply.text, (await chat.complete(REQUEST)).text

    texts = [asyncio.run(both()) for _ in range(3)]
    assert len({text for pair in texts for text in pair}) == 1
    asyncio.run(chat.aclose())
    gc.collect()


def test_threads_that_each_have_a_loop_share_a_service(llmock_url):
    chat = OpenAIChat(OpenAIChatSettings(model="m", base_url=llmock_url, max_retries=0))
    together = threading.Barrier(4)
    outcomes: list[object] = []

    async def several() -> list[str]:
        await asyncio.to_thread(together.wait, 10)
        return [(await chat.complete(REQUEST)).text for _ in range(5)]

    def work() -> None:
        try:
            outcomes.append(asyncio.run(several()))
        except Exception as error:
            outcomes.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [outcome for outcome in outcomes if not isinstance(outcome, list)] == []
    assert len(outcomes) == 4
    asyncio.run(chat.aclose())


async def test_a_service_that_is_forgotten_while_the_loop_runs_closes_its_connections(loopback):
    async def answer(visit):
        await visit.send(loopback.whole(loopback.completion()))
        await visit.until_gone()

    loopback.will(answer)
    chat = OpenAIChat(OpenAIChatSettings(model="m", base_url=loopback.base_url))
    await chat.complete(REQUEST)
    del chat
    gc.collect()
    await asyncio.wait_for(loopback.visits[0].gone.wait(), 10)


async def test_a_call_that_waits_to_be_tried_again_ends_with_the_service(loopback, make_chat):
    loopback.will(loopback.whole({"error": {"message": "x"}}, status="500 Oops", retry_after_ms="200"))
    chat = make_chat(max_retries=2)
    call = asyncio.create_task(chat.complete(REQUEST))
    while not loopback.visits:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    await chat.aclose()
    with pytest.raises(ServiceError, match="was closed while this call was under way"):
        await asyncio.wait_for(call, 10)


async def test_a_stream_ends_with_the_service(loopback, make_chat):
    async def begin(visit):
        await visit.send(loopback.stream_head + loopback.chunk(loopback.event({"content": "x"})))
        await visit.until_gone()

    loopback.will(begin)
    chat = make_chat()
    stream = chat.stream(REQUEST)
    await anext(stream)
    await chat.aclose()
    with pytest.raises(ServiceError, match="was closed while this call was under way"):
        await asyncio.wait_for(anext(stream), 10)


async def test_a_request_with_large_images_goes_out_in_portions_and_is_tried_again_whole(loopback, make_chat):
    """Sent at once it would hold up the loop; aiohttp warns of it, and warnings are errors."""
    good = loopback.whole(loopback.completion())
    busy = loopback.whole(b"{}", status="500 Oops", retry_after_ms="1")
    loopback.will(busy, good, good)
    chat = make_chat(max_retries=1)
    request = ChatRequest([Message("user", (Image(data=bytes(3_000_000), media_type="image/png"),))])
    for _ in range(2):
        await chat.complete(request)
    assert len(loopback.visits) == 3
    for visit in loopback.visits:
        assert visit.headers["content-length"] == str(len(visit.body))
        assert visit.headers["authorization"] == f"Bearer {loopback.key}"
        (part,) = visit.json["messages"][0]["content"]
        assert part["image_url"]["url"] == "data:image/png;base64," + "A" * 4_000_000


async def test_many_first_calls_at_once_share_one_client(loopback, make_chat):
    async def answer(visit):
        await visit.send(loopback.whole(loopback.completion(visit.json["messages"][0]["content"])))

    loopback.will(answer)
    chat = make_chat()
    questions = [f"Question {number}" for number in range(64)]
    replies = await asyncio.gather(
        *(chat.complete(ChatRequest([Message.of("user", question)])) for question in questions)
    )
    assert [reply.text for reply in replies] == questions
    assert loopback.connections <= 64


@pytest.fixture
def crowded_environment(monkeypatch):
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID", "WEBHOOK_SECRET"):
        monkeypatch.setenv(f"OPENAI_{name}", "sk-of-the-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/of-the-environment")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Environment: sk-of-the-environment\nAuthorization: Bearer env")


@pytest.mark.usefixtures("crowded_environment")
async def test_the_environment_is_not_read_and_little_is_told(loopback, make_chat):
    loopback.will(loopback.whole(loopback.completion()))
    await make_chat(api_key=None).complete(REQUEST)
    await make_chat().complete(REQUEST)
    without, with_key = (visit.headers for visit in loopback.visits)
    assert "authorization" not in without
    assert with_key.pop("authorization") == f"Bearer {loopback.key}"
    assert "environment" not in str(without)
    assert with_key == without
    assert without.keys() == {
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "host",
        "user-agent",
        "x-stainless-retry-count",
    }
    assert without["content-type"] == "application/json"


async def test_a_proxy_of_the_environment_is_used_and_blamed_when_it_is_gone(loopback, make_chat, monkeypatch):
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{loopback.port}")
    loopback.will(loopback.whole(loopback.completion()))
    assert (await make_chat(base_url="http://model.invalid/v1").complete(REQUEST)).text == "Hello."
    assert loopback.visits[0].path == "http://model.invalid/v1/chat/completions"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        with pytest.raises(ServiceError, match=rf"{port}.*HTTPS_PROXY"):
            await make_chat(base_url="http://model.invalid/v1").complete(REQUEST)


async def test_settings_go_into_headers_and_query(loopback, make_chat):
    loopback.will(loopback.whole(loopback.completion()))
    settings = {"headers": {"X-Title": "Portico", "OpenAI-Project": "proj-1"}, "query": {"v": "a b"}}
    await make_chat(**settings).complete(REQUEST)
    (visit,) = loopback.visits
    assert visit.path == "/v1/chat/completions?v=a+b"
    assert visit.headers["openai-project"] == "proj-1"
    assert visit.headers["x-title"] == "Portico"
    assert visit.headers["authorization"] == f"Bearer {loopback.key}"


async def test_the_second_request_and_one_that_is_sent_again_are_as_whole_as_the_first(loopback, make_chat):
    good = loopback.whole(loopback.completion())
    loopback.will(good, good, loopback.whole(b"{}", status="500 Oops", retry_after_ms="1"), good)
    chat = make_chat(max_retries=1, headers={"X-Title": "Portico"})
    for question in ("first", "the second", "the third one"):
        await chat.complete(ChatRequest([Message.of("user", question)]))
    first, *others = loopback.visits
    assert len(others) == 3
    for visit, question in zip(others, ("the second", "the third one", "the third one"), strict=True):
        assert visit.json["messages"] == [{"role": "user", "content": question}]
        changed = {name for name in first.headers | visit.headers if first.headers.get(name) != visit.headers.get(name)}
        assert changed <= {"content-length", "x-stainless-retry-count"}
        assert (visit.method, visit.path) == (first.method, first.path)
    assert [visit.headers["x-stainless-retry-count"] for visit in others] == ["0", "0", "1"]


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


@pytest.mark.parametrize("way", ["key", "bare header", "own header"])
async def test_a_key_that_the_service_quotes_is_blotted_out(way, loopback, make_chat, caplog):
    caplog.set_level(logging.DEBUG)
    secret = "sk-very-secret.0123"
    settings = {
        "key": {"api_key": Secret(secret)},
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


async def test_a_short_key_does_not_blot_out_words(loopback, make_chat):
    loopback.will(loopback.whole({"error": {"message": "exotic x"}}, status="400 Bad"))
    with pytest.raises(ServiceError, match=r"exotic \*{8}"):
        await make_chat(api_key=Secret("x")).complete(REQUEST)


def test_a_key_with_a_line_break_is_refused_without_being_shown():
    with pytest.raises(ValueError, match="api_key") as caught:
        OpenAIChatSettings(model="m", api_key=Secret("sk-very-secret\n"))
    assert "very-secret" not in str(caught.value)


@pytest.mark.parametrize(
    "settings", [{"api_key": Secret("sk-" + "Ab12" * 15)}, {"headers": {"Helicone-Auth": "h" * 63}}]
)
@pytest.mark.parametrize("before", [240, 270, 295])
async def test_a_key_is_blotted_out_before_a_long_message_is_cut(before, settings, loopback, make_chat):
    secret = "sk-" + "Ab12" * 15 if "api_key" in settings else "h" * 63
    for kind, body in (("application/json", {"error": {"message": f"{'x' * before} {secret}"}}), ("text/plain", None)):
        text = f"{'x' * before} {secret}".encode() if body is None else body
        loopback.will(loopback.whole(text, status="400 Bad", kind=kind))
        with pytest.raises(ServiceError) as caught:
            await make_chat(**settings).complete(REQUEST)
        assert secret[:5] not in str(caught.value)


async def test_secret_headers_are_sent_and_do_not_show(loopback, make_chat):
    loopback.will(loopback.whole({"error": {"message": "no gate-0123456789"}}, status="401 Unauthorized"))
    chat = make_chat(secret_headers={"X-Gate": Secret("gate-0123456789")})
    with pytest.raises(AuthenticationFailed, match=r"no \*{8}\."):
        await chat.complete(REQUEST)
    assert loopback.visits[0].headers["x-gate"] == "gate-0123456789"
    assert "gate-0123456789" not in repr(chat._settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"headers": {"X-Title": "Übersicht"}},
        {"headers": {"X-Title": "a\nb"}},
        {"headers": {"Content-Length": "3"}},
        {"headers": {"transfer-encoding": "chunked"}},
        {"secret_headers": {"X-Gate": Secret("very-secret\n")}},
        {"api_key_header": "X Key"},
        {"api_key_header": "X-Schlüssel"},
    ],
    ids=str,
)
def test_what_no_header_can_hold_is_refused_when_it_is_set(settings):
    (name,) = settings
    with pytest.raises(ValueError, match=name) as caught:
        OpenAIChatSettings(model="m", **settings)
    assert "very-secret" not in str(caught.value)
