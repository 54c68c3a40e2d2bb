"""Each service owns its connections: made when first needed, told no more than it must, closed by whoever made it.

`WireConnections` is for the test file of each chat service over HTTP; its fixtures are those of `WireFaults`.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import pytest
from tests.support.loopback import KEY, Answer, Form, Loopback

from portico import ChatRequest, Image, Message
from portico.errors import AuthenticationFailed, ServiceError
from portico.plugins import Secret

REQUEST = ChatRequest([Message.of("user", "Say hello.")])
LONG_KEY = "sk-" + "Ab12" * 15


@contextmanager
def elsewhere(answer: Answer) -> Iterator[Loopback]:
    """Run a server in a thread, with an event loop of that thread."""
    server, started, stop = Loopback(), threading.Event(), asyncio.Event()
    server.will(answer)
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        await server.start()
        loops.append(asyncio.get_running_loop())
        started.set()
        await stop.wait()
        await server.stop()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert started.wait(10)
    try:
        yield server
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join(10)


class WireConnections:
    """The tests; ``form`` says how the service writes."""

    form: ClassVar[Form]

    def hello(self) -> bytes:
        return Loopback.whole(self.form.reply())

    def test_nothing_is_opened_before_the_first_call(self, make_chat):
        before = threading.active_count()
        make_chat()
        assert threading.active_count() == before

    async def test_a_closed_service_says_so_and_closing_twice_does_nothing(self, loopback, make_chat):
        loopback.will(self.hello())
        chat = make_chat()
        await chat.complete(REQUEST)
        await chat.aclose()
        await chat.aclose()
        with pytest.raises(RuntimeError, match="was closed"):
            await chat.complete(REQUEST)
        with pytest.raises(RuntimeError, match="was closed"):
            await anext(chat.stream(REQUEST))

    async def test_closing_ends_the_calls_that_are_under_way(self, loopback, make_chat):
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

    def test_a_service_works_in_one_event_loop_after_another_without_being_closed(self, make_chat):
        """As `kernel.run_sync` uses it; an unclosed client would be warned of, and warnings are errors."""
        with elsewhere(self.hello()) as server:
            chat = make_chat(base_url=f"http://127.0.0.1:{server.port}{self.form.base}")

            async def both() -> tuple[str, str]:
                deltas = [delta async for delta in chat.stream(REQUEST)]
                return deltas[-1].reply.text, (await chat.complete(REQUEST)).text

            assert [asyncio.run(both()) for _ in range(3)] == [("Hello.", "Hello.")] * 3
            asyncio.run(chat.aclose())
            gc.collect()

    def test_threads_that_each_have_a_loop_share_a_service(self, make_chat):
        together = threading.Barrier(4)
        outcomes: list[object] = []
        with elsewhere(self.hello()) as server:
            chat = make_chat(base_url=f"http://127.0.0.1:{server.port}{self.form.base}")

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
            assert outcomes == [["Hello."] * 5] * 4
            asyncio.run(chat.aclose())

    async def test_a_service_that_is_forgotten_while_the_loop_runs_closes_its_connections(self, loopback, make_chat):
        async def answer(visit):
            await visit.send(self.hello())
            await visit.until_gone()

        loopback.will(answer)
        chat = make_chat(forgotten=True)
        await chat.complete(REQUEST)
        del chat
        gc.collect()
        await asyncio.wait_for(loopback.visits[0].gone.wait(), 10)

    async def test_a_call_that_waits_to_be_tried_again_ends_with_the_service(self, loopback, make_chat):
        loopback.will(loopback.whole({"error": {"message": "x"}}, status="500 Oops", retry_after_ms="200"))
        chat = make_chat(max_retries=2)
        call = asyncio.create_task(chat.complete(REQUEST))
        while not loopback.visits:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        await chat.aclose()
        with pytest.raises(ServiceError, match="was closed while this call was under way"):
            await asyncio.wait_for(call, 10)

    async def test_a_stream_ends_with_the_service(self, loopback, make_chat):
        async def begin(visit):
            await visit.send(loopback.stream_head + loopback.chunk(self.form.begin + self.form.piece("x")))
            await visit.until_gone()

        loopback.will(begin)
        chat = make_chat()
        stream = chat.stream(REQUEST)
        await anext(stream)
        await chat.aclose()
        with pytest.raises(ServiceError, match="was closed while this call was under way"):
            await asyncio.wait_for(anext(stream), 10)

    async def test_a_request_with_large_images_goes_out_in_portions_and_is_tried_again_whole(self, loopback, make_chat):
        """Sent at once it would hold up the loop; aiohttp warns of it, and warnings are errors."""
        busy = loopback.whole(b"{}", status="500 Oops", retry_after_ms="1")
        loopback.will(busy, self.hello(), self.hello())
        chat = make_chat(max_retries=1)
        request = ChatRequest([Message("user", (Image(data=bytes(3_000_000), media_type="image/png"),))])
        for _ in range(2):
            await chat.complete(request)
        assert len(loopback.visits) == 3
        header, before = self.form.key_header
        for visit in loopback.visits:
            assert visit.headers["content-length"] == str(len(visit.body))
            assert visit.headers[header] == before + KEY
            assert visit.body.count(b"A" * 4_000_000) == 1

    async def test_many_first_calls_at_once_share_one_client(self, loopback, make_chat):
        async def answer(visit):
            await visit.send(loopback.whole(self.form.reply(self.form.question(visit.json))))

        loopback.will(answer)
        chat = make_chat()
        questions = [f"Question {number}" for number in range(64)]
        replies = await asyncio.gather(
            *(chat.complete(ChatRequest([Message.of("user", question)])) for question in questions)
        )
        assert [reply.text for reply in replies] == questions
        assert loopback.connections <= 64

    async def test_the_environment_is_not_read_and_little_is_told(self, loopback, make_chat, monkeypatch):
        for name, value in self.form.environment.items():
            monkeypatch.setenv(name, value)
        loopback.will(self.hello())
        await make_chat(api_key=None).complete(REQUEST)
        await make_chat().complete(REQUEST)
        without, with_key = (visit.headers for visit in loopback.visits)
        header, before = self.form.key_header
        assert header not in without
        assert with_key.pop(header) == before + KEY
        assert "environment" not in str(without)
        assert with_key == without
        http = {"accept", "accept-encoding", "content-length", "content-type", "host", "user-agent"}
        assert without.keys() - {"connection"} == http | self.form.headers
        assert without["content-type"] == "application/json"

    async def test_a_proxy_of_the_environment_is_used_and_blamed_when_it_is_gone(
        self, loopback, make_chat, monkeypatch
    ):
        for name in [name for name in os.environ if name.lower() == "no_proxy"]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{loopback.port}")
        loopback.will(self.hello())
        address = f"http://model.invalid{self.form.base}"
        assert (await make_chat(base_url=address).complete(REQUEST)).text == "Hello."
        assert loopback.visits[0].path == address + self.form.path
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
            with pytest.raises(ServiceError, match=rf"{port}.*HTTPS_PROXY"):
                await make_chat(base_url=address).complete(REQUEST)

    async def test_settings_go_into_headers_and_query(self, loopback, make_chat):
        loopback.will(self.hello())
        settings = {"headers": {"X-Title": "Portico", "X-Project": "proj-1"}, "query": {"v": "a b"}}
        await make_chat(**settings).complete(REQUEST)
        (visit,) = loopback.visits
        assert visit.path in (f"{self.form.base}{self.form.path}?v=a{blank}b" for blank in ("+", "%20"))
        assert (visit.headers["x-project"], visit.headers["x-title"]) == ("proj-1", "Portico")
        header, before = self.form.key_header
        assert visit.headers[header] == before + KEY

    async def test_the_second_request_and_one_that_is_sent_again_are_as_whole_as_the_first(self, loopback, make_chat):
        good = self.hello()
        loopback.will(good, good, loopback.whole(b"{}", status="500 Oops", retry_after_ms="1"), good)
        chat = make_chat(max_retries=1, headers={"X-Title": "Portico"})
        for question in ("first", "the second", "the third one"):
            await chat.complete(ChatRequest([Message.of("user", question)]))
        first, *others = loopback.visits
        assert len(others) == 3
        for visit, question in zip(others, ("the second", "the third one", "the third one"), strict=True):
            assert self.form.question(visit.json) == question
            names = first.headers | visit.headers
            changed = {name for name in names if first.headers.get(name) != visit.headers.get(name)}
            assert changed <= {"content-length", "x-stainless-retry-count"}
            assert (visit.method, visit.path) == (first.method, first.path)

    @pytest.mark.parametrize("way", ["key", "secret header", "header"])
    async def test_a_key_that_the_service_quotes_is_blotted_out(self, way, loopback, make_chat, caplog):
        caplog.set_level(logging.DEBUG)
        secret = "sk-very-secret.0123"
        settings = {
            "key": {"api_key": Secret(secret)},
            "secret header": {"api_key": None, "secret_headers": {"X-Gate": Secret(secret)}},
            "header": {"api_key": None, "headers": {"X-Auth-Token": secret}},
        }[way]
        body = {"error": {"message": f"Bad key '{secret}' ({secret})."}}
        loopback.will(loopback.whole(body, status="401 Unauthorized"))
        chat = make_chat(**settings)
        with pytest.raises(AuthenticationFailed) as caught:
            await chat.complete(REQUEST)
        error: BaseException | None = caught.value
        assert "Bad key '********' (********)" in str(error)
        assert secret in str(loopback.visits[0].headers)
        while error is not None:
            assert secret not in str(error) + repr(error)
            error = error.__cause__
        assert secret not in caplog.text
        if way != "header":
            assert secret not in repr(chat._settings)

    async def test_a_short_key_does_not_blot_out_words(self, loopback, make_chat):
        loopback.will(loopback.whole({"error": {"message": "exotic x"}}, status="400 Bad"))
        with pytest.raises(ServiceError, match=r"exotic \*{8}"):
            await make_chat(api_key=Secret("x")).complete(REQUEST)

    @pytest.mark.parametrize("settings", [{"api_key": Secret(LONG_KEY)}, {"headers": {"Helicone-Auth": LONG_KEY}}])
    @pytest.mark.parametrize("before", [240, 270, 295])
    async def test_a_key_is_blotted_out_before_a_long_message_is_cut(self, before, settings, loopback, make_chat):
        said = f"{'x' * before} {LONG_KEY}"
        for kind, body in (("application/json", {"error": {"message": said}}), ("text/plain", said.encode())):
            loopback.will(loopback.whole(body, status="400 Bad", kind=kind))
            with pytest.raises(ServiceError) as caught:
                await make_chat(**settings).complete(REQUEST)
            assert LONG_KEY[:5] not in str(caught.value)

    @pytest.mark.parametrize(
        "settings",
        [
            {"api_key": Secret("sk-very-secret\n")},
            {"headers": {"X-Title": "Übersicht"}},
            {"headers": {"X-Title": "a\nb"}},
            {"headers": {"Content-Length": "3"}},
            {"headers": {"transfer-encoding": "chunked"}},
            {"secret_headers": {"X-Gate": Secret("very-secret\n")}},
        ],
        ids=str,
    )
    def test_what_no_header_can_hold_is_refused_when_it_is_set(self, settings, make_chat):
        (name,) = settings
        with pytest.raises(ValueError, match=name) as caught:
            make_chat(**settings)
        assert "very-secret" not in str(caught.value)
