"""Whatever happens on the wire ends in a clear error, and each service owns its connections."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, ClassVar

import pytest
from tests.support.loopback import Form
from tests.support.wire_connections import WireConnections
from tests.support.wire_faults import WireFaults, run


def chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"model": "m-1", "choices": [choice]}).encode() + b"\n\n"


class Completions(Form):
    name = "openai"
    path = "/chat/completions"
    end = chunk({}, "stop") + b"data: [DONE]\n\n"
    strange = (
        (b'{"choices": []}', "without a message"),
        (b'{"choices": [{"index": 0}]}', "without a message"),
        (b'{"choices": [{"message": {"content": 5}}]}', "`$.choices[0].message.content`"),
        (b'{"choices": "none"}', "`$.choices`"),
    )
    environment: ClassVar = {
        **dict.fromkeys(("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"), "environment"),
        "OPENAI_WEBHOOK_SECRET": "environment",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/environment",
        "OPENAI_CUSTOM_HEADERS": "X-Environment: environment\nAuthorization: Bearer environment",
    }
    headers = frozenset({"x-stainless-retry-count"})

    def reply(self, text: str = "Hello.") -> Any:
        message = {"role": "assistant", "content": text}
        return {"model": "m-1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    def piece(self, text: str) -> bytes:
        return chunk({"content": text})

    def question(self, body: Any) -> str:
        return body["messages"][0]["content"]


def event(kind: str, **members: Any) -> bytes:
    body = json.dumps({"type": kind, "sequence_number": 1, **members}).encode()
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), body)


class Responses(Completions):
    path = "/responses"
    begin = event("response.created", response={"status": "in_progress", "output": []})
    end = event("response.completed", response={"status": "completed", "model": "m-1", "output": []})
    strange = (
        (b"{}", "without a message"),
        (b'{"output": "none"}', "`$.output`"),
        (b'{"output": [5]}', "`$.output[0]`"),
        (b'{"output": [], "usage": 5}', "`$.usage`"),
    )

    def reply(self, text: str = "Hello.") -> Any:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        message = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
        return {"model": "m-1", "status": "completed", "error": None, "output": [message]}

    def piece(self, text: str) -> bytes:
        return event("response.output_text.delta", item_id="msg_1", output_index=0, content_index=0, delta=text)

    def question(self, body: Any) -> str:
        return body["input"][0]["content"]


class TestCompletions(WireFaults, WireConnections):
    form = Completions()


class TestResponses(WireFaults, WireConnections):
    form = Responses()

    @pytest.fixture
    def make_chat(self, make_chat: Any) -> Any:
        return partial(make_chat, api="responses")


async def test_a_stream_that_ends_with_either_sign_of_its_end(loopback, make_chat):
    loopback.will(loopback.streamed(loopback.event({"content": "Hi"}) + b"data: [DONE]\n\n"))
    assert (await run(make_chat(), "stream")).text == "Hi"
    loopback.will(loopback.streamed(loopback.event({"content": "Hi"}) + loopback.event({}, "stop")))
    assert (await run(make_chat(), "stream")).text == "Hi"
