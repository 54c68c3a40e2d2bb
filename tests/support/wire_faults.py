"""Whatever happens on the wire ends in a clear error: no hang, no task left, no connection left.

`WireFaults` is for the test file of each chat service over HTTP, whose folder has the fixtures ``loopback``, a
`Loopback`, and ``make_chat``, which makes a service of the model ``m-1`` on it from settings.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import time
from contextlib import aclosing
from email.utils import formatdate
from typing import Any, ClassVar

import pytest
from tests.support.loopback import Form

from portico import ChatRequest, Message, Tool, ToolChoice
from portico.errors import RateLimited, ResponseInvalid, ServiceError, ServiceTimeout, ServiceUnavailable

REQUEST = ChatRequest([Message.of("user", "Say hello.")])
STRANGE = {
    b"<html><head><title>Sign in</title></head>...": "a page in HTML with the title “Sign in”",
    b"": "empty",
    b"   \n": "empty",
    b"null": "null",
    b"[]": "[]",
    b"\xff\xfe\x00": "not",
    b'{"choices":' + b"[" * 100_000: "not",
    b"{}": "sent a reply without",
}
"""Replies that are something else, and what the error says."""
WAYS = pytest.mark.parametrize("way", ["complete", "stream"])


async def run(chat, way: str, request: ChatRequest = REQUEST):
    """Ask, and hold the call to leave no task behind and not to take for ever."""
    before = asyncio.all_tasks()
    try:
        async with asyncio.timeout(20):
            if way == "complete":
                return await chat.complete(request)
            deltas = [delta async for delta in chat.stream(request)]
            return deltas[-1].reply
    finally:
        for _ in range(5):
            await asyncio.sleep(0)
        left = [task for task in asyncio.all_tasks() - before if "_serve" not in str(task.get_coro())]
        assert left == []


class WireFaults:
    """The tests; ``form`` says how the service writes."""

    form: ClassVar[Form]

    async def failure(self, chat: Any, way: str, kind: type[ServiceError]) -> ServiceError:
        with pytest.raises(ServiceError) as caught:
            await run(chat, way)
        assert type(caught.value) is kind, str(caught.value)
        assert str(caught.value).startswith(f"Chat service '{self.form.name}' (m-1 at 127.0.0.1:")
        return caught.value

    @WAYS
    async def test_connection_refused(self, way, make_chat):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            error = await self.failure(
                make_chat(base_url=f"http://127.0.0.1:{port}{self.form.base}"), way, ServiceUnavailable
            )
        assert "nothing listens at 127.0.0.1" in str(error)
        assert "Start the server, or correct base_url." in str(error)
        assert error.__cause__ is not None

    @WAYS
    async def test_a_name_that_is_not_known(self, way, make_chat, monkeypatch):
        def unknown(*_: object, **__: object) -> None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", unknown)
        chat = make_chat(base_url=f"http://no-such-host.invalid{self.form.base}")
        with pytest.raises(ServiceUnavailable, match=r"Name or service not known"):
            await run(chat, way)

    @WAYS
    async def test_tls_where_the_server_has_none(self, way, make_chat):
        async def plain(reader, writer):
            await reader.read(10)
            writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            error = await self.failure(
                make_chat(base_url=f"https://127.0.0.1:{port}{self.form.base}"), way, ServiceUnavailable
            )
        assert "WRONG_VERSION_NUMBER" in str(error)
        assert "Look at base_url" in str(error)

    @WAYS
    async def test_something_that_is_not_http(self, way, loopback, make_chat):
        loopback.will(b"220 mail.example.org ESMTP ready\r\n\r\n")
        error = await self.failure(make_chat(), way, ResponseInvalid)
        assert "does not answer in HTTP" in str(error)

    @WAYS
    async def test_a_connection_that_is_closed_without_an_answer(self, way, loopback, make_chat):
        async def hang_up(visit):
            await visit.reset()

        loopback.will(hang_up)
        error = await self.failure(make_chat(), way, ServiceUnavailable)
        assert "broke the connection off before it answered" in str(error)

    async def test_a_reset_in_the_middle_of_a_stream_says_how_much_had_come(self, loopback, make_chat):
        async def part(visit):
            await visit.send(loopback.stream_head + loopback.chunk(self.form.begin + self.form.piece("Half")))
            await asyncio.sleep(0.05)
            await visit.reset()

        loopback.will(part)
        chat = make_chat(max_retries=3)
        texts = []
        with pytest.raises(ServiceUnavailable, match=r"broke the connection off after \d+ bytes of the reply"):
            async for delta in chat.stream(REQUEST):
                texts += [delta.text]
        assert texts == ["Half"]
        assert len(loopback.visits) == 1, "a stream is never asked for again once some of it was delivered"

    @WAYS
    async def test_half_a_json(self, way, loopback, make_chat):
        half = json.dumps(self.form.reply()).encode()[:60]
        loopback.will(loopback.whole(half) if way == "complete" else loopback.streamed(b"data: " + half + b"\n\n"))
        error = await self.failure(make_chat(), way, ResponseInvalid)
        assert f"that is not JSON: {half[:10].decode()}" in str(error)

    async def test_a_stream_that_ends_in_the_middle_of_an_event(self, loopback, make_chat):
        whole = self.form.begin + self.form.piece("Half")
        loopback.will(loopback.streamed(whole + self.form.piece(" and half")[:30]))
        error = await self.failure(make_chat(), "stream", ResponseInvalid)
        assert "ended its stream before the reply was complete: 4 characters of text had come" in str(error)

    async def test_a_stream_that_just_ends(self, loopback, make_chat):
        loopback.will(loopback.streamed(self.form.begin + self.form.piece("Half")))
        error = await self.failure(make_chat(), "stream", ResponseInvalid)
        assert "ended its stream before the reply was complete" in str(error)

    @WAYS
    @pytest.mark.parametrize("body", STRANGE, ids=lambda body: body[:20])
    async def test_a_reply_that_is_something_else(self, way, body, loopback, make_chat):
        kind = "text/html" if body.startswith(b"<") else "application/json"
        loopback.will(loopback.whole(body, kind=kind))
        error = await self.failure(make_chat(), way, ResponseInvalid)
        assert STRANGE[body] in str(error)
        assert len(str(error)) < 600

    @WAYS
    async def test_a_reply_that_is_almost_one(self, way, loopback, make_chat):
        for body, said in self.form.strange:
            loopback.will(loopback.whole(body))
            error = await self.failure(make_chat(), way, ResponseInvalid)
            assert said in str(error)

    @WAYS
    async def test_a_service_that_must_call_a_tool_and_answers_with_text(self, way, loopback, make_chat):
        loopback.will(loopback.whole(self.form.reply("It is noon.")))
        dice = Tool("Dice-Roll", "Rolls a die.", {"type": "object", "properties": {}})
        request = ChatRequest(REQUEST.messages, tools=(dice,), tool_choice=ToolChoice("required"))
        with pytest.raises(ResponseInvalid, match=r"ignored tool_choice 'required'.*text: It is noon") as caught:
            await run(make_chat(), way, request)
        assert caught.value.text == "It is noon."

    async def test_a_stream_of_nothing(self, loopback, make_chat):
        for events in (b"", b": only comments\n\n"):
            loopback.will(loopback.streamed(events))
            await self.failure(make_chat(), "stream", ResponseInvalid)

    @WAYS
    @pytest.mark.parametrize("header", ["date", "seconds", "milliseconds", "none", "nonsense", "odd date"])
    async def test_too_many_requests(self, way, header, loopback, make_chat):
        date = formatdate(time.time() + 30, usegmt=True)
        headers = {
            "date": {"retry_after": date},
            "seconds": {"retry_after": "30"},
            "milliseconds": {"retry_after_ms": "30000", "retry_after": "99"},
            "none": {},
            "nonsense": {"retry_after": "soon"},
            "odd date": {"retry_after": "Wed, 21 Oct 2015 07:28:00 +99999999999999"},
        }[header]
        body = {"error": {"message": "Slow down.", "type": "requests", "code": "rate_limit_exceeded"}}
        loopback.will(loopback.whole(body, status="429 Too Many Requests", **headers))
        error = await self.failure(make_chat(), way, RateLimited)
        assert isinstance(error, RateLimited)
        if header in {"none", "nonsense", "odd date"}:
            assert error.retry_after is None
            assert "Try again later." in str(error)
        else:
            assert error.retry_after == pytest.approx(30, abs=3)
            assert "Try again in " in str(error)

    @WAYS
    async def test_a_failure_is_tried_again_and_the_wait_that_is_asked_for_is_kept(self, way, loopback, make_chat):
        good = loopback.whole(self.form.reply())
        busy = loopback.whole({"error": {"message": "busy"}}, status="429 Too Many Requests", retry_after_ms="300")
        broken = loopback.whole({"error": {"message": "oops"}}, status="500 Oops", retry_after_ms="1")
        loopback.will(broken, busy, good)
        started = asyncio.get_running_loop().time()
        assert (await run(make_chat(max_retries=2), way)).text == "Hello."
        assert len(loopback.visits) == 3
        assert asyncio.get_running_loop().time() - started >= 0.3, "Retry-After was not kept"
        loopback.will(broken, busy, broken, good)
        await self.failure(make_chat(max_retries=2), way, ServiceUnavailable)
        assert len(loopback.visits) == 3, "it is tried as often as the setting says"

    @WAYS
    async def test_a_wait_that_is_longer_than_the_call_may_last_is_not_begun(self, way, loopback, make_chat):
        body = {"error": {"message": "Slow down."}}
        loopback.will(loopback.whole(body, status="429 Too Many Requests", retry_after="60"))
        # A wait that was begun would end as a ServiceTimeout.
        error = await self.failure(make_chat(max_retries=5, timeout=5.0), way, RateLimited)
        assert isinstance(error, RateLimited)
        assert error.retry_after == 60
        assert len(loopback.visits) == 1

    @WAYS
    async def test_what_the_service_refuses_is_not_tried_again(self, way, loopback, make_chat):
        loopback.will(loopback.whole({"error": {"message": "No."}}, status="400 Bad Request"))
        await self.failure(make_chat(max_retries=3), way, ServiceError)
        assert len(loopback.visits) == 1

    @WAYS
    async def test_an_endless_reply(self, way, loopback, make_chat):
        async def forever(visit):
            await visit.send(loopback.stream_head)
            with pytest.raises(ConnectionError):
                while True:
                    await visit.send(loopback.chunk(self.form.piece("more ") * 50))

        loopback.will(forever)
        error = await self.failure(make_chat(max_reply_bytes=200_000), way, ResponseInvalid)
        assert "sent more than 200,000 bytes (max_reply_bytes)" in str(error)

    @WAYS
    async def test_an_endless_error(self, way, loopback, make_chat):
        async def forever(visit):
            await visit.send(b"HTTP/1.1 400 Bad\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n")
            with pytest.raises(ConnectionError):
                while True:
                    await visit.send(loopback.chunk(b"No, no, no. " * 1_000))

        loopback.will(forever)
        error = await self.failure(make_chat(), way, ServiceError)
        assert "refused the request (400): No, no, no." in str(error)
        assert len(str(error)) < 500

    async def test_a_bomb_of_zeros(self, loopback, make_chat):
        bomb = gzip.compress(bytes(50_000_000))
        loopback.will(loopback.whole(bomb, content_encoding="gzip"))
        error = await self.failure(make_chat(max_reply_bytes=1_000_000), "complete", ResponseInvalid)
        assert "max_reply_bytes" in str(error)

    @WAYS
    async def test_compressed_replies_are_unpacked(self, way, loopback, make_chat):
        loopback.will(loopback.whole(gzip.compress(json.dumps(self.form.reply()).encode()), content_encoding="gzip"))
        assert (await run(make_chat(), way)).text == "Hello."
        loopback.will(loopback.whole(b"these are not the bytes", content_encoding="gzip"))
        error = await self.failure(make_chat(), way, ResponseInvalid)
        assert "compression is broken" in str(error)

    async def test_a_compressed_stream_is_read_too(self, loopback, make_chat):
        events = self.form.events("Hello.")
        head = loopback.stream_head.replace(b"\r\n\r\n", b"\r\ncontent-encoding: gzip\r\n\r\n")
        loopback.will(head + loopback.chunk(gzip.compress(events)) + b"0\r\n\r\n")
        assert (await run(make_chat(), "stream")).text == "Hello."

    @WAYS
    async def test_a_silent_server(self, way, loopback, make_chat):
        async def silence(visit):
            await visit.until_gone()

        loopback.will(silence)
        error = await self.failure(make_chat(timeout=0.2, max_retries=2), way, ServiceTimeout)
        assert "did not answer: 0.2 s have passed (timeout)" in str(error)
        for visit in loopback.visits:
            await asyncio.wait_for(visit.gone.wait(), 10)

    async def test_a_stream_that_drips_is_bounded_by_the_time_between_two_drops(self, loopback, make_chat):
        async def drip(visit):
            await visit.send(loopback.stream_head)
            try:
                for _ in range(8):
                    await asyncio.sleep(0.1)
                    await visit.send(loopback.chunk(self.form.piece("x")))
                await visit.until_gone()
            except ConnectionError:
                visit.gone.set()

        loopback.will(drip)
        error = await self.failure(make_chat(stream_timeout=0.6), "stream", ServiceTimeout)
        assert "fell silent after" in str(error)
        assert "0.6 s have passed (stream_timeout)" in str(error)
        await asyncio.wait_for(loopback.visits[0].gone.wait(), 10)

    @WAYS
    async def test_a_reply_that_drips_for_ever_is_bounded_by_the_whole_time(self, way, loopback, make_chat):
        async def drip(visit):
            head = loopback.stream_head
            await visit.send(head if way == "stream" else head.replace(b"text/event-stream", b"application/json"))
            try:
                while True:
                    await visit.send(loopback.chunk(self.form.piece("x")))
                    await asyncio.sleep(0.05)
            except ConnectionError:
                visit.gone.set()

        loopback.will(drip)
        error = await self.failure(make_chat(timeout=0.5), way, ServiceTimeout)
        assert "0.5 s have passed (timeout)" in str(error)

    async def test_the_time_that_a_reader_takes_is_not_the_services(self, loopback, make_chat):
        events = [self.form.begin + self.form.piece("x"), self.form.piece("y"), self.form.end]

        async def slowly(visit):
            await visit.send(loopback.stream_head)
            for event in events:
                await visit.send(loopback.chunk(event))
                await asyncio.sleep(0.05)
            await visit.send(b"0\r\n\r\n")

        loopback.will(slowly)
        texts = []
        # Long enough for a host that stops both sides for a second or two, and less than the reader takes for all.
        async for delta in make_chat(timeout=2.5, stream_timeout=2.5).stream(REQUEST):
            await asyncio.sleep(1)
            texts.append(delta.text)
        assert texts == ["x", "y", ""]

    @WAYS
    @pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"])
    async def test_a_redirect_is_not_followed_and_is_told(self, way, status, loopback, make_chat):
        loopback.will(loopback.whole(b"", status=status, location="https://elsewhere.example/v1/other"))
        error = await self.failure(make_chat(max_retries=2), way, ServiceError)
        assert "redirects to https://elsewhere.example/v1/other. Set base_url" in str(error)
        assert len(loopback.visits) == 1

    @WAYS
    async def test_cancelling_a_call_closes_its_connection_at_once(self, way, loopback, make_chat):
        async def begin(visit):
            if way == "stream":
                await visit.send(loopback.stream_head + loopback.chunk(self.form.piece("x")))
            await visit.until_gone()

        loopback.will(begin)
        chat = make_chat()
        call = asyncio.create_task(run(chat, way))
        while not loopback.visits:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(loopback.visits[0].gone.wait(), 10)

    async def test_closing_a_stream_early_closes_its_connection_at_once(self, loopback, make_chat):
        async def begin(visit):
            await visit.send(loopback.stream_head + loopback.chunk(self.form.piece("x")))
            await visit.until_gone()

        loopback.will(begin)
        chat = make_chat()
        before = asyncio.all_tasks()
        async with aclosing(chat.stream(REQUEST)) as stream:
            assert (await anext(stream)).text == "x"
        await asyncio.wait_for(loopback.visits[0].gone.wait(), 10)
        await asyncio.sleep(0.02)
        assert [task for task in asyncio.all_tasks() - before if "_serve" not in str(task.get_coro())] == []

    async def test_connections_are_used_again_after_whole_replies_and_whole_streams(
        self, loopback, make_chat, monkeypatch
    ):
        # A host that stops for a moment must not look like a server that never ends its reply.
        monkeypatch.setattr("portico_wire.connection._DRAINING", 10)
        events = self.form.events("Hi")

        async def late_end(visit):
            await visit.send(loopback.stream_head + loopback.chunk(events))
            await asyncio.sleep(0.005)
            await visit.send(b"0\r\n\r\n")

        loopback.will(loopback.whole(self.form.reply()), loopback.streamed(events), late_end)
        chat = make_chat()
        for way in ("complete", "stream", "stream", "stream"):
            await run(chat, way)
        assert loopback.connections == 1

    async def test_a_server_that_never_ends_its_stream_is_not_waited_for(self, loopback, make_chat):
        async def no_end(visit):
            events = self.form.events("Hi")
            await visit.send(loopback.stream_head + loopback.chunk(events))
            await visit.until_gone()

        loopback.will(no_end)
        async with asyncio.timeout(5):
            assert (await run(make_chat(), "stream")).text == "Hi"
        await asyncio.wait_for(loopback.visits[0].gone.wait(), 10)

    async def test_a_failure_of_one_call_does_not_touch_the_others(self, loopback, make_chat):
        async def answer(visit):
            number = int(self.form.question(visit.json))
            if number % 3 == 0:
                await visit.send(loopback.whole({"error": {"message": "No."}}, status="400 Bad Request"))
            elif number % 3 == 1:
                await visit.reset()
            else:
                await visit.send(loopback.whole(self.form.reply(f"Reply {number}")))

        loopback.will(answer)
        chat = make_chat()
        calls = [chat.complete(ChatRequest([Message.of("user", str(number))])) for number in range(60)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        for number, outcome in enumerate(outcomes):
            if number % 3 == 2:
                assert outcome.text == f"Reply {number}"
            else:
                assert type(outcome) is (ServiceError if number % 3 == 0 else ServiceUnavailable)
