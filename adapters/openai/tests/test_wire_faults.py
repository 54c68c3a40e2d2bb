"""Whatever happens on the wire ends in a clear error, and each service owns its connections."""

from __future__ import annotations

import json
from typing import Any, ClassVar

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


class TestCompletions(WireFaults, WireConnections):
    form = Completions()


async def test_a_stream_that_ends_with_either_sign_of_its_end(loopback, make_chat):
    loopback.will(loopback.streamed(loopback.event({"content": "Hi"}) + b"data: [DONE]\n\n"))
    assert (await run(make_chat(), "stream")).text == "Hi"
    loopback.will(loopback.streamed(loopback.event({"content": "Hi"}) + loopback.event({}, "stop")))
    assert (await run(make_chat(), "stream")).text == "Hi"
