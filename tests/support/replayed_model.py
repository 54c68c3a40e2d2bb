"""A real HTTP server on loopback that says what a model would, as services of OpenAI's form do."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from portico import ToolCall
from portico_testkit.recorded_server import Exchange, RecordedAnswer, RecordedServer

__all__ = ["KEY", "ReplayedModel", "Saying"]

Saying: TypeAlias = str | ToolCall | Sequence[ToolCall]
"""What the model says in one reply: its words, its tool call, or several calls."""

KEY = "REPLAYED_KEY"
"""The environment variable that its configuration takes the key from."""

_PATH = "/v1/chat/completions"
_USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
# So short that words, markers of citations and lines are cut in two.
_PIECE = 3


class ReplayedModel(RecordedServer):
    """Answer each request with the next of ``sayings``, whole or streamed as it asks. Use it as a context manager.

    >>> import urllib.request
    >>> with ReplayedModel("Noon.") as model:
    ...     asked = {"messages": [{"role": "user", "content": "When is it?"}]}
    ...     sent = urllib.request.Request(f"{model.url}/v1/chat/completions", json.dumps(asked).encode())
    ...     json.load(urllib.request.urlopen(sent))["choices"][0]["message"]["content"]
    'Noon.'
    >>> model.asked == [asked]
    True

    For what a fake `ChatService` cannot show: a whole application with its configuration, or a process of its own.
    ``configuration`` is the part of a ``portico.toml`` that has the application ask it. ``asked`` are the bodies of
    the requests that took a saying; one after the last saying is refused with the status 400, which says so.

    ``apart`` answers prompts that come beside the conversation, in any order: it is given the last message, and
    returns what is said to it, or None for the next saying. ``prompts`` keeps the messages that it answered.
    """

    def __init__(self, *sayings: Saying, apart: Callable[[str], str | None] | None = None) -> None:
        super().__init__()
        self.sayings: list[Saying] = list(sayings)
        self.apart = apart
        self.asked: list[dict[str, Any]] = []
        self.prompts: list[str] = []
        self._turn = threading.Lock()

    @property
    def configuration(self) -> str:
        """The tables of a configuration that name it; the variable ``REPLAYED_KEY`` must hold a key, any one."""
        return f"""
[chat]
use = "openai"
[chat.openai]
model = "replayed"
base_url = "{self.url}/v1"
api_key = {{ env = "{KEY}" }}
"""

    def offered(self, number: int) -> list[str]:
        """Return the names of the tools that request ``number`` offered, counted from 0."""
        return [tool["function"]["name"] for tool in self.asked[number].get("tools", ())]

    def answer(self, exchange: Exchange) -> RecordedAnswer:
        """Return what the model says; any other request than a POST to ``/v1/chat/completions`` is 404."""
        if (exchange.method, exchange.path) != ("POST", _PATH):
            return super().answer(exchange)
        self.exchanges.append(exchange)
        body = json.loads(exchange.body)
        with self._turn:
            said = self._said(body)
            number = len(self.asked)
        if said is None:
            message = f"The model has {len(self.sayings)} sayings; this is request {number}."
            return RecordedAnswer(json.dumps({"error": {"message": message}}).encode(), status=400)
        return _streamed(said, number) if body.get("stream") else _whole(said, number)

    def _said(self, body: dict[str, Any]) -> Saying | None:
        last = body["messages"][-1]["content"]
        if self.apart is not None and isinstance(last, str) and (written := self.apart(last)) is not None:
            self.prompts.append(last)
            return written
        self.asked.append(body)
        return self.sayings[len(self.asked) - 1] if len(self.asked) <= len(self.sayings) else None


def _calls(said: Saying) -> list[dict[str, Any]]:
    """Return the calls of a reply in the service's form, of which there are none in words."""
    calls = () if isinstance(said, str) else (said,) if isinstance(said, ToolCall) else said
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]


def _whole(said: Saying, number: int) -> RecordedAnswer:
    message: dict[str, Any] = {"role": "assistant", "content": said if isinstance(said, str) else None}
    if calls := _calls(said):
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": _finish(said)}
    return RecordedAnswer(
        json.dumps({**_head(number, "chat.completion"), "choices": [choice], "usage": _USAGE}).encode()
    )


def _streamed(said: Saying, number: int) -> RecordedAnswer:
    head = _head(number, "chat.completion.chunk")
    lines = [f"data: {json.dumps({**head, **chunk})}\n\n" for chunk in _chunks(said)]
    return RecordedAnswer("".join([*lines, "data: [DONE]\n\n"]).encode(), "text/event-stream")


def _chunks(said: Saying) -> Iterator[dict[str, Any]]:
    deltas: list[dict[str, Any]] = [{"role": "assistant"}]
    if isinstance(said, str):
        deltas += [{"content": said[start : start + _PIECE]} for start in range(0, len(said), _PIECE)]
    else:
        deltas.append({"tool_calls": [{"index": index, **call} for index, call in enumerate(_calls(said))]})
    for delta in deltas:
        yield {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": _finish(said)}]}
    yield {"choices": [], "usage": _USAGE}


def _head(number: int, kind: str) -> dict[str, Any]:
    return {"id": f"reply-{number}", "object": kind, "created": 0, "model": "replayed-1"}


def _finish(said: Saying) -> str:
    return "stop" if isinstance(said, str) else "tool_calls"
