"""A real HTTP server on loopback that says what a model would, in the form of each kind of service."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from tests.support.model_forms import FORMS, Saying

from portico_testkit.recorded_server import Exchange, RecordedAnswer, RecordedServer

__all__ = ["KEY", "ReplayedModel", "Saying"]

KEY = "REPLAYED_KEY"
"""The environment variable that its configuration takes the key from."""
SERVICES = ("openai", "responses", "anthropic", "gemini")
"""The names of the chat services that `ReplayedModel.every_service` configures, one for each form."""


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

    def every_service(self, used: str) -> str:
        """Return the tables of a configuration that names a service of each form, of which one is used."""
        key = f'api_key = {{ env = "{KEY}" }}'
        return f"""
[chat]
use = "{used}"

[chat.openai]
model = "gpt-4o"
{key}
base_url = "{self.url}/v1"

[chat.responses]
use = "openai"
model = "gpt-5.5"
{key}
base_url = "{self.url}/v1"
api = "responses"

[chat.anthropic]
model = "claude-sonnet-5-5"
{key}
base_url = "{self.url}"

[chat.gemini]
model = "gemini-3.8-flash"
{key}
base_url = "{self.url}/v1beta"
"""

    def offered(self, number: int) -> list[str]:
        """Return the names of the tools that request ``number`` offered, counted from 0."""
        return [tool["function"]["name"] for tool in self.asked[number].get("tools", ())]

    def answer(self, exchange: Exchange) -> RecordedAnswer:
        """Return what the model says, in the form of the service whose path is asked; any other path is 404."""
        form = next((form for form in FORMS if form.path.fullmatch(exchange.path)), None)
        if exchange.method != "POST" or form is None:
            return super().answer(exchange)
        self.exchanges.append(exchange)
        body = json.loads(exchange.body)
        with self._turn:
            said = self._said(body, form.last(body))
            number = len(self.asked)
        if said is None:
            message = f"The model has {len(self.sayings)} sayings; this is request {number}."
            return RecordedAnswer(json.dumps({"error": {"message": message}}).encode(), status=400)
        return RecordedAnswer(*form.answer(exchange.path, body, said, number))

    def _said(self, body: dict[str, Any], last: object) -> Saying | None:
        if self.apart is not None and isinstance(last, str) and (written := self.apart(last)) is not None:
            self.prompts.append(last)
            return written
        self.asked.append(body)
        return self.sayings[len(self.asked) - 1] if len(self.asked) <= len(self.sayings) else None
