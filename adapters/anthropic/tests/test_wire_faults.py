"""Whatever happens on the wire ends in a clear error, and each service owns its connections."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from tests.support.loopback import Form
from tests.support.wire_connections import WireConnections
from tests.support.wire_faults import WireFaults


def event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


class Messages(Form):
    name = "anthropic"
    base = ""
    path = "/v1/messages"
    key_header = ("x-api-key", "")
    begin = (
        event("message_start", message={"model": "m-1", "content": [], "usage": {"input_tokens": 3}})
        + event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        + event("ping")
    )
    end = (
        event("content_block_stop", index=0)
        + event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 2})
        + event("message_stop")
    )
    strange = (
        (b'{"content": null}', "without content"),
        (b'{"content": "words"}', "`$.content`"),
        (b'{"content": [5]}', "`$.content[0]`"),
        (b'{"choices": [{"message": {"content": "Hello."}}]}', "without content"),
    )
    environment: ClassVar = {
        **dict.fromkeys(("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"), "environment"),
        "ANTHROPIC_WEBHOOK_SIGNING_KEY": "environment",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9/environment",
        "ANTHROPIC_CUSTOM_HEADERS": "X-Environment: environment\nX-Api-Key: environment",
    }
    headers = frozenset({"anthropic-version", "x-stainless-retry-count"})

    def reply(self, text: str = "Hello.") -> Any:
        content = [{"type": "text", "text": text}]
        return {"type": "message", "model": "m-1", "content": content, "stop_reason": "end_turn"}

    def piece(self, text: str) -> bytes:
        return event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})

    def question(self, body: Any) -> str:
        return body["messages"][0]["content"][0]["text"]


class TestMessages(WireFaults, WireConnections):
    form = Messages()
