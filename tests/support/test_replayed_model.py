"""The model that is replayed says its sayings in the form that was asked for, and nothing after the last."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.support.replayed_model import ReplayedModel, Saying

from portico import ToolCall

CALL = ToolCall("c1", "Clock-Now", '{"town": "Oslo"}')
NOON = ToolCall("c2", "Clock-Noon", "{}")


def answered(model: ReplayedModel, words: str = "When?", **options: Any) -> bytes:
    """Ask the model over HTTP and return the body of what it says."""
    body = json.dumps({"messages": [{"role": "user", "content": words}], **options}).encode()
    request = urllib.request.Request(f"{model.url}/v1/chat/completions", body)
    with urllib.request.urlopen(request, timeout=10) as response:
        said: bytes = response.read()
    return said


def message(model: ReplayedModel, words: str = "When?", **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answered(model, words, **options))["choices"][0]["message"]
    return found


def joined(said: bytes) -> tuple[str, list[dict[str, Any]], list[str]]:
    """Return the words, the calls and the finishes of a stream."""
    *events, end, rest = said.decode().split("\n\n")
    assert (end, rest) == ("data: [DONE]", "")
    chunks = [json.loads(event.removeprefix("data: ")) for event in events]
    assert chunks[-1]["usage"]["completion_tokens"] == 7
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    words = "".join(choice["delta"].get("content", "") for choice in choices)
    calls = [call for choice in choices for call in choice["delta"].get("tool_calls", ())]
    return words, calls, [choice["finish_reason"] for choice in choices if choice["finish_reason"]]


@given(st.lists(st.text(max_size=9) | st.sampled_from([CALL, [CALL, NOON]]), min_size=1, max_size=3))
def test_whole_and_streamed_it_says_the_same_in_order(sayings: list[Saying]) -> None:
    with ReplayedModel(*sayings, *sayings) as model:
        whole = [message(model) for _ in sayings]
        streams = [joined(answered(model, stream=True)) for _ in sayings]
    for said, told, (words, calls, finishes) in zip(sayings, whole, streams, strict=True):
        assert (told["content"] or "") == words == (said if isinstance(said, str) else "")
        assert [{"index": place, **call} for place, call in enumerate(told.get("tool_calls", ()))] == calls
        assert finishes == ["stop" if isinstance(said, str) else "tool_calls"]


def test_a_call_is_in_the_form_of_the_service() -> None:
    with ReplayedModel([CALL, NOON]) as model:
        assert message(model, tools=[{"type": "function", "function": {"name": "Clock-Now"}}])["tool_calls"] == [
            {"id": "c1", "type": "function", "function": {"name": "Clock-Now", "arguments": '{"town": "Oslo"}'}},
            {"id": "c2", "type": "function", "function": {"name": "Clock-Noon", "arguments": "{}"}},
        ]
        assert model.offered(0) == ["Clock-Now"]


def test_a_request_after_the_last_saying_is_refused_and_says_so() -> None:
    with ReplayedModel("Noon.") as model:
        answered(model)
        with pytest.raises(urllib.error.HTTPError) as refused:
            answered(model)
        with refused.value as error:
            assert (error.code, error.read()) == (
                400,
                b'{"error": {"message": "The model has 1 sayings; this is request 2."}}',
            )


def test_what_is_answered_apart_takes_no_saying() -> None:
    with ReplayedModel("Noon.", apart={"Sing.": "La."}.get) as model:
        assert [message(model, words)["content"] for words in ("Sing.", "When?", "Sing.")] == ["La.", "Noon.", "La."]
    assert model.prompts == ["Sing.", "Sing."]
    assert [body["messages"][0]["content"] for body in model.asked] == ["When?"]


def test_another_address_is_not_found_and_kept() -> None:
    with ReplayedModel("Noon.") as model:
        with pytest.raises(urllib.error.HTTPError) as missing:
            urllib.request.urlopen(f"{model.url}/v1/models", timeout=10)
        missing.value.close()
        assert missing.value.code == 404
    assert [exchange.path for exchange in model.exchanges] == ["/v1/models"]
    assert model.asked == []
