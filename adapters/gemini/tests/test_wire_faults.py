"""Whatever happens on the wire ends in a clear error, and each service owns its connections."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from tests.support.loopback import Form
from tests.support.wire_connections import WireConnections
from tests.support.wire_faults import WireFaults


def chunk(text: str, **further: Any) -> dict[str, Any]:
    content = {"parts": [{"text": text}], "role": "model"}
    return {"candidates": [{"content": content, "index": 0, **further}], "modelVersion": "m-1"}


class GenerateContent(Form):
    name = "gemini"
    base = "/v1beta"
    path = "/models/m-1:generateContent"
    key_header = ("x-goog-api-key", "")
    end = b"data: " + json.dumps(chunk("", finishReason="STOP")).encode() + b"\n\n"
    strange = (
        (b'{"candidates": []}', "without a candidate"),
        (b'{"candidates": [{"index": 0}]}', "without a candidate"),
        (b'{"candidates": [{"content": {"parts": [{"text": 5}]}}]}', "`$.text`"),
        (b'{"candidates": "none"}', "`$.candidates`"),
    )
    environment: ClassVar = {
        **dict.fromkeys(("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_CLOUD_PROJECT"), "environment"),
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_GENAI_API_VERSION": "environment",
        "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9/environment",
    }

    def reply(self, text: str = "Hello.") -> Any:
        return chunk(text, finishReason="STOP")

    def piece(self, text: str) -> bytes:
        return b"data: " + json.dumps(chunk(text)).encode() + b"\r\n\r\n"

    def question(self, body: Any) -> str:
        return body["contents"][0]["parts"][0]["text"]


class TestGenerateContent(WireFaults, WireConnections):
    form = GenerateContent()
